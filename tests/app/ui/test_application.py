"""The program as a process: it starts, and ends cleanly from whatever it is doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app import paths
from app.chats.store import open_store
from app.ui.application import first_model, open_chats

ROOT = Path(__file__).parents[3]

PROGRAM = """
import os, sys, threading, time
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from app.ui import application
from app.ui.main_window import MainWindow
from tests.app.ui.fake_worker import FakeWorker

state, ending = sys.argv[1:3]
qt = QApplication([])

class Hanging(FakeWorker):
    def shutdown(self, timeout=5.0):
        time.sleep(min(timeout, 60))
        return False

def factory(on_event):
    kind = Hanging if state == "hanging" else FakeWorker
    return kind(on_event, ["word "] * 100_000, 0.002 if state != "loading" else 0.5)

def fetch(report, should_stop):
    from engine.errors import Cancelled
    print("ready", flush=True)
    while not should_stop():
        time.sleep(0.05)
    raise Cancelled("")

def window():
    return next(w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow))

def act():
    if state in ("replying", "hanging"):
        window().chats.send("question")
    if state == "downloading":
        window().models._fetch = fetch
        window().models.get_starter()
    elif state == "dialog":
        window().choose_model()

def tell():
    shown = window().view.toPlainText()
    if state in ("loading", "idle", "dialog") or "word word" in shown:
        if state != "loading" or window().models.is_busy:
            timer.stop()
            print("ready", flush=True)
            if ending == "close":
                window().close()
            elif ending == "quit":
                qt.quit()

timer = QTimer()
timer.timeout.connect(tell)
timer.start(100)
QTimer.singleShot(300, act)
model = None if state in ("idle", "dialog", "downloading") else Path("m.gguf")
sys.exit(application.run_window(model, factory))
"""


def run(home: Path, state: str, ending: str) -> tuple[int, float, str]:
    """Exit status, seconds from the ending to the exit, and what was said on stderr."""
    environment = {
        **os.environ,
        "CAUSERIE_HOME": str(home),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, state, ending],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    began = time.monotonic()
    if line == "ready\n" and ending in ("SIGTERM", "SIGINT", "SIGKILL"):
        time.sleep(1.2 if ending == "SIGKILL" else 0.2)
        process.send_signal(signal.Signals[ending])
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert line == "ready\n", errors
    return process.returncode, time.monotonic() - began, errors


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ("idle", "close"),
        ("idle", "SIGINT"),
        ("loading", "close"),
        ("loading", "SIGTERM"),
        ("replying", "close"),
        ("replying", "quit"),
        ("replying", "SIGTERM"),
        ("replying", "SIGINT"),
        ("hanging", "close"),
        ("downloading", "SIGTERM"),
        ("dialog", "SIGTERM"),
    ],
)
def test_it_ends_cleanly(causerie_home: Path, state: str, ending: str) -> None:
    status, seconds, errors = run(causerie_home, state, ending)
    assert status == 0, errors
    assert seconds < 5.0
    assert "Destroyed while" not in errors
    assert "Traceback" not in errors
    if state in ("replying", "hanging"):
        store, _ = open_store(paths.chats_file())
        question, answer = store.messages(store.chats()[0].id)
        assert question.content == "question"
        assert answer.state == "stopped"
        assert answer.content.startswith("word word")


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
def test_a_killed_window_loses_at_most_the_last_second(causerie_home: Path) -> None:
    status, _, _ = run(causerie_home, "replying", "SIGKILL")
    assert status == -signal.SIGKILL
    chats = open_chats()
    assert (chats.interrupted, open_chats().interrupted) == (1, 0)
    assert "ended unexpectedly" in chats.notice
    store = chats.store
    question, answer = store.messages(store.chats()[0].id)
    assert (question.content, question.state) == ("question", "complete")
    assert answer.state == "interrupted"
    assert answer.content.count("word") > 50  # it ran for over a second at some hundred words a second


def test_a_second_window_leaves_the_running_reply_of_the_first_alone(causerie_home: Path) -> None:
    first = open_chats().store
    chat, _ = first.add_chat("question")
    reply = first.add_message(chat.id, "assistant", "so far", "partial")
    second = open_chats(is_first_window=False)
    assert (second.interrupted, second.notice) == (0, "")
    assert second.store.messages(chat.id)[-1].state == "partial"
    first.finish(reply.id, "so far and on", "complete")
    assert second.store.messages(chat.id)[-1].content == "so far and on"


def test_chats_that_cannot_be_opened_are_told_and_the_window_goes_on(causerie_home: Path) -> None:
    paths.chats_file().mkdir(parents=True)
    chats = open_chats()
    assert "cannot be opened" in chats.notice
    assert "will not be kept" in chats.notice
    chats.store.add_chat("works")


def test_the_first_model(tmp_path: Path, causerie_home: Path) -> None:
    last = tmp_path / "last.gguf"
    assert first_model(tmp_path / "asked.gguf", str(last)) == tmp_path / "asked.gguf"
    assert first_model(None, str(last)) is None
    last.touch()
    assert first_model(None, str(last)) == last


def test_the_window_imports_nothing_of_the_engine_that_is_heavy() -> None:
    code = (
        "import sys, app.ui.application; "
        "print(sorted({'numpy', 'jinja2', 'huggingface_hub', 'pygments.lexers'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True, timeout=60
    )
    assert answer.stdout.strip() == "[]"
