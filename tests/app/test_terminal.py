"""Foreign text cannot drive the terminal."""

import io
import json
import sys

import pytest

from app import terminal
from engine.errors import CauserieError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Füße 👣\n\tend", "plain, Füße 👣\n\tend"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\rb\x08c\x00", "a\\x0db\\x08c\\x00"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
    ],
)
def test_control_characters_are_shown_not_obeyed(text, shown):
    assert terminal.visible(text) == shown


def test_json_is_safe_for_a_terminal_and_means_the_same():
    text = "".join(map(chr, range(0xA1))) + "Füße 👣"
    shown = terminal.json_text({"name": text})
    assert json.loads(shown) == {"name": text} and "Füße 👣" in shown
    assert shown.isprintable() or terminal.visible(shown) == shown


def test_no_line_is_endless(capsys):
    shown = terminal.one_line("x" * 10_000_000 + " is wrong")
    assert len(shown) == terminal.LONGEST_LINE and "x\u2026x" in shown and shown.endswith(" is wrong")
    assert terminal.one_line("x" * terminal.LONGEST_LINE) == "x" * terminal.LONGEST_LINE
    terminal.tell("y" * 10_000_000)
    terminal.tell_error(CauserieError("z" * 10_000_000))
    assert len(capsys.readouterr().err) < 3 * terminal.LONGEST_LINE


def test_titles_stay_on_one_line():
    assert terminal.one_line("a\n b\t\x1b[1mc") == "a b \\x1b[1mc"


def test_a_pipe_gets_text_unchanged_and_a_terminal_does_not(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    assert terminal.for_stdout("\x1b[1m") == "\x1b[1m"
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    assert terminal.for_stdout("\x1b[1m") == "\\x1b[1m"


def test_an_argument_that_is_no_utf8_becomes_text():
    given = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert terminal.argument_text(given) == "caf\ufffd"
    assert terminal.argument_text("café") == "café"


def test_errors_are_told_with_their_next_step(capsys):
    terminal.tell_error(CauserieError("It is\nbroken.", "Mend it."))
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: It is broken.\nMend it.\n")
