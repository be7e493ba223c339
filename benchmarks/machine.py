"""What a result depends on: machine, date, versions, in rows for RESULTS.md."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from pathlib import Path

import numpy as np
import psutil

from engine.memory import readable_bytes, usable_cores

ROOT = Path(__file__).parents[1]


def machine_facts() -> dict[str, str]:
    """Label -> text."""
    return {
        "date": datetime.date.today().isoformat(),
        "CPU": f"{cpu_name()}, {usable_cores()} cores",
        "memory": readable_bytes(psutil.virtual_memory().total),
        "system": f"{platform.system()} {platform.machine()}",
        "Python, NumPy": f"{platform.python_version()}, {np.__version__}",
        "commit": commit(),
    }


def cpu_name() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> str:
    """The commit of this checkout, with a + where files differ from it; "unknown" where there is no git."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
