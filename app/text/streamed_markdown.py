"""Markdown that is still arriving: only what can still change is parsed again.

All blocks but the last are settled, since no rule of `markdown` looks further back than one block.
A block is settled once the first line of the block after it is complete: "#" may begin a heading,
but "#x" goes on with the paragraph above.  A block of more than MAX_BLOCK_CHARACTERS, unless it is
fenced code, is cut at a line break, and the rest is parsed as if it began a text, so that no block takes
long.  However a text is cut into pieces, its blocks are those of `parse_markdown`.
"""

from __future__ import annotations

import re

from app.text.blocks import Block, CodeBlock, ListBlock, TopLevelBlock
from app.text.markdown import parse_blocks

MAX_BLOCK_CHARACTERS = 8_000
MAX_LIST_CHARACTERS = 3_000
"""Lists take longest to parse and to lay out, and are the same when they are cut between two items."""

ALWAYS_PARSED = 2_000
"""Characters of a last block up to which it is parsed at every refresh."""

GROWTH = 16
"""A longer last block is parsed once it has grown by 1/GROWTH, so that the sum stays linear."""

_WINDOW = 32_000  # characters parsed at a time where the whole text is there

_FENCE = re.compile(r"(`{3,}|~{3,})[^\n]*\n")


def parse_markdown(source: str) -> list[TopLevelBlock]:
    """The top-level blocks of a whole text.  Never raises on any text; time grows with its length alone."""
    streamed = StreamedMarkdown()
    for start in range(0, len(source), _WINDOW):
        streamed.feed(source[start : start + _WINDOW])
        streamed.refresh(force=True)
    streamed.finish()
    return streamed.blocks


class StreamedMarkdown:
    """blocks: the top-level blocks as of the last `refresh` or `finish`."""

    def __init__(self) -> None:
        self.blocks: list[TopLevelBlock] = []
        self._settled = 0  # blocks that no later text can change
        self._first_line = 0  # source line where the tail begins
        self._tail: list[str] = []  # source after the settled blocks, in pieces
        self._tail_length = 0
        self._parsed_length = 0
        self._held_back = ""  # a "\r" whose "\n" may still come
        self._fence: _OpenFence | None = None

    def feed(self, text: str) -> None:
        """Takes the next piece of the text."""
        text = self._held_back + text
        self._held_back = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(self._held_back)]
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if not text:
            return
        self._tail.append(text)
        self._tail_length += len(text)
        if self._fence and not self._fence.feed(text):
            self._fence = None
            self._parsed_length = 0  # the fence has closed: parse at the next refresh

    def refresh(self, force: bool = False) -> int | None:
        """Brings `blocks` up to date; the index of the first changed block, None where none changed.

        A long last block is passed over until it has grown enough, unless `force` is given.
        """
        grown = self._tail_length - self._parsed_length
        if not grown:
            return None
        if self._fence:
            self._parsed_length = self._tail_length
            last = self.blocks[-1]
            self.blocks[-1] = TopLevelBlock(last.first_line, self._fence.end_line, self._fence.block())
            return len(self.blocks) - 1
        too_little = self._tail_length > ALWAYS_PARSED and grown < self._parsed_length // GROWTH
        return None if too_little and not force else self._parse()

    def finish(self) -> int | None:
        """Like a forced refresh, at the end of the text."""
        if self._held_back:
            self._held_back = ""
            self.feed("\n")
        return self._parse(at_end=True) if self._tail_length else None

    def _parse(self, at_end: bool = False) -> int:
        changed = self._settled
        tail = "".join(self._tail)
        while True:
            self.blocks[self._settled :] = self._moved(parse_blocks(tail))
            cut = self._long_block(tail, at_end)
            if cut is None:
                break
            start, end = cut
            self.blocks[self._settled :] = self._moved(
                parse_blocks(tail[start:end]), tail[:start].count("\n")
            )
            self._settled = len(self.blocks)
            self._first_line += tail[:end].count("\n")
            tail = tail[end:]
        self._settle(tail)
        self._enter_fence()
        return changed

    def _moved(self, found: list[TopLevelBlock], lines: int = 0) -> list[TopLevelBlock]:
        lines += self._first_line
        return [TopLevelBlock(item.first_line + lines, item.end_line + lines, item.block) for item in found]

    def _long_block(self, tail: str, at_end: bool) -> tuple[int, int] | None:
        """Where in the tail the first too long block begins, and where to cut it."""
        if len(tail) <= min(MAX_BLOCK_CHARACTERS, MAX_LIST_CHARACTERS):
            return None
        starts = [0, *(found.end() for found in re.finditer("\n", tail))]
        complete = len(tail) if at_end else starts[-1]
        for index in range(self._settled, len(self.blocks)):
            found = self.blocks[index]
            start = starts[found.first_line - self._first_line]
            end = starts[found.end_line - self._first_line :][:1] or [len(tail)]
            # an incomplete last line may yet turn out to belong to another block, but not a first one
            length = min(end[0], max(complete, start if start < complete else len(tail))) - start
            limit = MAX_LIST_CHARACTERS if isinstance(found.block, ListBlock) else MAX_BLOCK_CHARACTERS
            if length > limit and not _is_fenced(found.block, tail[start : start + 6]):
                self._settled = index
                return start, _place_to_cut(tail, start, start + limit)
        return None

    def _settle(self, tail: str) -> None:
        complete_lines = self._first_line + tail.count("\n")
        last = len(self.blocks) - 1
        while last > self._settled and self.blocks[last].first_line >= complete_lines:
            last -= 1
        if last > self._settled:
            self._settled = last
            skipped = self.blocks[last].first_line - self._first_line
            tail = tail.split("\n", skipped)[skipped]
            self._first_line += skipped
        self._tail = [tail]
        self._tail_length = self._parsed_length = len(tail)

    def _enter_fence(self) -> None:
        last = self.blocks[-1].block if self.blocks else None
        tail = self._tail[0]
        opening = _FENCE.match(tail)
        self._fence = None
        if (
            isinstance(last, CodeBlock)
            and not last.closed
            and opening
            and self._settled == len(self.blocks) - 1
        ):
            fence = _OpenFence(opening[1], last.language, self._first_line + 1)
            if fence.feed(tail[opening.end() :]):
                self._fence = fence


def _place_to_cut(text: str, start: int, end: int) -> int:
    """Before the last line that is not indented, else before the last line, else at the end."""
    place = line_break = text.rfind("\n", start, end)
    while place >= 0 and text[place + 1].isspace():
        place = text.rfind("\n", start, place)
    if place >= 0:
        return place + 1
    return line_break + 1 if line_break >= 0 else end


def _is_fenced(block: Block, opening: str) -> bool:
    return isinstance(block, CodeBlock) and opening.lstrip(" ").startswith(("```", "~~~"))


class _OpenFence:
    """Code after an open fence, without the parser: lines are code until one closes the fence."""

    def __init__(self, marker: str, language: str, end_line: int) -> None:
        self.end_line = end_line
        self._language = language
        self._closing = re.compile(rf" {{0,3}}{marker[0]}{{{len(marker)},}}[ \t]*")
        self._may_close = re.compile(rf" {{0,3}}{marker[0]}*[ \t]*")
        self._code = ""
        self._line = ""  # the last line, still without its line break

    def feed(self, text: str) -> bool:
        """Takes more text; False once a line has closed the fence."""
        *complete, rest = (self._line + text).split("\n")
        if any(self._closing.fullmatch(line) for line in complete):
            return False
        if complete:
            self._code += "\n".join(complete) + "\n"
            self.end_line += len(complete)
        self._line = rest
        return True

    def block(self) -> CodeBlock:
        """The code so far; a last line that may become the closing fence is not shown yet."""
        shown = "" if self._may_close.fullmatch(self._line) else self._line
        code = self._code + shown
        return CodeBlock(code if shown else code.removesuffix("\n"), self._language, closed=False)
