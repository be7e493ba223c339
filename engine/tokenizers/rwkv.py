r"""RWKV's "world" vocabulary (`tokenizer.ggml.model` = rwkv): the longest token that begins at each byte.

Tokens are strings of bytes, which the file writes with escapes (`\n`, `\x9f`, `\\`), as public converters do.
"""

from __future__ import annotations

import re

from engine.tokenizers.substrings import SubstringIndex
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import TokenKind, Vocabulary

_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_NAMED = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


class RwkvTokenizer(Tokenizer):
    """Vocabulary of strings of bytes, looked up as Latin-1, in which code point and byte are the same."""

    kind = "rwkv"

    def __init__(self, vocabulary: Vocabulary, *, pre: str, add_bos: bool, add_eos: bool) -> None:
        super().__init__(vocabulary, pre=pre, add_bos=add_bos, add_eos=add_eos)
        spellable = vocabulary.ids_of_kind(TokenKind.NORMAL, TokenKind.BYTE)
        self._tokens = SubstringIndex(
            {self._plain_piece(token).decode("latin-1"): token for token in spellable}
        )

    def _encode_plain(self, text: str) -> list[int]:
        raw = text.encode().decode("latin-1")
        ids: list[int] = []
        position = 0
        while position < len(raw):
            found = self._tokens.longest(raw, position)
            if found is None:
                ids += [] if self.unk_id is None else [self.unk_id]
                position += 1
                continue
            ids.append(found[0])
            position += found[1]
        return ids

    def _plain_piece(self, token: int) -> bytes:
        text = self.vocabulary.texts[token].encode("utf-8", "surrogateescape")
        return _ESCAPE.sub(_unescaped, text) if b"\\" in text else text


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    return _NAMED.get(match[2], match[2])
