"""The page in a real browser: it asks nobody for anything, sorts, and fits every screen."""

import json

import pytest
from report_page import make_report
from report_runs import MADE_BY, make_config, make_run, margin_runs, whole_sweep, write_runs

from browser import FOUND, MISSING, Browser

pytestmark = pytest.mark.skipif(FOUND is None, reason=MISSING)

SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
ENTER, SPACE = ("Enter", 13, "\r"), (" ", 32, " ")
TABLE = "The paper's path problem: losses when training ends"


def make_page(folder, runs):
    make_report(write_runs(folder, runs))
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Every kind of section, on few seeds; one method has no time, one run diverged."""
    runs = [
        run
        for run in whole_sweep(paper_seeds=2, cave_seeds=2)
        if run["config"]["part"] not in ("paper knapsack", "cave degree 6", "kernels knapsack")
    ]
    for run in runs:
        if run["config"]["label"] == "ST":
            run["epoch_seconds"] = None
    return make_page(tmp_path_factory.mktemp("page"), runs)


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture(params=SCREENS)
def screen(request, browser, page):
    """The page, freshly loaded, on a desktop or a phone."""
    browser.open(page, *SCREENS[request.param])
    return browser


def column(browser, heading):
    """What a table shows under a heading (the last one of that name), from the top."""
    return browser.run(
        f"""(() => {{
            const box = document.querySelector({json.dumps(f'[aria-label="{TABLE}"]')});
            const names = [...box.querySelectorAll("th[scope=col]")].map((h) => h.innerText.trim());
            const k = names.findLastIndex((name) => name.startsWith({json.dumps(heading)}));
            const rows = [...box.querySelectorAll("tbody tr")];
            return rows.map((row) => row.cells[k].innerText.trim());
        }})()"""
    )


def losses(browser):
    """Test estimate losses, without their spread."""
    found = [float(text.split()[0]) for text in column(browser, "test")]
    assert len(set(found)) > 10
    return found


def directions(browser):
    return browser.run(
        f"""[...document.querySelectorAll({json.dumps(f'[aria-label="{TABLE}"] th[scope=col]')})]
            .map((heading) => heading.getAttribute("aria-sort"))"""
    )


def button_of(k):
    """The selector of the k-th heading's button, from 1."""
    return f'[aria-label="{TABLE}"] th[scope=col]:nth-child({k}) button'


# --- the browser itself --------------------------------------------------------------------------


def test_browser_tells_of_requests_and_errors(browser, tmp_path):
    """So that silence about the page means something."""
    bad = tmp_path / "bad.html"
    markup = "<img src='other.png'><script>console.error('a'); undefinedName.b()</script>"
    bad.write_text(markup, "utf-8")
    browser.open(bad)
    assert [url.rpartition("/")[2] for url in browser.requests()] == ["bad.html", "other.png"]
    assert any("console.error" in words for words in browser.complaints())
    assert any("Uncaught" in words for words in browser.complaints())


# --- loading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SCREENS.values(), ids=SCREENS)
def test_loads_without_a_complaint_or_a_request(browser, page, size, dark):
    browser.open(page, *size, dark=dark)
    browser.run("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.complaints() == []
    assert browser.requests() == [page.resolve().as_uri()]
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") != dark


def test_policy_stops_whatever_would_leave_the_page(browser, page):
    browser.open(page)
    stopped = browser.run(
        """new Promise((done) => {
            const image = new Image();
            image.onerror = () => done("stopped");
            image.onload = () => done("loaded");
            image.src = "https://example.org/x.png";
        })"""
    )
    assert stopped == "stopped"
    assert any("Content Security Policy" in words for words in browser.complaints())


# --- layout --------------------------------------------------------------------------------------


def test_every_figure_is_visible_and_fits(screen):
    boxes = screen.run(
        """[...document.querySelectorAll("figure svg")].map((svg) => {
            const box = svg.getBoundingClientRect();
            return [box.left, box.right, box.width, box.height];
        })"""
    )
    width = screen.run("document.documentElement.clientWidth")
    assert len(boxes) == 26
    for left, right, wide, high in boxes:
        assert left >= 0
        assert right <= width
        assert wide > 300
        assert high > 100


def test_everything_drawn_lies_within_its_figure(screen):
    """Labels are measured with one font and shown in another."""
    outside = screen.run(
        """[...document.querySelectorAll("figure svg text")].filter((words) => {
            const frame = words.closest("svg").getBoundingClientRect();
            const box = words.getBoundingClientRect();
            return box.left < frame.left - 4 || box.right > frame.right + 4;
        }).map((words) => words.textContent)"""
    )
    assert outside == []


def test_page_never_scrolls_sideways(screen):
    wide, narrow = screen.run(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= narrow
    for box in screen.run(
        """[...document.querySelectorAll(".scroll")].map((box) => {
            const at = box.getBoundingClientRect();
            return [at.left, at.right];
        })"""
    ):
        assert box[0] >= 0
        assert box[1] <= narrow


def test_text_in_figures_can_be_read_on_a_phone(browser, page):
    browser.open(page, *SCREENS["phone"])
    least = browser.run(
        """Math.min(...[...document.querySelectorAll("figure svg text")].map((words) => {
            const frame = words.closest("svg");
            const scale = frame.getBoundingClientRect().width / frame.viewBox.baseVal.width;
            return scale * parseFloat(getComputedStyle(words).fontSize);
        }))"""
    )
    assert least >= 8.5


# --- sorting -------------------------------------------------------------------------------------


def test_sorts_numbers_by_click(screen):
    assert directions(screen) == [*["none"] * 5, "ascending", "none", "none"]
    assert losses(screen) == sorted(losses(screen))
    screen.click(button_of(6))
    assert directions(screen) == [*["none"] * 5, "descending", "none", "none"]
    assert losses(screen) == sorted(losses(screen), reverse=True)
    screen.click(button_of(6))
    assert directions(screen)[5] == "ascending"
    assert losses(screen) == sorted(losses(screen))


@pytest.mark.parametrize("key", [ENTER, SPACE], ids=["enter", "space"])
def test_sorts_words_by_keyboard(screen, key):
    screen.run(f"document.querySelector({json.dumps(button_of(1))}).focus()")
    screen.press(*key)
    names = column(screen, "method")
    assert names == sorted(names, key=str.lower)
    assert directions(screen)[0] == "ascending"
    screen.press(*key)
    assert column(screen, "method") == names[::-1]
    said = screen.run("document.getElementById('said').textContent")
    assert said == "Sorted by method, descending."


def test_headings_are_reached_by_tab(screen):
    screen.run(f"document.querySelector({json.dumps(button_of(1))}).focus()")
    screen.press("Tab", 9)
    assert screen.run("document.activeElement.innerText.trim()").startswith("needs true costs")


def test_cells_without_a_value_come_last_both_ways(screen):
    for _ in range(2):
        screen.click(button_of(7))
        assert column(screen, "epoch")[-1] == "–"
        assert "–" not in column(screen, "epoch")[:-1]


def test_sorting_one_table_leaves_the_others(screen):
    others = f"""(() => {{
        const mine = document.querySelector({json.dumps(f'[aria-label="{TABLE}"]')});
        return [...document.querySelectorAll(".sortable")]
            .filter((t) => !mine.contains(t) && !t.contains(mine)).map((t) => t.innerText);
    }})()"""
    before = screen.run(others)
    assert before
    screen.click(button_of(1))
    assert screen.run(others) == before


# --- commands and legends ------------------------------------------------------------------------


def press_copy(browser):
    """Press the first copy button and wait for what it says."""
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.run("document.querySelectorAll('.command .copy').length") > 5
    browser.click(".command .copy")
    return browser.run(
        """new Promise((done) => {
            const said = document.getElementById("said");
            const look = () => said.textContent ? done(said.textContent) : setTimeout(look, 20);
            look();
        })"""
    )


def test_command_is_copied(screen):
    assert press_copy(screen) == "Copied"
    screen.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    lines = screen.run("navigator.clipboard.readText()").splitlines()
    screen.call("Browser.resetPermissions")
    assert lines[0] == MADE_BY
    assert lines[1].startswith("revealed bench report ")
    assert screen.complaints() == []


def test_command_is_selected_where_there_is_no_clipboard(screen):
    screen.call("Browser.grantPermissions", permissions=[])  # all others are refused
    assert press_copy(screen) == "Selected"
    screen.call("Browser.resetPermissions")
    assert screen.run("getSelection().toString()").splitlines()[0] == MADE_BY
    assert screen.complaints() == []


def test_legend_brings_one_method_out(screen):
    figure = "document.querySelector('#paper-path-curves')"
    shown = f"""[...{figure}.querySelectorAll("svg [data-series]")].filter(
        (part) => getComputedStyle(part).opacity === "1").map((part) => part.dataset.series)"""
    screen.run("document.head.append(Object.assign(document.createElement('style'), "
               "{textContent: '* { transition: none !important; }'}))")  # fmt: skip
    everyone = set(screen.run(shown))
    assert len(everyone) == 14
    key = "#paper-path-curves .key"
    screen.click(key)
    name = screen.run(f"document.querySelector('{key}').dataset.series")
    assert set(screen.run(shown)) == {name}
    screen.click(key)
    assert set(screen.run(shown)) == everyone


# --- hostile and empty folders -------------------------------------------------------------------


def test_hostile_words_run_nothing(browser, tmp_path):
    words = "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"
    runs = [make_run(make_config("paper path", label)) for label in ("ours, ERM", words)]
    runs += [make_run(make_config(words, words), status="failed", message=words)]
    page = make_page(tmp_path, [*runs, *margin_runs(1)])
    browser.open(page, *SCREENS["phone"])
    assert browser.run("window.taken") is None
    assert browser.complaints() == []
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_empty_folder_is_a_page_too(browser, tmp_path):
    browser.open(make_page(tmp_path, []))
    assert "There is no finished run" in browser.run("document.body.innerText")
    assert browser.complaints() == []
