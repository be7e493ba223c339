"""One side of a comparison: a process of its own that holds a model and measures what it is told to.

The protocol is JSON by line.  The first argument of the process is its task, which it answers once the first
token is there.  Then each line on its input is an order, until its input ends.  Task, orders and answers:

    {"model": path, "context": tokens, "threads": n, "first_prompt": tokens of a short prompt,
     "settings": {the program's own}}          answer: {"load_to_first_token": seconds, "version": text}
    {"what": "read" or "write", "tokens": n, "depth": tokens already in the cache}     answer: {"seconds": s}
    {"what": "memory"}                                                                 answer: {"peak": bytes}
    {"what": "logits", "ids": [id, …], "chunk": most ids read at once, "file": name}   answer: {}

The last one leaves float32[ids, vocabulary] in the file, as NumPy saves it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
FIRST_PROMPT = 8


@dataclass(frozen=True)
class Program:
    """What to start for one side: name, command, variables of the environment, its own part of the task."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)


def causerie(level: str = "", **settings: object) -> Program:
    """This checkout, by the Python that runs now.

    level: a CPU level instead of the best.  settings: of `LoadSettings`, beside context and threads.
    """
    chosen = {"CAUSERIE_CPU_LEVEL": level} if level else {}
    return Program("Causerie", (sys.executable, "-m", "benchmarks.run_causerie"), chosen, settings)


def llama(python: Path) -> Program:
    """llama.cpp, by the Python of its environment."""
    return Program("llama.cpp", (str(python), str(Path(__file__).with_name("run_llama.py"))))


def _clean_environment() -> dict[str, str]:
    """Without what the engine, once imported here, says about waiting threads: each program has its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}


class Side:
    """A started program.  A context manager; leaving it ends the process."""

    def __init__(self, program: Program, model: Path, context: int, threads: int) -> None:
        """Starts the process and waits for its first token.

        Raises RuntimeError with the program's own words where it fails.
        """
        self.name = program.name
        task = {
            "model": str(model),
            "context": context,
            "threads": threads,
            "first_prompt": FIRST_PROMPT,
            "settings": program.settings,
        }
        self._complaints = tempfile.TemporaryFile(mode="w+", encoding="utf-8")  # noqa: SIM115 closed with self
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [*program.command, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            cwd=ROOT,
            env=_clean_environment() | program.environment,
        )
        try:
            answer = self._read_answer()
        except BaseException:
            self.close()
            raise
        self.start_to_first_token = time.perf_counter() - started
        self.load_to_first_token = float(answer["load_to_first_token"])
        self.version = str(answer["version"])

    def measure(self, what: str, tokens: int, depth: int = 0) -> float:
        """Tokens per second.  what: read or write."""
        return tokens / float(self._order(what=what, tokens=tokens, depth=depth)["seconds"])

    def peak_memory(self) -> int:
        """The most bytes of memory so far, mapped files included."""
        return int(self._order(what="memory")["peak"])

    def logits(self, ids: Sequence[int], chunk: int) -> NDArray[np.float32]:
        """float32[ids, vocabulary]: after each id, reading at most chunk ids at once."""
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "logits.npy")
            self._order(what="logits", ids=list(ids), chunk=chunk, file=file)
            logits: NDArray[np.float32] = np.load(file)
        return logits

    def _order(self, **order: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise RuntimeError(self._what_it_said()) from None
        return self._read_answer()

    def _read_answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._what_it_said())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _what_it_said(self) -> str:
        self._process.wait()
        self._complaints.seek(0)
        return f"{self.name} ended with status {self._process.returncode}:\n{self._complaints.read()[-2000:]}"

    def close(self) -> None:
        """Ends the process and waits for it.  May be called twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()
        self._complaints.close()

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
