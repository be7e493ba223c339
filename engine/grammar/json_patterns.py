r"""Regular expressions of JSON Schema (`pattern`), as expressions over the characters within a JSON string.

Understood: characters, ., classes, \d \w \s and their opposites, groups, |, * + ? {m,n}, ^ and $ at the ends
of the whole expression or of its outermost alternatives.  Refused: looking around, references back, \b, \p.
Source: the subset that JSON Schema 2020-12 recommends for patterns (section 6.4 of its core).
"""

from __future__ import annotations

import re
from typing import NoReturn

from engine.errors import GrammarError
from engine.grammar.expressions import (
    LAST_CODE_POINT,
    Characters,
    Expression,
    Repeat,
    all_but,
    characters,
    choice,
    common,
    sequence,
)
from engine.grammar.json_values import ANY_CHARACTER, written

MOST_CHARACTERS = 10_000
"""Of a pattern."""

DEEPEST = 50
"""Groups within groups."""

_ASCII = characters((0, 0x7F))
_DIGITS = characters((0x30, 0x39))
_WORD = characters((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE = characters((0x09, 0x0D), (0x20, 0x20))
_NO_SPACE = common(all_but(characters((0x09, 0x0D), (0x1C, 0x20))), _ASCII)
_LINE_ENDS = characters((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_SETS = {
    "d": _DIGITS,
    "D": common(all_but(_DIGITS), _ASCII),
    "w": _WORD,
    "W": common(all_but(_WORD), _ASCII),
    "s": _SPACE,
    "S": _NO_SPACE,
}
"""Readers of patterns differ in which letters and spaces beyond ASCII belong to a set: none is written.

The separators 0x1C to 0x1F are in neither of the last two for the same reason.
"""
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "0": "\0"}
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}")
_COUNTS = re.compile(r"\{(\d{1,9})(?:(,)(\d{1,9})?)?\}")


def pattern_content(pattern: str) -> Expression:
    """The content of JSON strings in which the pattern is found.  Raises `GrammarError`."""
    return _Reader(pattern).whole()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        if len(pattern) > MOST_CHARACTERS:
            self._refuse(f"it is longer than {MOST_CHARACTERS:,} characters")

    def whole(self) -> Expression:
        anything = Repeat(written(ANY_CHARACTER), 0, None)
        options = []
        while True:
            begins = self._take("^")
            found = self._sequence()
            ends = self._take("$")
            options.append(sequence(*([] if begins else [anything]), found, *([] if ends else [anything])))
            if not self._take("|"):
                break
        if self._at < len(self._pattern):
            self._refuse(f"{self._pattern[self._at]!r} cannot stand at place {self._at + 1}")
        return choice(options)

    def _take(self, sign: str) -> bool:
        taken = self._pattern.startswith(sign, self._at)
        self._at += len(sign) * taken
        return taken

    def _group(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(f"groups are nested more than {DEEPEST} deep")
        if self._take("?") and not self._take(":"):
            self._refuse("groups that begin with (? are not supported, but for (?:")
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        if not self._take(")"):
            self._refuse("a closing ) is missing")
        self._depth -= 1
        return choice(options)

    def _sequence(self) -> Expression:
        items: list[Expression] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)$":
            items.append(self._repeated(self._item()))
        return sequence(*items)

    def _item(self) -> Expression:
        sign = self._pattern[self._at]
        self._at += 1
        match sign:
            case "(":
                return self._group()
            case "[":
                return written(self._class())
            case ".":
                return written(all_but(_LINE_ENDS))
            case "\\":
                return written(self._escape())
            case "^" | "*" | "+" | "?" | "{" | "}" | "]":
                self._refuse(f"{sign!r} cannot stand at place {self._at}")
        return written(_single(sign))

    def _repeated(self, item: Expression) -> Expression:
        least: int = 1
        most: int | None = 1
        counts = _COUNTS.match(self._pattern, self._at)
        if counts:
            self._at = counts.end()
            least = int(counts[1])
            most = int(counts[3]) if counts[3] else (None if counts[2] else least)
        elif self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            most = None
        elif self._take("?"):
            least = 0
        else:
            return item
        self._take("?")  # as few as possible: the same texts
        return Repeat(item, least, most)

    def _class(self) -> Characters:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            first = self._class_item(negated)
            # A dash makes a range only between two single characters.
            if self._pattern[self._at + 1 : self._at + 2] not in ("", "]") and self._take("-"):
                last = self._class_item(negated)
                if not (_is_single(first) and _is_single(last)):
                    self._refuse("a range within [] needs single characters at its ends")
                if last.ranges[0][0] < first.ranges[0][0]:
                    self._refuse("a range within [] runs backwards")
                ranges.append((first.ranges[0][0], last.ranges[0][0]))
            else:
                ranges += first.ranges
        found = characters(*ranges)
        return all_but(found) if negated else found

    def _class_item(self, negated: bool) -> Characters:
        if self._at >= len(self._pattern):
            self._refuse("a closing ] is missing")
        sign = self._pattern[self._at]
        self._at += 1
        return self._escape(within_class=True, negated=negated) if sign == "\\" else _single(sign)

    def _escape(self, within_class: bool = False, negated: bool = False) -> Characters:
        sign = self._pattern[self._at : self._at + 1]
        code = _CODE.match(self._pattern, self._at)
        if code:
            self._at = code.end()
            value = int(code[1] or code[2] or code[3], 16)
            if value > LAST_CODE_POINT:
                self._refuse(f"\\{code[0]} is no character")
            return characters((value, value))
        self._at += 1
        if sign in _SETS:
            # What is left out must be what any reader counts in.
            return all_but(_SETS[sign.swapcase()]) if negated else _SETS[sign]
        if sign in _CONTROLS:
            return _single(_CONTROLS[sign])
        if sign == "b" and within_class:
            return _single("\b")
        if not sign or sign.isalnum():
            self._refuse(f"\\{sign} is not supported")
        return _single(sign)

    def _refuse(self, what: str) -> NoReturn:
        raise GrammarError(f"The pattern {self._pattern[:100]!r} cannot be honoured: {what}.")


def _single(character: str) -> Characters:
    return characters((ord(character), ord(character)))


def _is_single(found: Characters) -> bool:
    return len(found.ranges) == 1 and found.ranges[0][0] == found.ranges[0][1]
