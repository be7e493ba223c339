"""What the command line promises whatever the command: exit statuses, streams, text, no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

import app
from app import command_line, crash_report, paths
from app.__main__ import run_program
from app.commands import window
from app.errors import WindowError
from engine.errors import Cancelled, CauserieError
from tests.helpers.run_app import ROOT, run_app
from tests.helpers.tiny_model import N_TOKENS, write_tiny_model


def test_version_and_help():
    result = run_app("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"causerie {app.__version__}\n", "")
    result = run_app("--help")
    assert result.returncode == 0 and all(name in result.stdout for name in command_line.COMMANDS)


@pytest.mark.parametrize("name", [*command_line.COMMANDS, "--selftest"])
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as left:
        run_program([name, "--help"])
    assert left.value.code == 0
    assert "usage: causerie" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-option"],
        ["nonsense"],
        ["info"],
        ["info", "a.gguf", "b.gguf"],
        ["tokenize", "a.gguf"],
        ["complete", "a.gguf"],
        ["complete", "a.gguf", "-p", "x", "-n", "many"],
        ["complete", "a.gguf", "-p", "x", "--top-p", "2"],
        ["complete", "a.gguf", "-p", "x", "--temp", "nan"],
        ["chat", "a.gguf", "--json"],
        ["chat", "a.gguf", "--mess", "x"],
        ["logits", "a.gguf", "-p", "x", "--top", "0"],
        ["info", "a.gguf", "-c", "0"],
        ["info", "a.gguf", "-t", "0"],
        ["bench", "a.gguf", "-p", "0"],
        ["get"],
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, capsys):
    try:
        status = run_program(arguments)
    except SystemExit as error:
        status = error.code
    out, err = capsys.readouterr()
    assert status == 2 and err and not out


@pytest.mark.parametrize("command", ["info", "tokenize", "complete", "logits", "chat", "bench"])
def test_a_missing_file_a_folder_and_a_stranger_are_errors_with_a_next_step(command, tmp_path, capsys):
    (tmp_path / "text.gguf").write_text("no model at all")
    extra = {"tokenize": ["text"], "complete": ["-p", "x"], "logits": ["-p", "x"], "chat": ["-m", "x"]}
    for path in (tmp_path / "none.gguf", tmp_path, tmp_path / "text.gguf"):
        assert run_program([command, str(path), *extra.get(command, []), *backend(command)]) == 1
        out, err = capsys.readouterr()
        first, *rest = err.splitlines()
        assert first.startswith("error: ") and len(rest) == 1 and not out


@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), OSError(36, "Too long"), None])
def test_a_path_the_system_refuses_to_look_at_is_only_an_error(failure, monkeypatch, capsys):
    """Folders that may not be entered, and names no file can have."""
    path = "x" * 5000

    def refuse(*_: object, **__: object) -> None:
        raise failure

    if failure:
        monkeypatch.setattr(os, "stat", refuse)
    assert run_program(["info", path, "--backend", "fake"]) == 1
    monkeypatch.undo()
    err = capsys.readouterr().err
    assert "cannot be read" in err or "may not be read" in err
    assert not list(paths.log_folder().glob("crash-*.txt"))


def backend(command: str) -> list[str]:
    return [] if command == "tokenize" else ["--backend", "fake"]


def test_an_unforeseen_fault_is_told_without_a_traceback_and_written_down(monkeypatch, capsys):
    def fail(_):
        raise ZeroDivisionError("a secret\nof the program")

    monkeypatch.setattr(command_line, "run", fail)
    assert run_program([]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ") and "Traceback" not in err and "ZeroDivisionError" in err
    (report,) = paths.log_folder().glob("crash-*.txt")
    assert str(report) in err
    assert "a secret" in report.read_text() and app.__version__ in report.read_text()


def test_a_report_that_cannot_be_saved_is_no_second_fault(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CAUSERIE_HOME", str(tmp_path / "file"))
    assert "could not be saved" in crash_report.write(KeyError("x")).advice


@pytest.mark.parametrize(
    ("raised", "status", "told"),
    [
        (CauserieError("It broke.", "Mend it."), 1, "error: It broke.\nMend it.\n"),
        (MemoryError(), 1, "error: The memory of this computer is used up."),
        (Cancelled("Stopped."), 130, "error: Stopped."),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_every_way_out_has_its_status(monkeypatch, capsys, raised, status, told):
    def fail(_):
        raise raised

    monkeypatch.setattr(command_line, "run", fail)
    assert run_program([]) == status
    assert capsys.readouterr().err.startswith(told)


def test_a_reader_that_leaves_early_ends_it_quietly():
    command = f"{sys.executable} -c 'import os; os.close(0)' "
    result = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m app --help | {command}; echo ${{PIPESTATUS[0]}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.strip() in ("0", "141") and result.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["info", "--help"], ["models", "--json"]])
def test_an_output_that_cannot_be_written_is_an_error_with_a_next_step(arguments):
    with open("/dev/full", "w") as full:
        streams = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        result = run_app(*arguments, env={"PYTHONUNBUFFERED": ""}, **streams)
    first, *rest = result.stderr.splitlines()
    assert result.returncode == 1 and len(rest) == 1
    assert first.startswith("error: The output could not be written")


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors with a shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(closed, tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf")
    options = "-n 3 -c 64 --backend fake"
    for arguments in (f"complete '{path}' -p hi {options}", f"chat '{path}' {options}", "models"):
        result = subprocess.run(
            ["bash", "-c", f"'{sys.executable}' -m app {arguments} {closed}"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (result.returncode, result.stderr) == (0, "")
        assert bool(result.stdout) == (">&-" not in closed.split() and not arguments.startswith("chat"))


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "C.UTF-8"])
def test_text_is_utf8_whatever_the_locale(locale, tmp_path):
    result = run_app("info", tmp_path / "Füße 👣.gguf", "--backend", "fake", env={"LC_ALL": locale})
    assert result.returncode == 1
    assert "Füße 👣.gguf" in result.stderr


def test_a_file_name_that_is_no_unicode_is_only_an_error(tmp_path):
    result = run_app("info", os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.gguf"), "--backend", "fake")
    assert result.returncode == 1 and result.stderr.startswith("error: There is no file")


def test_without_a_command_the_window_opens_with_the_file_if_given(monkeypatch):
    opened = []
    monkeypatch.setattr(window, "open_window", lambda model: opened.append(model) or 0)
    assert run_program([]) == 0 and run_program(["some/model.gguf"]) == 0
    assert [model and model.name for model in opened] == [None, "model.gguf"]


def test_without_a_display_the_window_says_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WindowError, match="no display") as caught:
        window.open_window(None)
    assert "causerie chat" in caught.value.advice


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_a_completion_with_130(tmp_path, times):
    endless: dict[str, object] = {
        "tokenizer.ggml.eos_token_id": None,
        "tokenizer.ggml.token_type": [1] * N_TOKENS,
        "tokenizer.chat_template": None,
    }
    path = write_tiny_model(tmp_path / "tiny.gguf", metadata=endless)
    command = f"complete {path} -p hi -n 1000000 -c 1000000 --backend fake".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stdout.read(1), "the reply has begun"
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and b"Traceback" not in err
