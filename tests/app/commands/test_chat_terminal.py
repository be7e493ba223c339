"""`causerie chat` at a real (pseudo) terminal: prompt, history of lines, Ctrl-C, Ctrl-D."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

import pytest

from app import paths
from tests.helpers.run_app import ROOT

pty = pytest.importorskip("pty", reason="Windows has no pseudo terminals")


class Terminal:
    """A chat with the tiny model at a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "app", "chat", *arguments]
        environment = {**os.environ, "TERM": "dumb", "LC_ALL": "C"}
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # a suite in the background of a shell ignores Ctrl-C, and so would what it starts
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self.seen = ""

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str) -> str:
        """What was shown since the last typing, once it holds the text."""
        end = time.monotonic() + 30
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come; seen: {self.seen!r}"
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self._ours, 4096).decode("utf-8", "replace")
                except OSError:  # Linux says so when the other side is closed
                    raise AssertionError(f"it ended; seen: {self.seen!r}") from None
        return self.seen

    def press_ctrl_c(self) -> None:
        # Python misses a signal that comes between the prompt and its waiting for keys, until the next key
        time.sleep(0.3)
        self.seen = ""
        self.process.send_signal(2)

    def end(self) -> int:
        status = self.process.wait(30)
        os.close(self._ours)
        return status


@pytest.fixture
def terminal(tiny_path):
    opened = Terminal(str(tiny_path), "--backend", "fake", "-n", "5", "--seed", "1")
    yield opened
    opened.process.kill()
    opened.process.wait()


def test_a_conversation_at_a_terminal(terminal):
    assert "Chatting with Tiny llama" in terminal.wait_for("> ")
    terminal.type("the weather ✓\n")
    terminal.wait_for("\r\n> ")
    terminal.type("/stats\n")
    assert "context" in terminal.wait_for("of 512 tokens")
    terminal.type("/quit\n")
    assert terminal.end() == 0
    assert paths.history_file().read_text(encoding="utf-8").split("\n")[0] == "the weather ✓"


def test_ctrl_c_asks_once_and_leaves_twice(terminal):
    terminal.wait_for("> ")
    terminal.press_ctrl_c()
    terminal.wait_for("Ctrl-C again leaves.")
    terminal.wait_for("> ")
    terminal.type("hello\n")
    terminal.wait_for("\r\n> ")
    terminal.press_ctrl_c()
    terminal.wait_for("Ctrl-C again leaves.")
    terminal.wait_for("> ")
    terminal.press_ctrl_c()
    assert terminal.end() == 130


def test_ctrl_d_leaves(terminal):
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
