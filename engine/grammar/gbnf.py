r"""Reads grammars in GBNF, the notation of llama.cpp's grammar files.

    root  ::= "yes" | "no" | list          # comments run to the end of the line
    list  ::= item ("," item)*
    item  ::= [a-zA-Z_]+ | [^\x00-\x1f"] | .

Strings and classes know \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH; repetitions are * + ? {m} {m,} {m,n}.
Source of the notation: the public documentation of GBNF in llama.cpp.
"""

from __future__ import annotations

import re

from engine.errors import GrammarError
from engine.grammar.expressions import (
    LAST_CODE_POINT,
    Characters,
    Expression,
    Grammar,
    Range,
    Reference,
    Repeat,
    all_but,
    characters,
    choice,
    one_of,
    sequence,
)

MOST_CHARACTERS = 1_000_000
"""Of the text of a grammar."""

DEEPEST = 50
"""Brackets within brackets, and signs of repetition behind one another."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:\s|#[^\r\n]*)*")
_DEFINITION = re.compile(r"(?:\s|#[^\r\n]*)*::=")
_ALTERNATIVE = re.compile(r"(?:\s|#[^\r\n]*)*\|")
_COUNTS = re.compile(r"\{\s*(\d{1,9})\s*(?:(,)\s*(\d{1,9})?\s*)?\}")
_ESCAPE = re.compile(r"\\(?:([nrt\\\"\[\]'^-])|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_PLAIN_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

ANY = Characters(((0, LAST_CODE_POINT),))


def read_gbnf(text: str) -> Grammar:
    """Raises `GrammarError` naming the line and what is wrong there."""
    if len(text) > MOST_CHARACTERS:
        raise GrammarError(f"The grammar is longer than {MOST_CHARACTERS:,} characters.")
    return Grammar(_Reader(text).rules())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def rules(self) -> dict[str, Expression]:
        found: dict[str, Expression] = {}
        self._skip(_SPACE_AND_LINES)
        while self._at < len(self._text):
            name = self._name()
            if name in found:
                raise self._wrong(f"the rule {name!r} is defined twice")
            if not self._skip(_DEFINITION):
                raise self._wrong(f"::= is missing after {name!r}")
            found[name] = self._alternatives()
            self._skip(_SPACE)
            at_end = self._text[self._at : self._at + 1] in ("", "\r", "\n")
            if not at_end and not self._begins_rule():
                raise self._wrong(f"{self._text[self._at]!r} cannot stand here")
            self._skip(_SPACE_AND_LINES)
        return found

    def _alternatives(self) -> Expression:
        """The text that may stand after ::= or an opening bracket."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"brackets are nested more than {DEEPEST} deep")
        self._skip(_SPACE_AND_LINES)
        options = [self._sequence()]
        while self._skip(_ALTERNATIVE):
            self._skip(_SPACE_AND_LINES)
            options.append(self._sequence())
        self._depth -= 1
        return choice(options)

    def _sequence(self) -> Expression:
        items: list[Expression] = []
        while (item := self._item()) is not None:
            items.append(self._repeated(item))
        return sequence(*items)

    def _item(self) -> Expression | None:
        sign = self._text[self._at : self._at + 1]
        match sign:
            case '"':
                return self._string()
            case "[":
                return self._class()
            case ".":
                self._at += 1
                return ANY
            case "(":
                return self._group()
            case "<" | "!":
                raise self._wrong("single tokens (<...>) cannot be asked for here, only text")
        if _NAME.match(self._text, self._at) and not self._begins_rule():
            return Reference(self._name())
        return None

    def _begins_rule(self) -> bool:
        name = _NAME.match(self._text, self._at)
        return name is not None and _DEFINITION.match(self._text, name.end()) is not None

    def _group(self) -> Expression:
        self._at += 1
        inner = self._alternatives()
        self._skip(_SPACE_AND_LINES)
        if self._text[self._at : self._at + 1] != ")":
            raise self._wrong("a closing ) is missing")
        self._at += 1
        return inner

    def _repeated(self, item: Expression) -> Expression:
        """The item with the signs of repetition behind it."""
        for _ in range(DEEPEST):
            self._skip(_SPACE_AND_LINES if self._depth > 1 else _SPACE)
            sign = self._text[self._at : self._at + 1]
            if sign == "{":
                counts = _COUNTS.match(self._text, self._at)
                if not counts:
                    raise self._wrong("a repetition is written {m}, {m,} or {m,n}")
                self._at = counts.end()
                least, comma, most = counts.groups()
                item = Repeat(item, int(least), int(most) if most else (None if comma else int(least)))
            elif sign and sign in "*+?":
                self._at += 1
                item = Repeat(item, int(sign == "+"), 1 if sign == "?" else None)
            else:
                return item
        raise self._wrong("too many signs of repetition follow each other")

    def _string(self) -> Expression:
        self._at += 1
        found: list[Expression] = []
        while self._text[self._at : self._at + 1] != '"':
            found.append(one_of(chr(self._character('the closing " of a text'))))
        self._at += 1
        return sequence(*found)

    def _class(self) -> Expression:
        self._at += 1
        negated = self._text[self._at : self._at + 1] == "^"
        self._at += negated
        ranges: list[Range] = []
        while self._text[self._at : self._at + 1] != "]":
            first = last = self._character("the closing ] of a class")
            if self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._character("the end of a range")
            if last < first:
                raise self._wrong(f"the range {chr(first)!r} to {chr(last)!r} runs backwards")
            ranges.append((first, last))
        self._at += 1
        found = characters(*ranges)
        return all_but(found) if negated else found

    def _character(self, missing: str) -> int:
        """One character of a text or class, escapes resolved."""
        sign = self._text[self._at : self._at + 1]
        if sign in ("", "\n"):
            raise self._wrong(f"{missing} is missing")
        if sign != "\\":
            self._at += 1
            return ord(sign)
        escape = _ESCAPE.match(self._text, self._at)
        if not escape:
            raise self._wrong(f"{self._text[self._at : self._at + 2]!r} is no escape")
        self._at = escape.end()
        plain, *digits = escape.groups()
        if plain:
            return ord(_PLAIN_ESCAPES.get(plain, plain))
        code = int(next(part for part in digits if part), 16)
        if code > LAST_CODE_POINT:
            raise self._wrong(f"{escape.group()} is no character")
        return code

    def _name(self) -> str:
        name = _NAME.match(self._text, self._at)
        if not name:
            raise self._wrong("the name of a rule is missing")
        self._at = name.end()
        return name.group()

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found is not None

    def _wrong(self, what: str) -> GrammarError:
        line = self._text.count("\n", 0, self._at) + 1
        return GrammarError(f"The grammar has a fault in line {line}: {what}.")
