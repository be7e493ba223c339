"""Keeps a person's words from becoming control tokens while a template moves them about.

A template gets the conversation and gives one text, in which nobody can tell any more who wrote `<|im_end|>`.
So each such text inside a message is replaced by one character that stands for it before rendering, and put
back afterwards as a literal segment.  One private-use character passes through trim, split and upper case as
it is and cannot be cut in two; it is drawn at random, so that a template cannot write one itself.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.templates.operations import JSONObject
from engine.tokenizers.special_tokens import SpecialTokenMatcher
from engine.tokenizers.tokenizer import PromptSegment

# One private-use plane of Unicode, without the two non-characters at its end.
_FIRST_PRIVATE = 0xF0000
_N_PRIVATE = 0xFFFE


class GuardedTexts:
    """Texts that somebody's words must never turn into.

    any_case: also by capital letters becoming small ones, or the other way round.
    """

    def __init__(self, texts: Iterable[str], any_case: bool = False) -> None:
        self._any_case = any_case
        self._matcher = SpecialTokenMatcher({self._folded(text): index for index, text in enumerate(texts)})
        self._beginnings = {text[:end] for text in self._matcher.ids for end in range(1, len(text))}
        self._longest = max(map(len, self._beginnings), default=0)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where guarded texts begin and end in text."""
        return ((start, end) for start, end, _ in self._matcher.find(self._folded(text)))

    def ending(self, text: str) -> str:
        """The longest end of text that begins a guarded text: what follows could complete it."""
        last = self._folded(text[-self._longest :]) if self._longest else ""
        for length in range(len(last), 0, -1):
            if last[-length:] in self._beginnings:
                return text[-length:]
        return ""

    def _folded(self, text: str) -> str:
        """As long as text."""
        if not self._any_case:
            return text
        if text.isascii():
            return text.lower()
        # The long s becomes S and the Kelvin sign k.  No mark has letters that become two.
        folded = ((character, character.casefold()) for character in text)
        return "".join(plain if len(plain) == 1 else character for character, plain in folded)


class ControlTextGuard:
    """For one rendering.  sources: whatever may hold private-use characters of its own."""

    def __init__(self, *sources: Any) -> None:
        self._used = {
            character for text in _texts(sources) for character in text if ord(character) >= _FIRST_PRIVATE
        }
        self._text_of: dict[str, str] = {}
        self._character_of: dict[str, str] = {}

    def cover(self, value: Any, texts: GuardedTexts) -> Any:
        """A copy of value (text, or lists and objects of it) in which no guarded text is left."""
        if isinstance(value, str):
            covered, rest = self._cover_matches(value, texts)
            ending = texts.ending(rest)
            return covered + (rest.removesuffix(ending) + self._stand_in(ending) if ending else rest)
        if isinstance(value, Mapping):
            kind = JSONObject if isinstance(value, JSONObject) else dict
            # Templates ask for keys by name: their endings stay as they are.
            return kind(
                ("".join(self._cover_matches(key, texts)), self.cover(item, texts))
                for key, item in value.items()
            )
        if isinstance(value, (list, tuple)):
            return [self.cover(item, texts) for item in value]
        return value

    def _cover_matches(self, text: str, texts: GuardedTexts) -> tuple[str, str]:
        """text up to the end of the last guarded text, covered; and what is behind it."""
        parts: list[str] = []
        position = 0
        for start, end in texts.find(text):
            parts += [text[position:start], self._stand_in(text[start:end])]
            position = end
        return "".join(parts), text[position:]

    def _stand_in(self, text: str) -> str:
        if text not in self._character_of:
            character = self._draw()
            self._character_of[text] = character
            self._text_of[character] = text
        return self._character_of[text]

    def _draw(self) -> str:
        while True:
            character = chr(_FIRST_PRIVATE + secrets.randbelow(_N_PRIVATE))
            if character not in self._used:
                self._used.add(character)
                return character

    def uncover(self, rendered: str) -> list[PromptSegment]:
        """The rendered text in segments: the words put back are literal."""
        if not self._text_of:
            return [PromptSegment(rendered)] if rendered else []
        # A template that prints a whole list or object prints such characters escaped, as Python and JSON do.
        text_of = {
            spelling: text
            for character, text in self._text_of.items()
            for spelling in (character, ascii(character)[1:-1], json.dumps(character)[1:-1])
        }
        pieces = re.split("(" + "|".join(map(re.escape, text_of)) + ")", rendered)
        return [
            PromptSegment(text_of.get(piece, piece), literal=piece in text_of) for piece in pieces if piece
        ]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
