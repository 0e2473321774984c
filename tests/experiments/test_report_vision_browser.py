"""The page of the experiment on pictures in a real browser: albums, buttons, every screen."""

import pytest
from report_page import make_report
from vision_runs import vision_sweep, write_vision

from browser import FOUND, MISSING, Browser

pytestmark = pytest.mark.skipif(FOUND is None, reason=MISSING)

SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
LABELS = ("Ours", "Ours, robust", "PFYL", "SPO+", "two-stage")
SPACE = (" ", 32, " ")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vision")
    make_report(write_vision(folder, vision_sweep(2, ("terrain 6x6", "matching 4x4"), LABELS)))
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture(params=SCREENS)
def screen(request, browser, page):
    browser.open(page, *SCREENS[request.param])
    return browser


def methods_shown(browser):
    """Which methods' tiles can be seen in the first album."""
    return browser.run(
        """[...new Set([...document.querySelector(".album").querySelectorAll(".tile[data-method]")]
            .filter((tile) => tile.getBoundingClientRect().height > 0)
            .map((tile) => tile.dataset.method))]"""
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SCREENS.values(), ids=SCREENS)
def test_loads_without_a_complaint_or_a_request(browser, page, size, dark):
    browser.open(page, *size, dark=dark)
    browser.run("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.complaints() == []
    asked = {url.partition(",")[0] for url in browser.requests()}
    assert asked == {page.resolve().as_uri(), "data:image/png;base64"}


def test_the_page_is_no_wider_than_the_screen(screen):
    wide, window = screen.run("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window


def test_every_tile_is_square_and_fits(screen):
    boxes = screen.run(
        """[...document.querySelectorAll("svg.map")].map((svg) => {
            const box = svg.getBoundingClientRect();
            return [box.left, box.right, box.width, box.height];
        }).filter((box) => box[2] > 0)"""
    )
    width = screen.run("document.documentElement.clientWidth")
    assert len(boxes) == 2 * 3 * 4
    for left, right, wide, high in boxes:
        assert left >= 0
        assert right <= width
        assert wide > 140
        assert abs(wide - high) < 1


def test_pictures_are_decoded(screen):
    """Each tile has an image with a size, or uses one that has."""
    broken = screen.run(
        """Promise.all([...document.querySelectorAll("svg.map image")].map((image) =>
            new Promise((done) => {
                const copy = new Image();
                copy.onload = () => done(copy.naturalWidth > 0 ? 0 : 1);
                copy.onerror = () => done(1);
                copy.src = image.getAttribute("href");
            }))).then((found) => [found.length, found.reduce((a, b) => a + b, 0)])"""
    )
    assert broken == [2 * 3 * (2 + len(LABELS)), 0]


def test_a_click_shows_another_method(screen):
    assert methods_shown(screen) == ["ours"]
    screen.click('.album .pick[data-method="pfyl"]')
    assert methods_shown(screen) == ["pfyl"]
    pressed = screen.run(
        """[...document.querySelector(".album").querySelectorAll('.pick[aria-pressed="true"]')]
            .map((pick) => pick.textContent.trim())"""
    )
    assert pressed == ["PFYL"]
    assert screen.run("document.getElementById('said').textContent") == "Showing PFYL."


def test_the_keyboard_does_too_and_other_albums_stay(screen):
    screen.run("document.querySelector('.album .pick[data-method=\"spo-plus\"]').focus()")
    screen.press(*SPACE)
    assert methods_shown(screen) == ["spo-plus"]
    other = screen.run(
        """[...document.querySelectorAll(".album")[1].querySelectorAll(".tile[data-method]")]
            .filter((tile) => !tile.hidden).map((tile) => tile.dataset.method)"""
    )
    assert set(other) == {"ours"}


def test_panels_stand_beside_each_other_where_there_is_room(screen):
    tops = screen.run(
        """[...document.querySelectorAll("#test-decision-loss svg.panel")]
            .map((svg) => Math.round(svg.getBoundingClientRect().top))"""
    )
    phone = screen.run("window.innerWidth") < 600
    assert len(set(tops)) == (2 if phone else 1)
