"""The command line: help, exit codes, and errors as one sentence without a traceback."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from revealed import __version__, cli
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
    monkeypatch.setattr(cli.importlib, "import_module", lambda name: module)


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
        (ModuleNotFoundError("x", name="osqp"), "pip install 'revealed[bench]'"),
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


def test_every_optional_package_names_an_extra_that_exists():
    import tomllib
    from pathlib import Path

    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    extras["cli"] += extras["plot"]  # one extra that brings another
    for package, extra in cli.EXTRA_OF.items():
        assert any(wanted.startswith(package) for wanted in extras[extra])


def test_module_and_command_are_the_same():
    command = [sys.executable, "-m", "revealed", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"revealed {__version__}\n")
