"""The command line: help, exit codes, and errors as one sentence without a traceback."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from revealed import __version__, cli
from revealed.cli import entry, registry
from revealed.errors import InputError

COMMANDS = [
    [],
    ["demo"],
    ["data"],
    ["data", "boards"],
    ["bench"],
    ["bench", "projection"],
    ["bench", "netlib"],
]
WRONG = [[], ["nonsense"], ["bench"], ["demo", "--seed", "-1"], ["demo", "--seed", "x"]]
OURS = [ModuleNotFoundError("x", name="revealed.gone"), OSError("boom"), KeyError()]


def fake_command(monkeypatch, raises=None, returns=0):
    """Make `revealed demo` do as told, whatever the demonstration does."""

    def run(args):
        if raises is not None:
            raise raises
        return returns

    module = SimpleNamespace(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(entry.importlib, "import_module", lambda name: module)


def exit_code(argv):
    with pytest.raises(SystemExit) as stop:
        cli.main(argv)
    return stop.value.code


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_gives_an_example_and_the_exit_codes(command, capsys):
    assert exit_code([*command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "example:\n  revealed" in out
    assert "exit codes:" in out


def test_version(capsys):
    assert exit_code(["--version"]) == 0
    assert capsys.readouterr().out == f"revealed {__version__}\n"


@pytest.mark.parametrize("argv", WRONG, ids=" ".join)
def test_wrong_arguments(argv, capsys):
    assert exit_code(argv) == 2
    assert "usage: revealed" in capsys.readouterr().err


def test_the_command_decides_the_exit_code(monkeypatch):
    fake_command(monkeypatch, returns=1)
    assert cli.main(["demo"]) == 1


@pytest.mark.parametrize(
    "error, words",
    [
        (InputError("`margin` is -1; give 0 or more."), "`margin` is -1; give 0 or more."),
        (ModuleNotFoundError("x", name="rich.console"), "pip install 'revealed[cli]'"),
        (ModuleNotFoundError("x", name="osqp"), "pip install 'revealed-experiments'"),
        (FileExistsError(17, "File exists", "out"), "Cannot use 'out': File exists."),
    ],
    ids=["input", "cli extra", "bench extra", "file"],
)
def test_errors_are_one_sentence(monkeypatch, capsys, error, words):
    fake_command(monkeypatch, raises=error)
    assert cli.main(["demo"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("revealed: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("error", OURS)
def test_our_own_faults_are_not_hidden(monkeypatch, error):
    fake_command(monkeypatch, raises=error)
    with pytest.raises(type(error)):
        cli.main(["demo"])


def test_interrupt(monkeypatch, capsys):
    fake_command(monkeypatch, raises=KeyboardInterrupt())
    assert cli.main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["doctor", "--json"], ["doctor", "--json", "--nonsense"]])
def test_machines_are_told_of_wrong_arguments_in_json(argv, capsys):
    assert exit_code(argv) == 2
    out, err = capsys.readouterr()
    assert "--problem" in json.loads(out)["error"]
    assert "usage: revealed doctor" in err


@pytest.mark.parametrize(
    "error, code, words",
    [
        (InputError("It is empty."), 2, "It is empty."),
        (FileNotFoundError(2, "No such file", "x"), 2, "Cannot use 'x': No such file."),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_machines_are_told_of_trouble_in_json(monkeypatch, capsys, error, code, words):
    def add_arguments(parser):
        parser.add_argument("--json", action="store_true")

    def run(args):
        raise error

    module = SimpleNamespace(add_arguments=add_arguments, run=run)
    monkeypatch.setattr(entry.importlib, "import_module", lambda name: module)
    assert cli.main(["demo", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {"error": words}


WAITING = """
import sys, time, types
numpy = types.ModuleType("numpy")
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("importing", flush=True)
            time.sleep(600)
sys.meta_path.insert(0, Slow())
from revealed.cli import main
sys.exit(main(["doctor"]))
"""


def test_an_interrupt_while_packages_come_in_is_quiet():
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "revealed: interrupted\n")


FAULTY = """
import sys, types, revealed.cli as cli
from revealed.cli import entry
def add_arguments(parser): parser.add_argument("--json", action="store_true")
def run(args): raise KeyError("boom")
module = types.SimpleNamespace(add_arguments=add_arguments, run=run)
entry.importlib = types.SimpleNamespace(import_module=lambda name: module)
sys.argv = ["revealed", "demo", "--json"]
sys.exit(cli.main())
"""


def test_a_fault_of_our_own_is_not_taken_for_a_finding():
    done = subprocess.run([sys.executable, "-c", FAULTY], capture_output=True, text=True)
    assert done.returncode == 70
    assert "KeyError: 'boom'" in done.stderr
    assert "fault of our own" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("command, code", [(["--help"], 141), (["tour"], 0)])
def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path, command, code):
    """Nobody reads the pipe; the output is so short that it is written at the very end."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "revealed", *command],
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_to_a_full_disk_is_one_sentence():
    code = FAULTY.replace('raise KeyError("boom")', 'print("done"); return 0')
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "revealed: The output cannot be written: No space left on device.\n"


def test_every_optional_package_names_an_extra_that_exists():
    import tomllib
    from pathlib import Path

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    extras["cli"] += extras["plot"]  # one extra that brings another
    for package, requirement in registry.BROUGHT_BY.items():
        extra = requirement.removeprefix("revealed[").removesuffix("]")
        assert any(wanted.startswith(package) for wanted in extras[extra])


def test_module_and_command_are_the_same():
    command = [sys.executable, "-m", "revealed", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"revealed {__version__}\n")
