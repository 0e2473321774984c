"""The explorer with models that outsiders bring: hostile and endless names, a thousand variables,
a planner who maximizes, units of any size, a keyboard alone, the narrowest phone."""

import dataclasses
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from browser import FOUND, MISSING, Browser
from revealed.cli.explorer import Explorer, serve
from revealed.cli.plans import from_catalogue
from revealed.cli.store import FittedModel, Samples
from revealed.cli.tables import Feature, FeatureMap

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
ENDLESS = "a_name_that_never_ends_" * 8
SCREENS = {"desktop": (1280, 1000), "narrowest": (360, 740)}


LOAD = (Feature("load", 10.0, 2.0),)


def made(call="knapsack([3, 1, 4, 1, 5, 9, 2, 6], 12)", features=LOAD):
    plan = from_catalogue(call)
    rng = np.random.default_rng(4)
    n, d = plan.problem.n_variables, len(FeatureMap(features).names)
    coef, intercept = rng.standard_normal((n, d)), -rng.uniform(4, 6, n)
    if plan.problem.eq_rows.shape[0]:
        intercept = -intercept
    Z = rng.standard_normal((8, d))
    X = np.asarray(plan.problem.solve(Z @ coef.T + intercept + rng.standard_normal((8, n))).x)
    samples = Samples(tuple(f"s{k}" for k in range(8)), Z, X, np.zeros(8, int))
    return FittedModel(plan, FeatureMap(features), coef, intercept, 1.0, None, {}, samples)


@contextmanager
def served(model):
    server = serve(Explorer(model, model.samples))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale, whole", [(1e-9, False), (1e12, False), (2.0, False)])
def test_a_slider_fits_units_of_any_size(scale, whole):
    model = made(features=(Feature("load", 0.0, scale),))
    told = Explorer(model, model.samples).describe()["features"][0]
    values = model.samples.contexts[:, 0] * scale
    assert told["whole"] is whole
    assert told["low"] < values.min() < values.max() < told["high"]
    assert told["high"] - told["low"] < 2 * np.ptp(values)


def test_yes_and_no_move_in_one_step():
    model = made(features=(Feature("works"),))
    contexts = (model.samples.contexts > 0).astype(float)
    model = dataclasses.replace(
        model, samples=dataclasses.replace(model.samples, contexts=contexts)
    )
    told = Explorer(model, model.samples).describe()["features"][0]
    assert (told["low"], told["high"], told["whole"]) == (0.0, 1.0, True)


def test_both_sides_of_a_matching_are_drawn():
    model = made("assignment(2, 3)")
    told = Explorer(model, model.samples).describe()["drawing"]
    assert model.plan.variables[:3] == ("w1>t1", "w1>t2", "w1>t3")
    assert told["tails"] == [0, 0, 0, 1, 1, 1]
    assert told["heads"] == [2, 3, 4, 2, 3, 4]
    assert told["names"] == ["1", "2", "1", "2", "3"]
    places = np.array(told["places"])
    assert len({tuple(place) for place in told["places"]}) == 5
    assert places[:2, 0].max() < places[2:, 0].min()


def test_a_path_says_where_it_starts_and_ends():
    model = made("grid_shortest_path(3, 3, directed='right-down')")
    assert Explorer(model, model.samples).describe()["drawing"]["ends"] == [0, 8]


def test_a_long_call_has_a_name_that_can_be_read():
    plan = from_catalogue(f"knapsack({[1] * 500}, 100)")
    assert len(plan.name) < 80
    assert plan.name.startswith("knapsack([1, 1")
    assert from_catalogue(plan.catalogue).variables == plan.variables


# --- in a browser --------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(FOUND is None, reason=MISSING)
READY = """new Promise(done => (function look() {
    if (document.body.dataset.ready === 'yes') done(true); else setTimeout(look, 20);
})())"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


def opened(browser, address, screen="desktop"):
    browser.open(address, *SCREENS[screen])
    browser.run(READY)
    return browser


@needs_browser
@pytest.mark.parametrize("screen", SCREENS)
def test_hostile_and_endless_names_are_only_text(browser, screen):
    model = made(features=(Feature(HOSTILE, 10.0, 2.0), Feature("d", levels=(HOSTILE, ENDLESS))))
    names = tuple(f"{HOSTILE if k % 2 else ENDLESS}{k}" for k in range(8))
    model = dataclasses.replace(
        model,
        plan=dataclasses.replace(model.plan, variables=names, name=HOSTILE + ENDLESS),
        samples=dataclasses.replace(model.samples, names=names),
    )
    with served(model) as address:
        page = opened(browser, address, screen)
        assert page.run("document.title") == "revealed: explore a model"
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        assert page.run("document.documentElement.scrollWidth") == SCREENS[screen][0]
        assert page.run("document.getElementById('title').offsetHeight") < 120
        labels = page.run("[...document.querySelectorAll('#drawing text')].map(t => t.textContent)")
        assert any(name[-1] in label and "…" in label for name in names for label in labels)
        assert page.complaints() == []


@needs_browser
def test_a_thousand_variables_show_first_what_differs(browser):
    with served(made(f"knapsack({[1 + k % 7 for k in range(1000)]}, 1000)")) as address:
        page = opened(browser, address)
        rows = page.run("[...document.querySelectorAll('#costs tr')].map(r => r.className)")
        differ = rows.count("differs")
        assert len(rows) == 1000
        assert 0 < differ < 1000
        assert set(rows[:differ]) == {"differs"}
        assert "more are not 0" in page.run("document.getElementById('drawing').textContent")
        assert not page.run("document.getElementById('order').hidden")


@needs_browser
def test_a_planner_who_maximizes_reads_of_values(browser):
    model = made()
    model = dataclasses.replace(model, plan=dataclasses.replace(model.plan, maximize=True))
    for shown, there, absent in ((model, "value", "cost"), (made(), "cost", "value")):
        with served(shown) as address:
            text = opened(browser, address).run("document.querySelector('main').innerText").lower()
        assert f"predicted {there}s" in text
        assert absent not in text.replace("exact value", "")


@needs_browser
@pytest.mark.parametrize("scale, shown", [(1e12, r"\d(\.\d+)?e1[0-3]"), (1e-9, r"\d(\.\d+)?e-\d+")])
def test_figures_of_any_size_can_be_read(browser, scale, shown):
    with served(made(features=(Feature("load", 0.0, scale),))) as address:
        page = opened(browser, address)
        box = "document.querySelector('#features input[type=number]')"
        assert page.run(f"/^-?{shown}$/.test({box}.value)".replace("\\\\", "\\"))
        assert page.run(f"{box}.scrollWidth <= {box}.clientWidth")


@needs_browser
def test_everything_is_reached_by_the_keyboard_alone(browser):
    with served(made("grid_shortest_path(3, 3, directed='right-down')")) as address:
        page = opened(browser, address, "narrowest")
        reached = []
        for _ in range(20):
            page.press("Tab", 9)
            reached.append(
                page.run("(e => e.id || e.type || e.parentElement.id)(document.activeElement)")
            )
        for wanted in ("search", "which", "list", "range", "number", "alternatives"):
            assert wanted in reached, reached
