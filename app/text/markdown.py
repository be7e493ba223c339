"""Model text to blocks: a pure function over markdown-it-py.

Rules that differ from CommonMark, and why:
- HTML, entities and images are not parsed: `<b>`, `&lt;` and `![x](y)` stay readable text.
- Links are kept for http, https and mailto alone; all others stay as written.
- Link reference definitions are off: a definition at the end would change blocks far above it,
  and the window renders only the last block again while a reply streams.
- A single line break is kept, as chat models mean it.
- A block nested too deeply, or a table of too many cells, is shown as written (`PlainText`), so that
  the time for one block is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore, inline, linkify, normalize, text_join
from markdown_it.rules_core import block as block_rule
from markdown_it.token import Token

from app.text.blocks import (
    Alignment,
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
    TopLevelBlock,
)

ALLOWED_SCHEMES = frozenset({"http", "https", "mailto"})
MAX_CODE_CHARACTERS = 2_000_000
MAX_TABLE_CELLS = 300
MAX_NESTING = 16


def is_allowed_link(target: str) -> bool:
    """Whether a link may be offered: http, https or mailto, with something after the scheme."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    if parts.scheme.lower() == "mailto":
        return bool(parts.path)
    return parts.scheme.lower() in ALLOWED_SCHEMES and bool(parts.netloc)


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return is_allowed_link(url)


def _make_parser() -> MarkdownIt:
    parser = _Parser("default", {"html": False, "linkify": True, "maxNesting": MAX_NESTING + 4})
    parser.disable(["image", "entity", "html_inline", "html_block", "reference"])
    return parser


_PARSER = _make_parser()


def parse_blocks(source: str) -> list[TopLevelBlock]:
    """The top-level blocks of the source, in order, with their lines.  Never raises on any text.

    Takes 2 ms for 1 kB and ever more for one huge block: `streamed_markdown.parse_markdown` bounds that.
    """
    state = StateCore(source, _PARSER, {})
    normalize(state)
    block_rule(state)
    lines = state.src.split("\n")
    result = []
    for tokens in _top_level_groups(state.tokens):
        first, end = tokens[0].map or [0, 0]
        while end > first + 1 and not lines[end - 1].strip() and tokens[0].type != "fence":
            end -= 1  # the parser counts blank lines after a list or quote to it
        block = _convert_group(tokens, "\n".join(lines[first:end]))
        result.append(TopLevelBlock(first, end, block))
    return result


def _top_level_groups(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield group
            group = []


def _convert_group(tokens: list[Token], source: str) -> Block:
    if tokens[0].type in ("fence", "code_block"):
        if len(source) > MAX_CODE_CHARACTERS:
            return PlainText(source)
        return _code_block(tokens[0])
    cells = sum(token.type in ("td_open", "th_open") for token in tokens)
    depth = max(token.level for token in tokens)
    if cells > MAX_TABLE_CELLS or depth > MAX_NESTING:
        return PlainText(source)
    state = StateCore("", _PARSER, {}, tokens)
    for rule in (inline, linkify, text_join):
        rule(state)
    blocks = _convert(_Cursor(tokens))
    return blocks[0] if len(blocks) == 1 else PlainText(source)


class _Cursor:
    """A place in the flat token list; `until` walks the children of an opened token."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.index = 0

    def until(self, closing: str) -> Iterator[Token]:
        while self.index < len(self.tokens):
            token = self.tokens[self.index]
            self.index += 1
            if token.type == closing:
                return
            yield token


def _convert(cursor: _Cursor, closing: str = "") -> tuple[Block, ...]:
    blocks: list[Block] = []
    for token in cursor.until(closing):
        match token.type:
            case "paragraph_open":
                blocks.append(Paragraph(_inline_content(cursor, "paragraph_close")))
            case "heading_open":
                blocks.append(Heading(int(token.tag[1]), _inline_content(cursor, "heading_close")))
            case "fence" | "code_block":
                blocks.append(_code_block(token))
            case "bullet_list_open":
                blocks.append(_list(cursor, None, "bullet_list_close"))
            case "ordered_list_open":
                start = token.attrGet("start")
                blocks.append(_list(cursor, 1 if start is None else int(start), "ordered_list_close"))
            case "blockquote_open":
                blocks.append(Quote(_convert(cursor, "blockquote_close")))
            case "table_open":
                blocks.append(_table(cursor))
            case "hr":
                blocks.append(Divider())
    return tuple(blocks)


def _inline_content(cursor: _Cursor, closing: str) -> Runs:
    return tuple(run for token in cursor.until(closing) for run in _runs(token.children or []))


def _code_block(token: Token) -> CodeBlock:
    if token.type == "code_block":
        return CodeBlock(token.content.removesuffix("\n"), "")
    language = token.info.strip().split(maxsplit=1)
    first, end = token.map or [0, 0]
    code_lines = token.content.count("\n") + (not token.content.endswith("\n") and token.content != "")
    # a closed fence spans one line more than its opening line and its code
    closed = end - first >= code_lines + 2
    return CodeBlock(token.content.removesuffix("\n"), language[0] if language else "", closed)


def _list(cursor: _Cursor, start: int | None, closing: str) -> ListBlock:
    items = []
    tight = True
    for token in cursor.until(closing):
        if token.type == "list_item_open":
            first = cursor.index
            items.append(_convert(cursor, "list_item_close"))
            inside = cursor.tokens[first : cursor.index]
            tight = tight and not any(
                child.type == "paragraph_open" and child.level == token.level + 1 and not child.hidden
                for child in inside
            )
    return ListBlock(start, tuple(items), tight)


def _table(cursor: _Cursor) -> Table:
    rows: list[tuple[Runs, ...]] = []
    alignments: list[Alignment] = []
    cells: list[Runs] = []
    for token in cursor.until("table_close"):
        if token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            rows.append(tuple(cells))
        elif token.type in ("th_open", "td_open"):
            if token.type == "th_open":
                style = str(token.attrGet("style") or "")
                alignments.append("right" if "right" in style else "center" if "center" in style else "left")
            cells.append(_inline_content(cursor, token.type.replace("open", "close")))
    return Table(tuple(rows), tuple(alignments))


def _runs(children: Sequence[Token]) -> Iterator[Run]:
    bold = italic = strike = 0
    link = ""
    for token in children:
        match token.type:
            case "strong_open" | "strong_close":
                bold += token.nesting
            case "em_open" | "em_close":
                italic += token.nesting
            case "s_open" | "s_close":
                strike += token.nesting
            case "link_open":
                link = str(token.attrGet("href") or "")
            case "link_close":
                link = ""
            case "softbreak" | "hardbreak":
                yield Run("\n")
            case _:
                if token.content:
                    is_code = token.type == "code_inline"
                    yield Run(token.content, bold > 0, italic > 0, strike > 0, is_code, link)
