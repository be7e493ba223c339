"""A model's thoughts told from its answer: the marks around them, as its chat template has them.

Where no template speaks of thoughts, nothing is split.  Marks count at the beginning of a reply only, so that
an answer may speak of them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from engine.stop_strings import length_to_hold


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """opening, closing: the texts around thoughts.

    controls: marks that may be control tokens, whose texts a reply does not show.
    has_channels: thoughts and answer are messages of their own, each with its channel's name ("Harmony").
    """

    opening: str
    closing: str
    controls: frozenset[str]
    has_channels: bool = False

    def splitter(self, is_open: bool) -> ReplySplitter:
        """For one reply.  is_open: the prompt ends with the opening mark already."""
        return ChannelSplitter() if self.has_channels else TagSplitter(self, is_open)


def _tags(opening: str, closing: str, *controls: str) -> ReasoningFormat:
    return ReasoningFormat(opening, closing, frozenset({opening, closing, *controls}))


CHANNEL, MESSAGE, START, END = "<|channel|>", "<|message|>", "<|start|>", "<|end|>"
HARMONY = ReasoningFormat(CHANNEL, END, frozenset({CHANNEL, MESSAGE, START, END}), has_channels=True)
"""Source: https://cookbook.openai.com/articles/openai-harmony"""

_TAGS = (
    _tags("<think>", "</think>"),
    _tags("<thinking>", "</thinking>"),
    _tags("<thought>", "</thought>"),
    _tags("<seed:think>", "</seed:think>"),
    _tags("[THINK]", "[/THINK]"),
    _tags("<|START_THINKING|>", "<|END_THINKING|>"),
    _tags("<|channel>thought", "<channel|>", "<|channel>"),
)


def find_reasoning(template: str) -> ReasoningFormat | None:
    """The format that a template's source speaks of; None for models that do not think aloud."""
    if all(mark in template for mark in (CHANNEL, MESSAGE, START)):
        return HARMONY
    return next((tags for tags in _TAGS if tags.closing in template), None)


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a reply: what belongs to the answer, and what to the thoughts."""

    answer: str = ""
    thoughts: str = ""


class ReplySplitter(ABC):
    """Takes the pieces of one reply, the texts of `controls` among them, and gives them without marks."""

    is_done = False
    """Whether all that follows is answer."""

    @abstractmethod
    def push(self, text: str) -> Split: ...

    @abstractmethod
    def finish(self) -> Split:
        """What was held back since a mark could have come of it."""


class TagSplitter(ReplySplitter):
    """Thoughts between two marks, then the answer."""

    def __init__(self, tags: ReasoningFormat, is_open: bool) -> None:
        self._tags = tags
        self._is_open = is_open
        self._held = ""
        self._part: Literal["beginning", "thoughts", "gap", "answer"] = "beginning"

    def push(self, text: str) -> Split:
        self._held += text
        answer = thoughts = ""
        if self._part == "beginning":
            self._find_beginning()
        if self._part == "thoughts":
            thoughts = self._take_thoughts()
        if self._part == "gap":
            self._held = self._held.lstrip()
            if self._held:
                self._part = "answer"
        if self._part == "answer":
            answer, self._held = self._held, ""
            self.is_done = True
        return Split(answer, thoughts)

    def finish(self) -> Split:
        held, self._held = self._held, ""
        is_thought = self._part == "thoughts" or (self._part == "beginning" and self._is_open)
        return Split(thoughts=held) if is_thought else Split(held)

    def _find_beginning(self) -> None:
        beginning, opening = self._held.lstrip(), self._tags.opening
        if beginning.startswith(opening):
            self._held = beginning.removeprefix(opening)
            self._part = "thoughts"
        elif not opening.startswith(beginning):
            # Where the prompt ends with the mark, most models do not write it again.
            self._part = "thoughts" if self._is_open else "answer"

    def _take_thoughts(self) -> str:
        closing = self._tags.closing
        thoughts, mark, rest = self._held.partition(closing)
        if mark:
            self._held, self._part = rest, "gap"
            return thoughts
        visible = len(self._held) - length_to_hold(self._held, (closing,))
        thoughts, self._held = self._held[:visible], self._held[visible:]
        return thoughts


class ChannelSplitter(ReplySplitter):
    """Messages with a header that names their channel: in "final", or in none, is the answer."""

    _header_end = MESSAGE
    _message_end = re.compile("|".join(map(re.escape, (END, START, CHANNEL))))

    def __init__(self) -> None:
        self._held = ""
        self._is_header = True
        self._is_answer = False

    def push(self, text: str) -> Split:
        self._held += text
        answer: list[str] = []
        thoughts: list[str] = []
        while True:
            if self._is_header:
                header, mark, rest = self._held.partition(self._header_end)
                if not mark:
                    break
                _, names_channel, channel = header.rpartition(CHANNEL)
                self._is_answer = not names_channel or channel.split()[:1] == ["final"]
                self._held, self._is_header = rest, False
            end = self._message_end.search(self._held)
            visible = (
                end.start() if end else len(self._held) - length_to_hold(self._held, (END, START, CHANNEL))
            )
            (answer if self._is_answer else thoughts).append(self._held[:visible])
            self._held = self._held[visible:]
            if end is None:
                break
            self._is_header = True
        return Split("".join(answer), "".join(thoughts))

    def finish(self) -> Split:
        held, self._held = self._held, ""
        if not self._is_header:
            return Split(held) if self._is_answer else Split(thoughts=held)
        # A model that keeps to no format has written its answer without any mark.
        return Split() if any(mark in held for mark in (CHANNEL, START, END)) else Split(held)
