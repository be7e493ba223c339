"""Messages in a QTextDocument: written once, and at the end of the last one only what changed.

A reply that streams costs per repaint what its last Markdown block costs, however long the chat is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QTextDocument, QTextFrameFormat

from app.chats.chat import State, StoredMessage
from app.text.blocks import Block, CodeBlock, ListBlock, Quote, TopLevelBlock
from app.text.streamed_markdown import StreamedMarkdown, parse_markdown
from app.ui.document_writer import GAP, DocumentWriter, Mark
from app.ui.theme import Theme

RENDER_SHARE = 15
"""A long last block is rendered again after this many times what that took the last time."""


@dataclass
class Entry:
    """A message as it stands in the document. marks[i]: where blocks[i] begins; body: after the header."""

    id: int
    role: str
    name: str
    content: str
    state: State
    start: Mark
    body: Mark | None = None
    footer: Mark | None = None
    blocks: list[TopLevelBlock] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    note: str = ""


class ChatDocument:
    """The messages shown, in order. Every change happens at the end of the document."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        self.document = document
        self.theme = theme
        self.entries: list[Entry] = []
        self._stream: StreamedMarkdown | None = None
        self._render_seconds = 0.0
        self._rendered_at = 0.0
        self.clear()

    def clear(self) -> None:
        self.entries.clear()
        self._stream = None
        self.document.clear()
        self._writer = DocumentWriter(self.document, self.theme)

    @property
    def is_streaming(self) -> bool:
        return self._stream is not None

    def add(self, message: StoredMessage, note: str = "") -> None:
        """Writes a whole message."""
        self._drop_regenerate()
        entry = self._begin(message)
        if message.role == "user":
            self._write_person(entry)
        else:
            self._write_header(entry)
            self._render(entry, parse_markdown(message.content), 0)
            entry.note = note
            self._write_footer(entry, last=True)

    def write_link(self, text: str, address: str) -> None:
        """A line above the messages that can be clicked."""
        self._writer.start_block(self._writer.block_format(4, 4), self._writer.text_format())
        self._writer.cursor.insertText(text, self._writer.action_format(address))

    def prepend(self, messages: list[StoredMessage]) -> None:
        """Puts messages before the others; the view writes them all again."""
        mark = self._writer.mark()
        self.entries[:0] = [
            Entry(item.id, item.role, item.model, item.content, item.state, mark) for item in messages
        ]

    def begin_reply(self, message: StoredMessage) -> None:
        """Starts a reply that `append` feeds, with what the message holds already."""
        self._drop_regenerate()
        self._write_header(self._begin(message))
        self._stream = StreamedMarkdown()
        self._stream.feed(message.content)

    def append(self, text: str) -> None:
        """Takes more of the reply; `refresh` shows it."""
        assert self._stream is not None
        self.entries[-1].content += text
        self._stream.feed(text)

    def refresh(self) -> bool:
        """Shows what has come since the last time; whether anything changed."""
        if self._stream is None:
            return False
        began = time.perf_counter()
        waited_long = began - self._rendered_at > RENDER_SHARE * self._render_seconds
        changed = self._stream.refresh(force=waited_long)
        if changed is None:
            return False
        self._render(self.entries[-1], self._stream.blocks, changed)
        self._rendered_at = time.perf_counter()
        self._render_seconds = self._rendered_at - began
        return True

    def end_reply(self, state: State, note: str = "") -> None:
        """Shows the last of the reply, and how it ended."""
        assert self._stream is not None
        entry = self.entries[-1]
        changed = self._stream.finish()
        if changed is not None:
            self._render(entry, self._stream.blocks, changed)
        self._stream = None
        entry.state = state
        entry.note = note
        self._write_footer(entry, last=True)

    def remove_from(self, message_id: int) -> None:
        """Takes that message and all after it out of the document."""
        for index, entry in enumerate(self.entries):
            if entry.id == message_id:
                self._stream = None
                self._writer.rewind(entry.start)
                del self.entries[index:]
                return

    def content_of(self, message_id: int) -> str:
        return next((entry.content for entry in self.entries if entry.id == message_id), "")

    def code_of(self, message_id: int, block: int, number: int) -> str | None:
        """The code of the number-th code block inside the block of a message."""
        for entry in self.entries:
            if entry.id == message_id and block < len(entry.blocks):
                codes = _codes_in(entry.blocks[block].block)
                return codes[number] if number < len(codes) else None
        return None

    def _begin(self, message: StoredMessage) -> Entry:
        name = message.model or self._tr("Model") if message.role == "assistant" else self._tr("You")
        entry = Entry(message.id, message.role, name, message.content, message.state, self._writer.mark())
        self.entries.append(entry)
        return entry

    def _write_person(self, entry: Entry) -> None:
        """A card with the text as typed: no Markdown, every space and line break kept."""
        form = QTextFrameFormat()
        form.setTopMargin(2 * GAP)
        form.setBottomMargin(GAP)
        form.setPadding(12)
        self._writer.cursor.beginEditBlock()  # laid out once, and not again for every line
        frame = self._writer.open_frame("card", form)
        self._write_header(entry, in_card=True)
        block = self._writer.block_format()
        self._writer.start_block(block, self._writer.text_format())
        self._writer.write_lines(entry.content, self._writer.text_format())
        self._writer.close_frame(frame)
        self._writer.cursor.endEditBlock()

    def _write_header(self, entry: Entry, in_card: bool = False) -> None:
        writer = self._writer
        block = writer.block_format(0 if in_card else GAP, 4)
        name = writer.text_format(self.theme.muted if in_card else self.theme.accent, 0.9, bold=True)
        writer.start_block(block, name)
        writer.cursor.insertText(entry.name, name)
        writer.cursor.insertText("     ", writer.text_format(scale=0.85))
        writer.cursor.insertText(self._tr("Copy"), writer.action_format(f"action:copy/{entry.id}"))
        entry.body = writer.mark()

    def _render(self, entry: Entry, blocks: list[TopLevelBlock], first: int) -> None:
        """Makes the document show the blocks; those before the first are there already."""
        cursor = self._writer.cursor
        cursor.beginEditBlock()
        try:
            if len(blocks) == first + 1 == len(entry.blocks) and self._extend(entry, blocks[first]):
                return
            while 0 < first < len(entry.marks) and entry.marks[first].after_empty:
                first -= 1
            if first < len(entry.marks):
                self._writer.rewind(entry.marks[first])
                del entry.marks[first:]
            for index, block in enumerate(blocks[first:], first):
                entry.marks.append(self._writer.mark())
                self._writer.write(block.block, f"action:code/{entry.id}/{index}")
            entry.blocks = list(blocks)
        finally:
            cursor.endEditBlock()

    def _extend(self, entry: Entry, new: TopLevelBlock) -> bool:
        """Adds to an open code block without writing it again."""
        old, block = entry.blocks[-1].block, new.block
        if not (isinstance(old, CodeBlock) and isinstance(block, CodeBlock)) or old.closed or block.closed:
            return False
        if old.language != block.language or not block.code.startswith(old.code):
            return False
        self._writer.append_to_code(block.code[len(old.code) :])
        entry.blocks[-1] = new
        return True

    def _write_footer(self, entry: Entry, last: bool) -> None:
        writer = self._writer
        entry.footer = writer.mark()
        notes = [self._state_note(entry.state), entry.note]
        note = " ".join(text for text in notes if text)
        if not note and not last:
            return
        small = writer.text_format(self.theme.muted, 0.85)
        writer.start_block(writer.block_format(2, 2), small)
        if note:
            writer.cursor.insertText(note, small)
        if last:
            if note:
                writer.cursor.insertText("     ", small)
            writer.cursor.insertText(
                self._tr("Regenerate"), writer.action_format(f"action:regenerate/{entry.id}")
            )

    def _drop_regenerate(self) -> None:
        """Only the last reply can be written again."""
        if self.entries and self.entries[-1].footer is not None:
            self._writer.rewind(self.entries[-1].footer)
            self._write_footer(self.entries[-1], last=False)

    def _state_note(self, state: State) -> str:
        return {
            "stopped": self._tr("Stopped."),
            "interrupted": self._tr("Interrupted: the program ended while this was written."),
            "error": self._tr("Ended by an error."),
        }.get(state, "")

    @staticmethod
    def _tr(text: str) -> str:
        return QCoreApplication.translate("ChatDocument", text)


def _codes_in(block: Block) -> list[str]:
    """The code blocks inside a block, in the order they are written."""
    match block:
        case CodeBlock(code):
            return [code]
        case Quote(blocks):
            return [code for child in blocks for code in _codes_in(child)]
        case ListBlock(items=items):
            return [code for item in items for child in item for code in _codes_in(child)]
    return []
