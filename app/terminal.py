"""Text to and from a terminal: UTF-8 always, no control characters of foreign text, progress on one line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import time

from engine.errors import CauserieError

PROGRESS_SECONDS = 0.1
KEPT_CONTROLS = "\n\t"
LONGEST_LINE = 4000
"""Characters of one message or field: what a file says may have millions."""

_HIDDEN = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in KEPT_CONTROLS
}
_HIDDEN_IN_JSON = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


def fill_missing_streams() -> None:
    """Opens streams that the process was started without; nothing is read there, and writing goes nowhere.

    In this order they also take the free descriptors 0 to 2, so that no file of ours gets one of them and
    with it what a library prints.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 (stays open to the end)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def use_utf8() -> None:
    """Reads and writes UTF-8 whatever the locale says; what cannot be written is shown escaped."""
    for stream, errors in (
        (sys.stdin, "replace"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def visible(text: str) -> str:
    """Foreign text for a terminal: control characters, which could move the cursor or more, shown escaped."""
    return text.translate(_HIDDEN)


def one_line(text: str) -> str:
    """The same without line ends and tabs, for tables and titles."""
    return visible(shortened(" ".join(text.split())))


def shortened(text: str, limit: int = LONGEST_LINE) -> str:
    """At most limit characters; where some are left out of the middle an ellipsis stands for them."""
    if len(text) <= limit:
        return text
    end = limit // 2
    return text[: limit - end - 1] + "\u2026" + text[-end:]


def json_text(content: object, *, indent: int | None = None) -> str:
    """JSON that a person can read, and that does nothing to a terminal: control characters are escaped."""
    text = json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
    return text.translate(_HIDDEN_IN_JSON)


def for_stdout(text: str) -> str:
    """Text of a model for stdout: made safe where a person looks at it, unchanged for a pipe or file."""
    return visible(text) if sys.stdout.isatty() else text


def argument_text(text: str) -> str:
    """A text given as argument; bytes of it that were no UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def tell_error(error: CauserieError) -> None:
    """`error: title` and the next step, on stderr."""
    with contextlib.suppress(OSError, ValueError):  # nobody listens any more
        print(f"error: {one_line(error.title)}", file=sys.stderr)
        if error.advice:
            print(one_line(error.advice), file=sys.stderr)


def tell(sentence: str) -> None:
    """Something a person should know that is no result: on stderr."""
    print(visible(shortened(sentence)), file=sys.stderr, flush=True)


class ProgressLine:
    """One line on stderr that is written over; silent where stderr is no terminal.  A context manager."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._next = 0.0
        self._shown = False

    def show(self, text: str) -> None:
        if not self._on or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROGRESS_SECONDS
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r" + visible(text)[:width].ljust(width))
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            sys.stderr.flush()
            self._shown = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
