"""How byte-pair vocabularies split a text into words before any merging.

A rule is a list of steps, applied one after the other: each splits every fragment left by the one before into
its matches and the gaps between them.  The rules themselves are a table: `rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import regex

Splitter = Callable[[str], list[str]]
"""From a text to its fragments; joined they are the text again, and none of them is empty."""


@dataclass(frozen=True)
class DigitGroups:
    """A step that cuts runs of digits into groups of three, counted from the end of the run.

    published: the pattern in `tokenizer.json`.  It looks ahead to the end of the run from every digit, so
    that its time grows with the square of the run's length; counting gives the same cuts.
    runs: pattern of the runs that are cut.  isolated: a run is also cut off from the text around it.
    """

    published: str
    runs: str
    isolated: bool

    def splitter(self) -> Splitter:
        pattern = regex.compile(self.runs)

        def split(text: str) -> list[str]:
            cuts = {0, len(text)}
            for match in pattern.finditer(text):
                start, end = match.span()
                cuts.update(range(end - 3, start - 1, -3))
                if self.isolated:
                    cuts.update((start, end))
            ordered = sorted(cuts)
            return [text[start:end] for start, end in pairwise(ordered)]

        return split


@dataclass(frozen=True)
class Rewritten:
    """A step whose published pattern takes time that grows with the square of a run's length.

    pattern: splits in the same places, in linear time.
    """

    published: str
    pattern: str

    def splitter(self) -> Splitter:
        return _splitter(self.pattern)


Step = str | DigitGroups | Rewritten
"""A pattern of the package `regex`, or a step that is worked out otherwise."""


@dataclass(frozen=True)
class PreTokenizer:
    """One rule.

    name, aliases: values of `tokenizer.ggml.pre` that mean it; a converter writes the first.
    ignore_merges: a whole word that is a token is taken without merging.
    add_bos: whether the family begins with BOS where the file does not say.
    byte_level: the vocabulary spells bytes as visible characters; else text as it is, with U+2581 for spaces.
    checked: for docs/models.md, how the ids or the words of this rule were checked.
    """

    name: str
    steps: tuple[Step, ...]
    aliases: tuple[str, ...] = ()
    ignore_merges: bool = False
    add_bos: bool = False
    byte_level: bool = True
    checked: str = ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The published pattern of each step."""
        return tuple(step if isinstance(step, str) else step.published for step in self.steps)

    @cached_property
    def splitters(self) -> tuple[Splitter, ...]:
        """One for each step; compiled when first asked for, since a file needs one rule of many."""
        return tuple(_splitter(step) if isinstance(step, str) else step.splitter() for step in self.steps)

    def split(self, text: str) -> list[str]:
        """The words of text; joined they are text again."""
        words = [text] if text else []
        for splitter in self.splitters:
            words = [part for word in words for part in splitter(word)]
        return words


def _splitter(pattern: str) -> Splitter:
    # The group makes split() return the matches too.  "&&" (a set minus another) is syntax of version 1.
    compiled = regex.compile(f"({pattern})", regex.V1 if "&&" in pattern else regex.V0)

    def split(text: str) -> list[str]:
        return [part for part in compiled.split(text) if part]

    return split
