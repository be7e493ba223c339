"""The lock of the first window: others see it, a killed window and a damaged file leave none behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.ui.other_windows import WindowLock

ROOT = Path(__file__).parents[3]

ELSEWHERE = """
import os, sys
from pathlib import Path
from app.ui.other_windows import WindowLock
print(WindowLock(Path(sys.argv[1])).is_first, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""


def elsewhere(path: Path, ending: str = "") -> tuple[int, str]:
    command = [sys.executable, "-c", ELSEWHERE, str(path), ending]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    return answer.returncode, answer.stdout.strip()


def test_a_second_window_is_not_the_first_until_that_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "window.lock"
    lock = WindowLock(path)
    assert lock.is_first
    assert elsewhere(path) == (0, "False")
    lock.release()
    assert elsewhere(path) == (0, "True")


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
def test_a_killed_window_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "window.lock"
    assert elsewhere(path, "killed") == (-signal.SIGKILL, "True")
    assert WindowLock(path).is_first


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 5000, b"-1\n\n\n", b"999999999\n"])
def test_a_damaged_lock_holds_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "window.lock"
    path.write_bytes(content)
    lock = WindowLock(path)
    assert lock.is_first
    assert elsewhere(path) == (0, "False")
    lock.release()


def test_a_folder_that_cannot_be_made_makes_every_window_the_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert WindowLock(tmp_path / "file" / "window.lock").is_first
