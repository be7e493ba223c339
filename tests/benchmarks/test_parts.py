"""The parts of a comparison: who runs when, and which numbers make a pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import parts
from benchmarks.pairs import Pair
from benchmarks.parts import LOADING, Match, measure_at_depth, measure_loading, measure_speed
from benchmarks.sides import Program

OURS, THEIRS = Program("ours", ()), Program("theirs", ())
log: list[str] = []


class FakeSide:
    """Notes what it is asked; its speed is its count of orders so far, plus 100 for theirs."""

    def __init__(self, program: Program, model: Path, context: int, threads: int) -> None:
        log.append(f"start {program.name} {context}")
        self.name = program.name
        self.base = 100.0 if program is THEIRS else 0.0
        self.load_to_first_token, self.start_to_first_token = self.base + 1, self.base + 2

    def measure(self, what: str, tokens: int, depth: int = 0) -> float:
        log.append(f"{self.name} {what} {tokens} {depth}")
        self.base += 1
        return self.base

    def peak_memory(self) -> int:
        return int(self.base + 3) * 1_000_000

    def __enter__(self) -> FakeSide:
        return self

    def __exit__(self, *_: object) -> None:
        log.append(f"end {self.name}")


@pytest.fixture
def match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Match:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr(parts, "Side", FakeSide)
    monkeypatch.setattr(parts, "file_path", lambda name: path)
    monkeypatch.setattr(parts, "LEAST_SECONDS", 0.0)
    log.clear()
    return Match("q4_0", OURS, THEIRS, threads=2, n_pairs=2)


def test_speeds_come_from_processes_in_alternation(match: Match) -> None:
    measured = list(measure_speed(match, ["write", "read"]))
    one = ["write 128 0", "read 512 0"]
    for_each = [
        [f"start {name} 1024", *(f"{name} {order}" for order in one), f"end {name}"]
        for name in ("ours", "theirs")
    ]
    assert log == 2 * (for_each[0] + for_each[1])
    assert measured == 2 * [("write 128, tokens/s", Pair(1, 101)), ("read 512, tokens/s", Pair(2, 102))]


def test_at_a_depth_both_processes_stay(match: Match) -> None:
    measured = list(measure_at_depth(match, ["write"]))
    assert log == [
        "start ours 8192",
        "start theirs 8192",
        "ours read 1 4096",
        "theirs read 1 4096",
        *2 * ["ours write 128 4096", "theirs write 128 4096"],
        "end theirs",
        "end ours",
    ]
    assert measured == [
        ("write 128, tokens/s, at 4,096", Pair(2, 102)),
        ("write 128, tokens/s, at 4,096", Pair(3, 103)),
    ]


def test_loading(match: Match) -> None:
    measured = list(measure_loading(match))
    assert measured == 2 * [
        (LOADING[0], Pair(1, 101)),
        (LOADING[1], Pair(2, 102)),
        (LOADING[2], Pair(3, 103)),
    ]
    assert log == 2 * ["start ours 1024", "end ours", "start theirs 1024", "end theirs"]


def test_what_is_over_soon_is_measured_again(match: Match, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LEAST_SECONDS", 2.0)
    ticks = iter(range(100))
    monkeypatch.setattr(parts.time, "perf_counter", lambda: float(next(ticks)))
    name, pair = next(measure_speed(match, ["write"]))
    # The clock goes on by 1 s per look: the measurements end with the second, and 1.5 is their median.
    assert (name, pair) == ("write 128, tokens/s", Pair(1.5, 101.5))
