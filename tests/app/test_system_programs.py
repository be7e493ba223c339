"""What a started program sees is asked of a started program."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.system_programs import system_libraries

ASK = "import os; print(os.environ.get('LD_LIBRARY_PATH'))"


def seen_by_a_program() -> str:
    return subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/unpacked")
    monkeypatch.delenv("LD_LIBRARY_PATH_ORIG", raising=False)


def test_the_single_file_hides_its_libraries(frozen):
    with system_libraries():
        assert seen_by_a_program() == "None"
    assert seen_by_a_program() == "/unpacked", "our own child processes need them again"


def test_what_the_person_had_set_is_given_back(frozen, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/theirs")
    with pytest.raises(RuntimeError), system_libraries():
        assert seen_by_a_program() == "/theirs"
        raise RuntimeError
    assert seen_by_a_program() == "/unpacked", "whatever happened inside"


def test_from_source_nothing_is_changed(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/not-ours")
    with system_libraries():
        assert os.environ["LD_LIBRARY_PATH"] == "/theirs"
