"""The parts of a comparison: speed, speed at a depth, loading; each measured in pairs of both programs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.model_files import FILES, file_path, warm
from benchmarks.pairs import Pair
from benchmarks.sides import Program, Side

TOKENS = {"read": 512, "write": 128}
CONTEXT = 1024
DEPTH = 4096
DEPTH_CONTEXT = 8192
LEAST_SECONDS = 2.0
"""What is over sooner is measured again, and the median taken."""

LOADING = ("load to first token, s", "start of program to first token, s", "peak memory then, MB")
"""The measures of loading, all of which are better when less."""


@dataclass(frozen=True)
class Match:
    """Two programs on one file. n_pairs: how often both are measured."""

    file: str
    ours: Program
    theirs: Program
    threads: int
    n_pairs: int

    def start(self, context: int) -> Iterator[Side]:
        """Both programs, one after the other, each in a new process that the caller closes."""
        for program in (self.ours, self.theirs):
            yield Side(program, self.path, context, self.threads)

    @property
    def path(self) -> Path:
        return file_path(self.file)

    @property
    def title(self) -> str:
        return FILES[self.file].title


Measured = Iterator[tuple[str, Pair]]
"""Names of measures with one pair each, as they come."""


def measure_speed(match: Match, whats: list[str]) -> Measured:
    """Tokens per second; every number comes from a process of its own."""
    warm(match.path)
    for number in range(match.n_pairs):
        speeds = []
        for side in match.start(CONTEXT):
            with side:
                speeds.append({what: _steady_speed(side, what, 0) for what in whats})
        for what in whats:
            pair = Pair(*(each[what] for each in speeds))
            _tell(match, number, what, pair)
            yield _name(what), pair


def measure_at_depth(match: Match, whats: list[str]) -> Measured:
    """Tokens per second behind DEPTH others, of two processes that stay: filling their caches takes long."""
    warm(match.path)
    with ExitStack() as stack:
        sides = [stack.enter_context(side) for side in match.start(DEPTH_CONTEXT)]
        for side in sides:
            side.measure("read", 1, DEPTH)
        for number in range(match.n_pairs):
            for what in whats:
                pair = Pair(*(_steady_speed(side, what, DEPTH) for side in sides))
                _tell(match, number, f"{what} at {DEPTH}", pair)
                yield f"{_name(what)}, at {DEPTH:,}", pair


def measure_loading(match: Match) -> Measured:
    """The measures LOADING, with the file in the system's memory."""
    warm(match.path)
    for number in range(match.n_pairs):
        figures = []
        for side in match.start(CONTEXT):
            with side:
                megabytes = side.peak_memory() / 1e6
                figures.append((side.load_to_first_token, side.start_to_first_token, megabytes))
        for name, ours, theirs in zip(LOADING, *figures, strict=True):
            _tell(match, number, name, Pair(ours, theirs))
            yield name, Pair(ours, theirs)


def _name(what: str) -> str:
    return f"{what} {TOKENS[what]}, tokens/s"


def _steady_speed(side: Side, what: str, depth: int) -> float:
    started = time.perf_counter()
    speeds = [side.measure(what, TOKENS[what], depth)]
    while time.perf_counter() - started < LEAST_SECONDS:
        speeds.append(side.measure(what, TOKENS[what], depth))
    return statistics.median(speeds)


def _tell(match: Match, number: int, what: str, pair: Pair) -> None:
    print(
        f"{match.title}, {what}, pair {number + 1} of {match.n_pairs}: {pair.ours:.3g} and {pair.theirs:.3g}",
        file=sys.stderr,
        flush=True,
    )
