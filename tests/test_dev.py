"""`dev.py` on a machine we make up: what is installed and told, and that a second start does nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tools import system_packages

ROOT = Path(__file__).parents[1]


@pytest.fixture
def dev(tmp_path, monkeypatch) -> ModuleType:
    """dev.py with all its folders in a copy of the few files it looks at, and no command really run."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("pyproject.toml", "CMakeLists.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "engine/kernels/source").mkdir(parents=True)
    (tmp_path / "engine/kernels/source/add.py").write_text("# a kernel\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "stamp")
    monkeypatch.setattr(module, "LOG", tmp_path / "build" / "setup.log")
    monkeypatch.setattr(module, "COMPILED", tmp_path / "engine/kernels/compiled")
    monkeypatch.setattr(module.system_packages, "missing", lambda *_: [])
    module.commands = []

    def logged(command, what):
        module.commands.append(" ".join(command))
        if "venv" in command:
            (tmp_path / ".venv").mkdir(exist_ok=True)
            monkeypatch.setattr(module, "venv_version", module.version_text)
        if "-e" in command:
            (tmp_path / "engine/kernels/compiled/x86_64_v2").mkdir(parents=True, exist_ok=True)
            (tmp_path / "engine/kernels/compiled/x86_64_v2/add.so").touch()

    monkeypatch.setattr(module, "logged", logged)
    monkeypatch.setattr(module, "venv_version", lambda: "")
    return module


def test_the_first_setup_does_everything_and_the_second_nothing(dev, capsys):
    dev.set_up(for_window=False, for_tests=False)
    words = ("-m venv", "--upgrade pip", "pythran", "-e .[test]")
    for word, command in zip(words, dev.commands, strict=True):
        assert word in command
    assert capsys.readouterr().out.count(" s\n") == 3, "each step says how long it took"
    dev.commands.clear()
    dev.set_up(for_window=False, for_tests=False)
    assert dev.commands == [] and capsys.readouterr().out == ""


@pytest.mark.parametrize("changed", ["pyproject.toml", "CMakeLists.txt", "engine/kernels/source/add.py"])
def test_a_changed_source_is_built_again_but_the_environment_stays(dev, changed, tmp_path):
    dev.set_up(for_window=False, for_tests=False)
    dev.commands.clear()
    with (tmp_path / changed).open("a") as file:
        file.write("# changed\n")
    dev.set_up(for_window=False, for_tests=False)
    assert len(dev.commands) == 2 and "-e .[test]" in dev.commands[-1]


def test_tests_add_the_checked_kernels_and_running_does_not_take_them_away(dev):
    dev.set_up(for_window=False, for_tests=False)
    dev.commands.clear()
    dev.set_up(for_window=False, for_tests=True)
    assert "CAUSERIE_CHECKED=ON" in dev.commands[-1]
    dev.commands.clear()
    dev.set_up(for_window=False, for_tests=True)
    dev.set_up(for_window=False, for_tests=False)
    assert dev.commands == []


def test_lost_kernels_are_built_again(dev, tmp_path):
    dev.set_up(for_window=False, for_tests=False)
    (tmp_path / "engine/kernels/compiled/x86_64_v2/add.so").unlink()
    dev.commands.clear()
    dev.set_up(for_window=False, for_tests=False)
    assert "-e .[test]" in dev.commands[-1]


def test_a_failed_installation_is_tried_again(dev, monkeypatch):
    good = dev.logged

    def fail(command, what):
        good(command, what)
        if "-e" in command:
            raise dev.StepFailed("no network")

    monkeypatch.setattr(dev, "logged", fail)
    with pytest.raises(dev.StepFailed):
        dev.set_up(for_window=False, for_tests=False)
    monkeypatch.setattr(dev, "logged", good)
    dev.commands.clear()
    dev.set_up(for_window=False, for_tests=False)
    assert "-e .[test]" in dev.commands[-1]


def test_without_a_compiler_one_line_says_so(dev, monkeypatch):
    monkeypatch.setattr(dev.system_packages, "has_compiler", lambda: False)
    with pytest.raises(dev.StepFailed, match=r"C\+\+ compiler; install g\+\+"):
        dev.set_up(for_window=False, for_tests=False)


def test_without_pythons_headers_one_line_says_so(dev, monkeypatch):
    monkeypatch.setattr(dev.system_packages, "has_headers", lambda: False)
    with pytest.raises(dev.StepFailed, match="install python3-dev"):
        dev.set_up(for_window=False, for_tests=False)


def test_progress_of_a_build_comes_out_of_its_log(dev):
    assert dev.logged_quietly([sys.executable, "-c", "print('[1/9] old'); print('[2/9] new')"])
    assert dev.build_progress(0) == " 2 of 9" and dev.build_progress(dev.LOG.stat().st_size) == ""
    assert not dev.logged_quietly([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.parametrize(("display", "expected"), [(True, ["m.gguf"]), (False, ["chat", "m.gguf"])])
def test_run_opens_the_window_or_chats_and_says_why(dev, monkeypatch, capsys, display, expected):
    called = []
    monkeypatch.setattr(dev.system_packages, "has_display", lambda: display)
    monkeypatch.setattr(dev, "set_up", lambda **_: None)
    monkeypatch.setattr(dev, "get_starter", lambda: "m.gguf")
    monkeypatch.setattr(dev, "call", lambda command: called.append(command[3:]) or 0)
    assert dev.run([]) == 0 and called == [expected]
    assert ("no display" in capsys.readouterr().out) == (not display)


@pytest.mark.parametrize(("style", "tests", "status"), [(0, 0, 0), (1, 0, 1), (0, 3, 3), (1, 3, 3)])
def test_the_status_of_test_is_right_and_pytest_comes_last(dev, monkeypatch, style, tests, status):
    called = []
    monkeypatch.setattr(dev, "set_up", lambda **_: None)

    def call(command):
        called.append(command[2])
        return tests if command[2] == "pytest" else style

    monkeypatch.setattr(dev, "call", call)
    assert dev.test([]) == status and called == ["ruff", "mypy", "pytest"]
    called.clear()
    assert dev.test(["-k", "one"]) == tests and called == ["pytest"]


def test_wrong_commands_print_the_help():
    for arguments, status in ((["nonsense"], 2), ([], 2), (["--help"], 0)):
        result = subprocess.run(
            [sys.executable, ROOT / "dev.py", *arguments], capture_output=True, text=True, check=False
        )
        assert result.returncode == status and "run [FILE]" in result.stdout


def test_it_needs_the_standard_library_only():
    command = [sys.executable, "-S", str(ROOT / "dev.py"), "--help"]  # -S: no installed packages
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


# ---- system packages


@pytest.fixture
def debian(monkeypatch):
    """A bare Debian as root: nothing there, apt knows the names of version 13."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(system_packages, "has_compiler", lambda: False)
    monkeypatch.setattr(system_packages, "has_headers", lambda: True)
    monkeypatch.setattr(system_packages, "_shared_libraries", lambda: "")
    monkeypatch.setattr(system_packages, "_font_files", lambda: set())
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: name if "apt" in name else None)
    monkeypatch.setattr(system_packages.os, "geteuid", lambda: 0)

    def known(command, **_):
        name = command[-1]
        there = not name.startswith("libglib2.0-0") or name.endswith("t64")
        return subprocess.CompletedProcess(command, 0, f"{name}:\n  Candidate: 1\n" if there else "")

    monkeypatch.setattr(system_packages.subprocess, "run", known)


def test_what_is_missing_depends_on_what_is_to_be_done(debian, monkeypatch):
    assert system_packages.missing(False, False, False) == ["g++"]
    window = system_packages.missing(False, True, False)
    assert {"g++", "libegl1", "libxcb-cursor0", "fonts-dejavu-core"} <= set(window) and "xvfb" not in window
    monkeypatch.setattr(system_packages, "has_headers", lambda: False)
    assert system_packages.missing(False, False, False) == ["g++", "python3-dev"]
    assert {"xvfb", "xauth", "imagemagick"} <= set(system_packages.missing(False, True, True))


def test_root_installs_by_the_names_that_apt_knows(debian):
    commands: list[list[str]] = []
    assert (
        system_packages.install(["g++", "libglib2.0-0"], lambda command: not commands.append(command)) == ""
    )
    assert [command[:2] for command in commands] == [["apt-get", "update"], ["apt-get", "install"]]
    assert commands[1][-2:] == ["g++", "libglib2.0-0t64"]


def test_others_are_told_in_one_line(debian, monkeypatch):
    monkeypatch.setattr(system_packages.os, "geteuid", lambda: 1000)
    told = system_packages.install(["g++", "libglib2.0-0"], lambda _: pytest.fail("nothing is run"))
    assert "apt-get install g++ libglib2.0-0t64" in told and "\n" not in told
    monkeypatch.setattr(system_packages.shutil, "which", lambda _: None)
    assert "g++" in system_packages.install(["g++"], lambda _: pytest.fail("nothing is run"))


def test_a_failing_apt_is_told(debian):
    assert "update failed" in system_packages.install(["g++"], lambda _: False)
    assert "could not install: g++" in system_packages.install(["g++"], lambda command: "update" in command)
