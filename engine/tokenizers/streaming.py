"""Text from tokens as they come, in whole characters."""

from __future__ import annotations

import codecs

from engine.tokenizers.tokenizer import Tokenizer


class StreamingDetokenizer:
    """Joined, what `push` and `finish` return is `tokenizer.decode(ids, continues_text=continues_text)`.

    continues_text: the tokens follow others (a reply after its prompt), so that a leading space is kept.
    """

    def __init__(self, tokenizer: Tokenizer, *, continues_text: bool = False) -> None:
        self._tokenizer = tokenizer
        # Holds back an unfinished character; bytes that can no longer become one turn into U+FFFD at once.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strip_space = tokenizer.strips_leading_space and not continues_text

    def push(self, token: int) -> str:
        """The whole characters that token completes, perhaps none."""
        raw = self._tokenizer.piece(token)
        if raw and self._strip_space:
            raw = raw.removeprefix(b" ")
            self._strip_space = False
        return self._decoder.decode(raw)

    def finish(self) -> str:
        """What is left: "" or one U+FFFD for a character that was never finished."""
        return self._decoder.decode(b"", final=True)
