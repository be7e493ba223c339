"""Writes blocks of text at the end of a QTextDocument, and takes the last ones back again.

Only text and formats are written, never HTML, so the document holds nothing that could be fetched.
Cards, code and quotes are frames; `ChatView` paints what is behind them.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontDatabase,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrame,
    QTextFrameFormat,
    QTextLength,
    QTextListFormat,
    QTextTableFormat,
)

from app.text.blocks import (
    Block,
    CodeBlock,
    Divider,
    Heading,
    ListBlock,
    Paragraph,
    PlainText,
    Quote,
    Run,
    Runs,
    Table,
)
from app.text.highlight import highlight
from app.ui.theme import Theme

FRAME_KIND = int(QTextFormat.Property.UserProperty) + 1
LINE_HEIGHT = 140.0  # per cent
INDENT = 26
GAP = 9
MAX_LINE = 4_000
"""A longer line is laid out as several, since the time to lay out one line grows with its length."""

ITEMS_TOGETHER = 40
"""Longer lists are several for Qt, whose time to add an item grows with their length."""
MAX_NUMBER = 1_000_000_000

HEADING_SIZES = {1: 1.5, 2: 1.3, 3: 1.15}
PROPORTIONAL = int(QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
FIXED = int(QTextBlockFormat.LineHeightTypes.FixedHeight.value)


LINK = "link:"


def link_address(target: str) -> str:
    """The address of a model's link, in hexadecimal: as a URL Qt would change parts of it."""
    return LINK + target.encode("utf-8", "replace").hex()


def link_target(address: str) -> str:
    """The target back, "" where the address is none of ours."""
    try:
        return bytes.fromhex(address.removeprefix(LINK)).decode("utf-8")
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place to come back to. fresh: the block there is empty and waits to be used.

    after_empty: it is in an empty paragraph, which Qt would give the format of what is removed after it.
    """

    position: int
    fresh: bool
    after_empty: bool


class DocumentWriter:
    """One document, one cursor that stays at its end."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        self.document = document
        self.theme = theme
        self.cursor = QTextCursor(document)
        self.cursor.movePosition(QTextCursor.MoveOperation.End)
        self._fresh = document.isEmpty()
        self._size = document.defaultFont().pointSizeF()
        self._fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).families()
        document.setIndentWidth(INDENT)

    def mark(self) -> Mark:
        after_empty = not self._fresh and self.cursor.block().length() == 1
        return Mark(self.cursor.position(), self._fresh, after_empty)

    def rewind(self, mark: Mark) -> None:
        """Takes back all that was written since the mark."""
        self.cursor.setPosition(mark.position)
        self.cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        self.cursor.removeSelectedText()
        self._fresh = mark.fresh

    def text_format(self, colour: str = "", scale: float = 1.0, bold: bool = False) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setForeground(QColor(colour or self.theme.text))
        form.setFontPointSize(self._size * scale)
        if bold:
            form.setFontWeight(QFont.Weight.DemiBold)
        return form

    def action_format(self, address: str) -> QTextCharFormat:
        """A link of the window's own, which no model text can forge: theirs are addressed otherwise."""
        form = self.text_format(self.theme.muted, 0.85)
        form.setAnchor(True)
        form.setAnchorHref(address)
        form.setFontUnderline(False)
        return form

    def block_format(self, top: float = 0.0, bottom: float = 0.0, level: int = 0) -> QTextBlockFormat:
        form = QTextBlockFormat()
        form.setTopMargin(top)
        form.setBottomMargin(bottom)
        form.setIndent(level)
        form.setLineHeight(LINE_HEIGHT, PROPORTIONAL)
        return form

    def start_block(self, block: QTextBlockFormat, text: QTextCharFormat) -> None:
        """Begins a paragraph: in the empty block that waits, or in a new one."""
        if self._fresh:
            around = self.cursor.block().textList()
            if around is not None:
                around.remove(self.cursor.block())
            self.cursor.setBlockFormat(block)
            self.cursor.setBlockCharFormat(text)
            self.cursor.setCharFormat(text)
        else:
            self.cursor.insertBlock(block, text)
        self._fresh = False

    def open_frame(self, kind: str, form: QTextFrameFormat) -> QTextFrame:
        if self._fresh:
            self._start_spacer()
        form.setProperty(FRAME_KIND, kind)
        frame = self.cursor.insertFrame(form)
        self._fresh = True
        return frame

    def close_frame(self, frame: QTextFrame) -> None:
        if self._fresh:
            self._start_spacer()  # after a frame inside this one
        self.cursor.setPosition(frame.lastPosition() + 1)
        self._fresh = True

    def write_lines(self, text: str, form: QTextCharFormat) -> None:
        """Text as it stands, each line in a block like the current one."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self.cursor.insertBlock()
            for start in range(0, len(line), MAX_LINE):
                if start:
                    self.cursor.insertBlock()
                self.cursor.insertText(line[start : start + MAX_LINE], form)

    def write(self, block: Block, code_address: str, level: int = 0, top: float = 0.0) -> None:
        """Writes a block. code_address: what the Copy links of its code lead to, "/0" and on."""
        self._code_count = 0
        self._write(block, code_address, level, top)

    def _write(self, block: Block, code_address: str, level: int, top: float, bottom: float = GAP) -> None:
        match block:
            case Paragraph(runs):
                self.start_block(self.block_format(top, bottom, level), self.text_format())
                self._write_runs(runs, self.text_format())
            case Heading(depth, runs):
                form = self.text_format(scale=HEADING_SIZES.get(depth, 1.0), bold=True)
                self.start_block(self.block_format(GAP if depth > 3 else 1.5 * GAP, 0.7 * GAP, level), form)
                self._write_runs(runs, form)
            case CodeBlock():
                self._write_code(block, f"{code_address}/{self._code_count}", level)
                self._code_count += 1
            case ListBlock():
                self._write_list(block, code_address, level)
            case Quote(blocks):
                quote = QTextFrameFormat()
                quote.setLeftMargin(level * INDENT)
                quote.setBottomMargin(bottom)
                quote.setPadding(4)
                frame = self.open_frame("quote", quote)
                for child in blocks:
                    self._write(child, code_address, 1, 0.0, 4.0)
                self.close_frame(frame)
            case Table():
                self._write_table(block, level)
            case Divider():
                frame = self.open_frame("divider", self._frame_format(level, margin=GAP))
                self.start_block(self._spacer_format(), self.text_format(scale=0.1))
                self.close_frame(frame)
            case PlainText(text):
                self.start_block(self.block_format(top, 0, level), self.code_format("plain"))
                self.write_lines(text, self.code_format("plain"))

    def _write_runs(self, runs: Runs, base: QTextCharFormat) -> None:
        for run in runs:
            # a line break inside a block, as U+2028, keeps it one paragraph
            self.cursor.insertText(run.text.replace("\n", "\u2028"), self._run_format(run, base))

    def _run_format(self, run: Run, base: QTextCharFormat) -> QTextCharFormat:
        form = QTextCharFormat(base)
        if run.bold:
            form.setFontWeight(QFont.Weight.Bold)
        form.setFontItalic(run.italic)
        form.setFontStrikeOut(run.strike)
        if run.code:
            form.setFontFamilies(self._fixed)
            form.setBackground(QColor(self.theme.code_background))
        if run.link:
            form.setAnchor(True)
            form.setAnchorHref(link_address(run.link))
            form.setForeground(QColor(self.theme.link))
            form.setFontUnderline(True)
        return form

    def code_format(self, role: str) -> QTextCharFormat:
        form = self.text_format(self.theme.code[role], 0.92)  # type: ignore[index]
        form.setFontFamilies(self._fixed)
        return form

    def _frame_format(self, level: int, margin: float, padding: float = 0.0) -> QTextFrameFormat:
        form = QTextFrameFormat()
        form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_None)
        form.setLeftMargin(level * INDENT)
        form.setTopMargin(margin)
        form.setBottomMargin(margin)
        form.setPadding(padding)
        return form

    def _write_code(self, block: CodeBlock, address: str, level: int) -> None:
        frame = self.open_frame("code", self._frame_format(level, margin=6, padding=10))
        header = self.block_format()
        header.setLineHeight(100, PROPORTIONAL)
        header.setAlignment(Qt.AlignmentFlag.AlignRight)
        small = self.text_format(self.theme.muted, 0.85)
        self.start_block(header, small)
        if block.language:
            self.cursor.insertText(f"{block.language[:30]}   ", small)
        self.cursor.insertText(
            QCoreApplication.translate("DocumentWriter", "Copy code"), self.action_format(address)
        )
        line = self.block_format()
        line.setLineHeight(125, PROPORTIONAL)
        self.start_block(line, self.code_format("plain"))
        for text, role in highlight(block.code, block.language if block.closed else ""):
            self.write_lines(text, self.code_format(role))
        self.close_frame(frame)

    def append_to_code(self, text: str) -> None:
        """Adds to the code block that was written last and is still open."""
        end = self.cursor.position()
        self.cursor.setPosition(end - 1)
        self.write_lines(text, self.code_format("plain"))
        self.cursor.movePosition(QTextCursor.MoveOperation.End)

    def _write_list(self, block: ListBlock, code_address: str, level: int) -> None:
        bullets = (QTextListFormat.Style.ListDisc, QTextListFormat.Style.ListCircle)
        form = QTextListFormat()
        form.setIndent(level + 1)
        if block.start is None:
            form.setStyle(bullets[min(level, 1)])
        else:
            form.setStyle(QTextListFormat.Style.ListDecimal)
        made = None
        gap = 3.0 if block.tight else 7.0
        for number, item in enumerate(block.items):
            last = number == len(block.items) - 1 and level == 0
            first, *rest = item or (Paragraph(()),)
            bullet_block = first if isinstance(first, Paragraph | Heading) else Paragraph(())
            self.start_block(self.block_format(0, GAP if last and not rest else gap), self.text_format())
            if number % ITEMS_TOGETHER == 0 and block.start is not None:
                form.setStart(min(block.start + number, MAX_NUMBER))
            if made is None or number % ITEMS_TOGETHER == 0:
                made = self.cursor.createList(form)
            else:
                made.add(self.cursor.block())
            self._write_runs(bullet_block.runs, self.text_format(bold=isinstance(first, Heading)))
            if bullet_block is not first:
                rest = [first, *rest]
            for child in rest:
                self._write(child, code_address, level + 1, 0.0, gap)

    def _write_table(self, block: Table, level: int) -> None:
        if self._fresh:
            self._start_spacer()
        form = QTextTableFormat()
        form.setBorder(1)
        form.setBorderCollapse(True)
        form.setBorderBrush(QBrush(QColor(self.theme.border)))
        form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        form.setCellPadding(6)
        form.setCellSpacing(0)
        form.setLeftMargin(level * INDENT)
        form.setTopMargin(4)
        form.setBottomMargin(GAP)
        form.setHeaderRowCount(1)
        columns = len(block.alignments)
        form.setColumnWidthConstraints([QTextLength()] * columns)
        table = self.cursor.insertTable(len(block.rows), columns, form)
        sides = {
            "left": Qt.AlignmentFlag.AlignLeft,
            "center": Qt.AlignmentFlag.AlignHCenter,
            "right": Qt.AlignmentFlag.AlignRight,
        }
        for row, cells in enumerate(block.rows):
            for column, runs in enumerate(cells[:columns]):
                cell = table.cellAt(row, column)
                self.cursor.setPosition(cell.firstPosition())
                paragraph = QTextBlockFormat()
                paragraph.setAlignment(sides[block.alignments[column]])
                self.cursor.setBlockFormat(paragraph)
                self._write_runs(runs, self.text_format(bold=row == 0))
        self.cursor.setPosition(table.lastPosition() + 1)
        self._fresh = True

    def _start_spacer(self) -> None:
        """Makes the empty block that Qt wants between two frames as flat as it can be."""
        self.start_block(self._spacer_format(), self.text_format(scale=0.1))

    def _spacer_format(self) -> QTextBlockFormat:
        form = QTextBlockFormat()
        form.setLineHeight(1, FIXED)
        return form
