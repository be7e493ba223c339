"""Stop strings: end a reply at a text, even where the text is spread over several tokens.

Text that may be the beginning of a stop string is held back until more text decides.  The stop string that
is complete first wins, and of several that end at the same character the longest, so that the outcome does
not depend on how the text was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def length_to_hold(text: str, marks: Sequence[str]) -> int:
    """Length of the longest end of text that begins one of the marks and is not all of it."""
    longest = max((len(mark) for mark in marks), default=1) - 1
    for length in range(min(longest, len(text)), 0, -1):
        end = text[-length:]
        if any(mark.startswith(end) for mark in marks):
            return length
    return 0


class StopStrings:
    """Watches one reply.  Empty stop strings are ignored."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._held = ""
        self._stopped = False

    def push(self, text: str) -> tuple[str, bool]:
        """Takes the next piece; returns the text that may be shown now, and whether a stop string was met.

        The stop string and what follows it are never shown.  After a stop every piece is swallowed.
        """
        if self._stopped:
            return "", True
        text = self._held + text
        match = min(
            ((start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0),
            default=None,
        )
        if match is not None:
            self._stopped = True
            self._held = ""
            return text[: match[1]], True
        visible = len(text) - length_to_hold(text, self._stops)
        self._held = text[visible:]
        return text[:visible], False

    def flush(self) -> str:
        """The text still held back: no stop string came of it.  Call it when the reply is at its end."""
        held, self._held = self._held, ""
        return held
