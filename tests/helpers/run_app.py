"""Runs the command line in this process or, where that matters, in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run_app(
    *arguments: str | Path, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`python -m app` with these arguments; text is UTF-8; env is added to this process's."""
    return subprocess.run(
        [sys.executable, "-m", "app", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        encoding="utf-8",
        errors="surrogateescape",
        timeout=120,
        check=False,
        **{"capture_output": True, **options},
    )
