"""`revealed bench report` on folders in every state: the page says what is missing."""

import json
import re

import pytest
from report_page import Page, make_report
from report_runs import make_config, make_run, one_part, write_runs

from revealed.errors import InputError

HOSTILE = [
    "<script>document.title='taken'</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></svg></script><b>",
    "$\\frac{1}{2$ & `code`",
    "bell\x07 null\x00 turned\u202earound \ud800",
    "x" * 400,
    "日本語 🙂",
]


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    """Figures go into the page only: the files take most of the time."""
    monkeypatch.setattr(
        "revealed_experiments.report.drawing.Gallery.save", lambda self, name, drawn: ""
    )


def stripped(run):
    """A run with no more than what a choice needs."""
    kept = ("part", "label", "method", "optimiser", "seed")
    final = {split: {"decision_loss": 1.0} for split in ("train", "valid")}
    config = {name: run["config"][name] for name in kept}
    return {"config": config, "status": "finished", "final": final}


def from_the_future(run):
    run = {**run, "device": {"gpu": ["H200"]}, "telemetry": None}
    run["config"] = {**run["config"], "precision": "fp8", "method": {"name": "oracle-2031"}}
    run["epochs"] = [{**row, "gpu_seconds": 1.0, "epoch": row["epoch"]} for row in run["epochs"]]
    return run


FOLDERS = {
    "no run": [],
    "one run": one_part(labels=("ST",)),
    "one seed": one_part(),
    "two seeds": one_part(seeds=(0, 1)),
    "only ours": one_part(labels=("ours, ERM", "ours, POCS")),
    "one part of the yardstick": one_part("cave degree 4"),
    "yardstick without ours": one_part("cave degree 4", labels=("ST", "SPO+")),
    "a degree never published": one_part("cave degree 8"),
    "only margins": one_part("margins path", labels=("margin 1",)),
    "only kernels": one_part("kernels path", labels=("ours, POCS, linear",)),
    "only failed": [
        make_run(make_config("paper path", "ST"), status="failed", message="MemoryError")
    ],
    "a part never heard of": one_part("warcraft 12x12"),
    "from the future": [from_the_future(run) for run in one_part()],
    "bare": [stripped(run) for run in one_part()],
    "one seed lost": [*one_part(seeds=(0, 1)), make_run(make_config("paper path", "BB", 0))],
    "null figures": [{**run, "epoch_seconds": None, "epochs": None} for run in one_part()],
    "zero losses": [make_run(make_config("paper path", "ours, ERM", s), level=0.0) for s in (0, 1)],
    "wide apart": [
        make_run(make_config("paper path", f"m{k}"), level=10.0**k) for k in range(-4, 9)
    ],
}  # fmt: skip


@pytest.mark.parametrize("runs", FOLDERS.values(), ids=FOLDERS)
def test_any_folder_gives_a_page(tmp_path, runs):
    code, markup = make_report(write_runs(tmp_path, runs))
    page = Page(markup)
    assert code == 0
    for run in runs:
        shown = [
            e for e in page.elements if run["config"]["label"] in e.text and e.name != "script"
        ]
        assert shown


def test_an_empty_folder_is_told_in_a_sentence(tmp_path):
    assert (
        "There is no finished run in this folder yet." in make_report(write_runs(tmp_path, []))[1]
    )


def test_failed_runs_alone_are_told_as_such(tmp_path):
    runs = FOLDERS["only failed"]
    page = Page(make_report(write_runs(tmp_path, runs))[1])
    assert page.rows("Runs that did not finish")[0]["what it said"] == "MemoryError"
    told = {e.text for e in page.named("li")}
    assert "ST on paper path: 1 candidate, none eligible (1 failed)." in told


@pytest.mark.parametrize("name", ["runs/broken.json", "sweep.json"])
@pytest.mark.parametrize(
    "content",
    [b'{"config": {"part": "pa', b"", b"[1, 2]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a": 1}'],
    ids=["cut off", "empty", "a list", "null", "not text", "deep", "another object"],
)
def test_a_file_that_cannot_be_used_is_named_and_left_out(tmp_path, name, content):
    folder = write_runs(tmp_path, one_part())
    (folder / name).write_bytes(content)
    page = Page(make_report(folder)[1])
    notices = [e.text for e in page.named("div", role="note")]
    if not (name == "sweep.json" and content == b'{"a": 1}'):  # of no use, but whole
        assert f"{name} was left out" in notices[0]
    assert len(page.rows("The paper's path problem: losses when training ends")) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"config": None},
        {"config": {}},
        {"config": {**make_config("paper path", "ST"), "part": 3}},
        {"config": {**make_config("paper path", "ST"), "seed": [1]}},
        {"config": {**make_config("paper path", "ST"), "step": "large"}},
        {"config": {**make_config("paper path", "ST"), "method": "st"}},
        {"status": None},
        {"final": None},
        {"final": {"valid": {"decision_loss": "low"}}},
    ],
    ids=lambda change: json.dumps(change)[:40],
)
def test_a_run_that_cannot_be_compared_is_named_and_left_out(tmp_path, change):
    strange = {**make_run(make_config("paper path", "ST", 7)), **change}
    folder = write_runs(tmp_path, [*one_part(), strange])
    page = Page(make_report(folder)[1])
    (notice,) = page.named("div", role="note")
    assert "runs/run-0002.json was left out: " in notice.text
    assert len(page.rows("The paper's path problem: losses when training ends")) == 2


def test_missing_sweep_is_noticed(tmp_path):
    folder = write_runs(tmp_path, one_part(), sweep=None)
    assert "sweep.json is missing" in make_report(folder)[1]


@pytest.mark.parametrize("state", ["absent", "a file", "another folder"])
def test_a_folder_of_something_else_is_refused(tmp_path, state):
    path = tmp_path / "here"
    if state == "a file":
        path.write_text("runs", "utf-8")
    if state == "another folder":
        path.mkdir()
        (path / "notes.txt").write_text("", "utf-8")
    with pytest.raises(InputError, match="revealed bench synthetic"):
        make_report(path)
    assert not (path / "report.html").exists()


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_stay_words(tmp_path, words):
    config = make_config(words, words, optimiser=words, method={"name": words, words: words})
    runs = [make_run(config), make_run({**config, "seed": 1}, status="failed", message=words)]
    runs += one_part("cave degree 4", labels=("ours, ERM", words))
    runs[-2]["config"]["label"] = f"ours {words}"
    for run in runs:
        run["command"] = words
    sweep = {name: words for name in ("experiment", "command", "when")}
    sweep |= {"hardware": {words: words}, "settings": [words]}
    code, markup = make_report(write_runs(tmp_path, runs, sweep))
    page = Page(markup)
    assert code == 0
    assert len(page.named("script")) == 1
    assert not page.named("img")
    assert not page.named("b", class_=None) or "Rule." in {e.text for e in page.named("b")}
    assert not any(key.startswith("on") for e in page.elements for key in e.attributes)
    assert not re.search("[\x00\x07\u202e\ud800]", markup)
