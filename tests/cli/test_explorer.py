"""The explorer: what it answers, to whom, and how it looks and works in a real browser."""

import dataclasses
import http.client
import json
import socket
import struct
import threading

import numpy as np
import pytest

from browser import FOUND, MISSING, Browser
from revealed.cli.explorer import Explorer, serve
from revealed.cli.plans import find_limits, from_catalogue, with_limits
from revealed.cli.store import FittedModel, Samples
from revealed.cli.tables import Feature, FeatureMap
from revealed.errors import InputError

SCREENS = {"desktop": (1280, 1000), "phone": (390, 844)}


def made(call="grid_shortest_path(4, 4, directed='right-down')"):
    """A model that is right about most samples, with a number, a switch and a category."""
    plan = from_catalogue(call)
    features = FeatureMap(
        (Feature("load", 10.0, 2.0), Feature("works"), Feature("day", levels=("Mon", "Tue")))
    )
    rng = np.random.default_rng(4)
    n = plan.problem.n_variables
    coef, intercept = rng.standard_normal((n, 3)), rng.uniform(4, 6, n)
    Z = np.column_stack(
        [rng.standard_normal(12), rng.integers(0, 2, 12), rng.integers(0, 2, 12)]
    ).astype(float)
    taken = Z @ coef.T + intercept
    taken[:4] += 2 * rng.standard_normal((4, n))
    X = np.asarray(plan.problem.solve(taken).x)
    names = tuple(f"day {k + 1}" for k in range(12))
    samples = Samples(names, Z, X, (np.arange(12) < 5).astype(int))
    return FittedModel(plan, features, coef, intercept, 1.0, None, {}, samples)


@pytest.fixture(scope="module")
def address():
    model = made()
    server = serve(Explorer(model, model.samples))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def ask(address, path, content=None, host=None, method=None):
    connection = http.client.HTTPConnection(address, timeout=300)
    body = None if content is None else content if isinstance(content, str) else json.dumps(content)
    headers = {} if host is None else {"Host": host}
    connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_a_port_that_does_not_exist_is_refused():
    model = made()
    with pytest.raises(InputError, match="Ports end at 65535; got 70000"):
        serve(Explorer(model, model.samples), 70_000)


# --- answers -------------------------------------------------------------------------------------


def test_a_sample_is_shown_in_the_units_of_its_table(address):
    _, text = ask(address, "/api/sample/3")
    told, model = json.loads(text), made()
    assert told["context"]["load"] == pytest.approx(10 + 2 * model.samples.contexts[3, 0])
    assert told["context"]["day"] in ("Mon", "Tue")
    costs = model.costs(model.samples.contexts[3:4])
    np.testing.assert_allclose(told["costs"], costs[0])
    np.testing.assert_allclose(told["predicted"], model.plan.problem.solve(costs).x[0])


def test_a_context_as_observed_gives_the_same_answer(address):
    told = json.loads(ask(address, "/api/sample/2")[1])
    again = json.loads(ask(address, "/api/decide", {"context": told["context"], "sample": 2})[1])
    np.testing.assert_allclose(again["costs"], told["costs"], atol=1e-9)
    assert again["predicted"] == told["predicted"]
    assert again["distance"] == pytest.approx(told["distance"], abs=1e-9)


def test_distance_is_0_exactly_where_the_decision_is_cheapest():
    model = made()
    explorer = Explorer(model, model.samples)
    told = [explorer.sample(b) for b in range(12)]
    assert {sample["repeated"] for sample in told} == {True, False}
    for sample in told:
        assert (sample["distance"] <= 1e-7) == (sample["excess"] <= 1e-7)


@pytest.mark.parametrize("mean, least", [(10.0, 0.0), (-10.0, -np.inf)])
def test_a_slider_of_amounts_does_not_go_below_0(mean, least):
    model = made()
    features = FeatureMap((Feature("load", mean, 4.0), *model.features.features[1:]))
    model = dataclasses.replace(model, features=features)
    load = Explorer(model, model.samples).describe()["features"][0]
    values = model.samples.contexts[:, 0] * 4.0 + mean
    assert load["low"] == max(values.min() - 0.25 * np.ptp(values), least) < values.min()


def test_alternatives_are_feasible_dearer_and_in_order():
    model = made()
    explorer = Explorer(model, model.samples)
    for b in range(4):
        sample = explorer.sample(b)
        extra = [item["extra"] for item in sample["alternatives"]]
        assert extra
        assert extra == sorted(extra)
        assert min(extra) >= -1e-9
        X = np.array([item["decision"] for item in sample["alternatives"]])
        assert (model.plan.problem.constraint_violation(X) < 1e-9).all()


@pytest.mark.parametrize(
    "path, content, code",
    [
        ("/api/sample/12", None, 400),
        ("/api/sample/-1", None, 400),
        ("/api/sample/1e3", None, 400),
        ("/api/decide", "{", 400),
        ("/api/decide", "[]", 400),
        ("/api/decide", "[" * 100_000, 400),
        ("/api/decide", '{"context": {"load": 1' + "0" * 400 + "}}", 400),
        ("/api/decide", '{"context": {"load": NaN}}', 400),
        ("/api/decide", {"context": {"load": 1, "works": 0, "day": "Mon"}, "sample": True}, 400),
        ("/api/decide", {"context": {"load": "much"}}, 400),
        ("/api/decide", {"context": {"load": 1e300, "works": 0, "day": "Mon"}}, 400),
        ("/api/decide", {"context": {"load": 1, "works": 0, "day": "Sun"}}, 400),
        ("/api/nothing", None, 404),
        ("/../server.py", None, 404),
    ],
)
def test_odd_questions_are_refused_and_the_server_goes_on(address, path, content, code):
    answer, text = ask(address, path, content)
    assert answer.status == code
    assert len(text) > 10
    assert ask(address, "/api/model")[0].status == 200


def test_a_page_of_another_name_is_refused(address):
    """A site whose name was made to lead here (DNS rebinding) gets nothing."""
    answer, text = ask(address, "/api/model", host="evil.example:80")
    assert answer.status == 403
    assert "variables" not in text


HOSTS = {
    "127.0.0.1": 200,
    "127.0.0.1:8000": 200,
    "LocalHost:1": 200,
    "127.0.0.1:@evil.com": 403,
    "127.0.0.1:80@evil.com": 403,
    "user@127.0.0.1:80": 403,
    "evil.com#127.0.0.1:80": 403,
    "127.0.0.1:": 403,
    "127.0.0.1:80:80": 403,
    "127.0.0.1:999999": 403,
    "127.0.0.1.evil.com": 403,
    "localhost.evil.com:80": 403,
    "": 403,
}


@pytest.mark.parametrize("host, code", HOSTS.items())
def test_only_this_machine_by_its_own_name_is_answered(address, host, code):
    assert ask(address, "/api/model", host=host)[0].status == code


def test_a_name_given_twice_and_another_page_are_refused(address):
    for more in (b"Host: evil.com\r\n", b"Origin: http://evil.com\r\n", b"Origin: null\r\n"):
        head = b"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"
        assert codes(address, head + more + b"\r\n") == [403]
    assert codes(address, head + b"Origin: http://localhost:80\r\nConnection: close\r\n\r\n") == [
        200
    ]


def codes(address, content):
    """The codes of all answers to bytes that are sent over one connection, until it ends."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


HIDDEN = b"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(HIDDEN)
BODIES = {
    "to nowhere": (b"POST /nowhere", b"127.0.0.1", LENGTH, 404),
    "from elsewhere": (b"POST /api/decide", b"evil.com", LENGTH, 403),
    "no JSON": (b"POST /api/decide", b"127.0.0.1", LENGTH, 400),
    "of a GET": (b"GET /page.css", b"127.0.0.1", LENGTH, 200),
    "of another method": (b"PUT /api/decide", b"127.0.0.1", LENGTH, 501),
    "without a length": (b"POST /api/decide", b"127.0.0.1", b"", 400),
    "with a signed length": (b"POST /api/decide", b"127.0.0.1", b"Content-Length: +0\r\n", 400),
    "with two lengths": (b"POST /x", b"127.0.0.1", LENGTH + b"Content-Length: 0\r\n", 400),
    "in chunks": (b"POST /x", b"127.0.0.1", b"Transfer-Encoding: chunked\r\n", 400),
    "too long": (b"POST /api/decide", b"127.0.0.1", b"Content-Length: 99999999\r\n", 413),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_is_never_taken_for_the_next_request(address, case):
    line, host, length, code = BODIES[case]
    head = line + b" HTTP/1.1\r\nHost: " + host + b"\r\n" + length + b"\r\n"
    assert codes(address, head + HIDDEN) == [code]


def test_clients_that_go_away_or_are_slow_leave_no_traceback(capfd):
    model = made()
    server = serve(Explorer(model, model.samples))
    server.RequestHandlerClass.timeout = 0.2
    threading.Thread(target=server.serve_forever, daemon=True).start()
    whole = f"127.0.0.1:{server.server_address[1]}"
    try:
        post = b"POST /api/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf"
        with socket.create_connection(server.server_address) as slow:
            slow.sendall(post)
            assert slow.recv(1) == b""  # ended without an answer
        assert codes(whole, post) == []
        for _ in range(5):  # gone before the answers come
            gone = socket.create_connection(server.server_address)
            gone.sendall(HIDDEN * 50)
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.close()
        assert ask(whole, "/api/model")[0].status == 200
    finally:
        server.shutdown()
        server.server_close()
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_our_own_is_one_line(capfd):
    model = made()
    server = serve(Explorer(model, model.samples))
    try:
        raise RuntimeError("a surprise")
    except RuntimeError:
        server.handle_error(None, None)
    finally:
        server.server_close()
    assert capfd.readouterr().err == (
        "revealed: a request could not be answered (RuntimeError: a surprise).\n"
    )


def test_the_page_may_load_nothing_from_elsewhere(address):
    answer, _ = ask(address, "/")
    rules = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in rules
    assert "http" not in rules


def test_a_port_in_use_is_named(address):
    model = made()
    with pytest.raises(InputError, match=r"Port .* cannot be used"):
        serve(Explorer(model, model.samples), int(address.partition(":")[2]))


# --- in a browser --------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(FOUND is None, reason=MISSING)


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture(params=SCREENS)
def page(request, browser, address):
    browser.open(f"http://{address}/", *SCREENS[request.param])
    wait(browser, "document.body.dataset.ready === 'yes'")
    return browser


def wait(browser, condition):
    """Until the page has come to a state; it takes no time, unless the machine is busy."""
    done = browser.run(
        f"""new Promise(done => {{
            const end = Date.now() + 120000;
            (function look() {{
                if ({condition}) done(true);
                else if (Date.now() > end) done(false);
                else setTimeout(look, 20);
            }})();
        }})"""
    )
    assert done, condition


def chosen(browser):
    return browser.run("document.querySelector('#list [aria-selected=true] .name').textContent")


@needs_browser
def test_the_page_draws_the_sample_without_complaint(page):
    assert chosen(page) == "day 1"
    assert page.run("document.querySelectorAll('#drawing .observed').length") == 6
    assert page.run("document.querySelectorAll('#drawing .predicted').length") == 6
    assert page.run("document.querySelectorAll('#costs tr').length") == 24
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.complaints() == []
    assert all("127.0.0.1" in request for request in page.requests())


@needs_browser
def test_samples_are_chosen_by_keyboard(page):
    page.run("document.getElementById('list').focus()")
    page.press("ArrowDown", 40)
    wait(page, "document.querySelector('#list [aria-selected=true] .name').textContent === 'day 2'")
    page.press("End", 35)
    wait(
        page, "document.querySelector('#list [aria-selected=true] .name').textContent === 'day 12'"
    )


@needs_browser
def test_moving_a_feature_changes_the_decision_and_back(page):
    costs = "document.querySelector('#costs td:nth-child(2)').textContent"
    before = page.run(costs)
    page.run(
        """(() => { const slider = document.querySelector('#features input[type=range]');
        slider.focus(); slider.value = slider.max; slider.dispatchEvent(new Event('input')); })()"""
    )
    wait(page, f"{costs} !== {json.dumps(before)}")
    assert not page.run("document.getElementById('reset').disabled")
    page.click("#reset")
    wait(page, f"{costs} === {json.dumps(before)}")
    assert page.run("document.getElementById('reset').disabled")


@needs_browser
def test_a_slider_moves_by_the_arrow_keys(page):
    value = "document.querySelector('#features input[type=number]').value"
    before = page.run(value)
    page.run("document.querySelector('#features input[type=range]').focus()")
    page.press("ArrowRight", 39)
    wait(page, f"{value} !== {json.dumps(before)}")


@needs_browser
def test_samples_are_found_and_filtered(page):
    page.run(
        """(() => { const which = document.getElementById('which');
        which.value = 'missed'; which.dispatchEvent(new Event('change')); })()"""
    )
    shown = page.run("document.querySelectorAll('#list li .miss').length")
    assert shown == page.run("document.querySelectorAll('#list li').length")
    assert shown > 0
    page.run(
        """(() => { const find = document.getElementById('search');
        find.value = 'no such day'; find.dispatchEvent(new Event('input')); })()"""
    )
    assert "no such sample" in page.run("document.getElementById('list').textContent")


@needs_browser
def test_bars_are_drawn_at_the_size_of_the_text_around_them():
    """Also on a phone, where the drawing must not be a desktop's made small."""
    model = made("knapsack([3, 1, 4, 1, 5, 9, 2, 6], 12)")
    server = serve(Explorer(model, model.samples))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    letter = "document.querySelector('#drawing text')"
    size = f"12 * {letter}.getScreenCTM().a"
    with Browser() as browser:
        for width, height in SCREENS.values():
            browser.open(f"http://127.0.0.1:{server.server_address[1]}/", width, height)
            wait(browser, "document.body.dataset.ready === 'yes'")
            assert 10.5 < browser.run(size) < 16
            assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    server.shutdown()
    server.server_close()


@needs_browser
def test_limits_are_moved_like_features_and_may_be_the_plans_own(browser):
    plan = from_catalogue("knapsack([1.0, 2.0, 3.0], 3.0)")
    limits = find_limits(plan, ["ub1=room"], ["room"])
    given, Z = np.array([[np.nan], [2.0]]), np.zeros((2, 1))
    values = -np.array([1.0, 2.5, 2.7])
    X = np.asarray(with_limits(plan, limits, given).problem.solve(np.tile(values, (2, 1))).x)
    samples = Samples(("planned", "tight"), Z, X, np.ones(2, int), given)
    features = FeatureMap((Feature("load"),))
    model = FittedModel(plan, features, np.zeros((3, 1)), values, 1.0, None, {}, samples, limits)
    server = serve(Explorer(model, samples))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.open(f"http://127.0.0.1:{server.server_address[1]}/", *SCREENS["phone"])
    wait(browser, "document.body.dataset.ready === 'yes'")
    box = "document.querySelector('#features input[name=room]')"
    taken = "[...document.querySelectorAll('#costs td:last-child')].map(x => x.textContent).join()"
    assert browser.run(f"{box}.value + {box}.placeholder") == "as planned"
    assert browser.run(taken) == "1,1,0"
    browser.run(f"{box}.value = 1; {box}.dispatchEvent(new Event('input'))")
    wait(browser, f"{taken} === '0,0.5,0'")
    bars = "document.querySelectorAll('#drawing .bar.predicted').length"
    assert browser.run(bars) > 0
    browser.run(f"{box}.value = -1; {box}.dispatchEvent(new Event('input'))")
    wait(browser, "document.getElementById('verdict').textContent.includes('No decision meets')")
    assert browser.run(bars) == 0
    assert browser.complaints() == []
    server.shutdown()
    server.server_close()


@needs_browser
def test_learned_limits_move_with_features_until_someone_moves_them(browser):
    plan = from_catalogue("knapsack([1.0, 2.0, 3.0], 3.0)")
    (limit,) = find_limits(plan, ["ub1=room"], ["room"])
    limits = (dataclasses.replace(limit, learned=True),)
    given, Z = np.array([[3.0], [2.5]]), np.array([[0.0], [-1.0]])
    values = -np.array([1.0, 2.5, 2.7])
    X = np.asarray(with_limits(plan, limits, given).problem.solve(np.tile(values, (2, 1))).x)
    samples = Samples(("dry", "wet"), Z, X, np.ones(2, int), given)
    features = FeatureMap((Feature("load"), Feature("rain")))
    samples = dataclasses.replace(samples, contexts=np.hstack([Z, Z]))
    learned = {"coef": np.array([[0.5, 0.0]]), "intercept": np.array([2.9])}
    coef = np.zeros((3, 2))
    model = FittedModel(
        plan, features, coef, values, 1.0, None, {}, samples, limits, "linear", learned
    )
    server = serve(Explorer(model, samples))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.open(f"http://127.0.0.1:{server.server_address[1]}/", *SCREENS["desktop"])
    wait(browser, "document.body.dataset.ready === 'yes'")
    room, load = (f"document.querySelector('#features input[name={n}]')" for n in ("room", "load"))
    taken = "[...document.querySelectorAll('#costs td:last-child')].map(x => x.textContent).join()"

    def enter(box, value):
        browser.run(f"{box}.value = {value}; {box}.dispatchEvent(new Event('input'))")

    assert browser.run(f"{room}.value") == "3"
    enter(load, -2)
    wait(browser, f"{room}.value === '2' && {taken} === '0,1,0'")
    enter(load, 0)
    wait(browser, f"{room}.value === '3' && document.getElementById('reset').disabled")
    enter(room, 1)
    wait(browser, f"{taken} === '0,0.5,0'")
    enter(load, -2)
    wait(browser, "document.querySelectorAll('#features .moved').length === 2")
    assert browser.run(f"{room}.value") == "1"
    assert browser.complaints() == []
    server.shutdown()
    server.server_close()


@needs_browser
def test_many_controls_do_not_push_the_decision_away(browser):
    """A plan may have a limit for each of its rows."""
    model = made()
    features = FeatureMap(tuple(Feature(f"load {k}") for k in range(40)))
    n, wide = model.plan.problem.n_variables, np.zeros((12, 40))
    samples = dataclasses.replace(model.samples, contexts=wide)
    model = dataclasses.replace(model, features=features, coef=np.zeros((n, 40)), samples=samples)
    server = serve(Explorer(model, samples))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for width, height in SCREENS.values():
        browser.open(f"http://127.0.0.1:{server.server_address[1]}/", width, height)
        wait(browser, "document.body.dataset.ready === 'yes'")
        assert browser.run("document.querySelectorAll('#features input[type=range]').length") == 40
        top = "document.querySelector('.%s').getBoundingClientRect().top + scrollY"
        assert browser.run(top % "decision") < 1000
        assert browser.run(top % "alternatives") < 1800
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []
    server.shutdown()
    server.server_close()
