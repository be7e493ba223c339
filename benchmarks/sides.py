"""One side of a comparison: a process of its own that holds a model and measures what it is told to.

The protocol is JSON by line.  The first argument of the process is its task (model, context, threads,
first_prompt: tokens of a short prompt).  It answers once the first token is there:
``{"load_to_first_token": seconds, "version": text}``.  Then each line on its input is an order:
``{"what": "read" or "write", "tokens": n, "depth": tokens already in the cache}``, answered by
``{"seconds": s}``; or ``{"what": "memory"}``, answered by ``{"peak": bytes}``.  It ends with its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
FIRST_PROMPT = 8


@dataclass(frozen=True)
class Program:
    """What to start for one side: name, command, and variables of the environment."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def causerie(level: str = "") -> Program:
    """This checkout, by the Python that runs now; level: a CPU level instead of the best."""
    chosen = {"CAUSERIE_CPU_LEVEL": level} if level else {}
    return Program("causerie", (sys.executable, "-m", "benchmarks.run_causerie"), chosen)


def llama(python: Path) -> Program:
    """llama.cpp, by the Python of its environment."""
    return Program("llama.cpp", (str(python), str(Path(__file__).with_name("run_llama.py"))))


class Side:
    """A started program.  A context manager; leaving it ends the process."""

    def __init__(self, program: Program, model: Path, context: int, threads: int) -> None:
        """Starts the process and waits for its first token.

        Raises RuntimeError with the program's own words where it fails.
        """
        self.name = program.name
        task = {"model": str(model), "context": context, "threads": threads, "first_prompt": FIRST_PROMPT}
        self._complaints = tempfile.TemporaryFile(mode="w+", encoding="utf-8")  # noqa: SIM115 closed with self
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [*program.command, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            cwd=ROOT,
            env={**os.environ, **program.environment},
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
