"""How long a person waits for the first word: from the start of a new process to the first token it shows."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from app.paths import is_frozen
from engine.errors import CauserieError

PROMPT = "Hello"


def seconds_to_first_token(model: Path, loading_options: Sequence[str]) -> float:
    """Starts this program once more, to continue a short prompt, and waits until it writes something.

    loading_options: command-line options of loading.  The process inherits the environment, so also the CPU
    level.  Raises `CauserieError` where it ends without a token.
    """
    program = [sys.executable] if is_frozen() else [sys.executable, "-m", "app"]
    arguments = ["complete", str(model), "-p", PROMPT, "-n", "1", "--temp", "0", *loading_options]
    started = time.perf_counter()
    with subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        # Nothing is written before the first token, and a token without text ends the process at once.
        process.stdout.read(1)
        seconds = time.perf_counter() - started
        complaint = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise CauserieError(
            "A second process of this program could not continue a prompt.", complaint or "It said nothing."
        )
    return seconds
