"""The command: what it measures, what it prints, and when it writes RESULTS.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import compare as module
from benchmarks.model_files import FILES
from benchmarks.pairs import Pair
from benchmarks.parts import LOADING, Match, Measured


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Nothing is run; "measured" are the names of what would be, with constant pairs."""
    sections: list[tuple[str, str]] = []

    def speed(match: Match, whats: list[str]) -> Measured:
        yield from ((f"{what} by {match.ours.environment}", Pair(3, 2)) for what in whats)

    def depth(match: Match, whats: list[str]) -> Measured:
        yield from ((f"{what} deep", Pair(3, 2)) for what in whats)

    def loading(match: Match) -> Measured:
        yield LOADING[0], Pair(3, 2)

    monkeypatch.setattr(module, "measure_speed", speed)
    monkeypatch.setattr(module, "measure_at_depth", depth)
    monkeypatch.setattr(module, "measure_loading", loading)
    monkeypatch.setattr(module, "peer_python", lambda flavour: Path(flavour))
    monkeypatch.setattr(module, "system_info", lambda python: "AVX2 = 1")
    monkeypatch.setattr(module, "write_section", lambda name, text: sections.append((name, text)))
    return sections


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["compare", *arguments])
    return module.main()


def test_everything(written: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == 0
    [(name, text)] = written
    assert name == "speed"
    for file in FILES.values():
        assert f"| {file.title} | read by {{}} | 3 | 2 | **1.50** |" in text
        assert f"| {file.title} | {LOADING[0]} | 3 | 2 | **0.67** |" in text
        assert (f"| {file.title} | write deep |" in text) == file.is_large
        narrow = "write by {'CAUSERIE_CPU_LEVEL': 'x86-64-v3'}, AVX2"
        assert (f"| {file.title} | {narrow} |" in text) == file.is_large


def test_a_part_of_it_is_printed_only(
    written: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--files", "gemma", "--only", "write,depth") == 0
    assert written == []
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["write by {}"]
    run(monkeypatch, "--files", "gemma", "--only", "write", "--keep")
    assert len(written) == 1


@pytest.mark.parametrize("wrong", [["--files", "gpt"], ["--only", "write,fly"], ["--pairs", "0"]])
def test_wrong_usage(
    written: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, wrong: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *wrong)
    assert caught.value.code == 2


def test_a_program_that_fails_is_told_without_a_traceback(
    written: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(flavour: str) -> Path:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(module, "peer_python", fail)
    assert run(monkeypatch) == 1
    assert capsys.readouterr().err.strip() == "no compiler"
