"""WordPiece, the tokenizer of BERT (`tokenizer.ggml.model` = bert; J. Devlin et al., 2018).

Text is cleaned and cut into words and single signs; each word is covered from the left by the longest tokens.
In a model file the first piece of a word begins with U+2581; the others have lost the `##` of BERT's list.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import regex

from engine.errors import TokenizerError
from engine.tokenizers.spaces import SPACE, with_spaces
from engine.tokenizers.substrings import SubstringIndex
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import TokenKind, Vocabulary
from engine.tokenizers.word_cache import WordCache

# Ranges and classes of BERT's published BasicTokenizer.
_CHINESE = (
    r"\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_SIGN = rf"!-/:-@\[-`{{-~\p{{P}}{_CHINESE}"
_WORDS = regex.compile(rf"[{_SIGN}]|[^\s{_SIGN}]+")
# Not \p{C}: characters that nobody has assigned yet become the unknown token.
_LEFT_OUT = regex.compile(r"[\p{Cc}\p{Cf}\p{Co}\ufffd--\t\n\r]", regex.V1)
_ACCENTS = regex.compile(r"\p{Mn}")


class WordPieceTokenizer(Tokenizer):
    """Vocabulary of word beginnings (with U+2581) and continuations.

    lowercase, strip_accents: what the model's text was like.
    A whole prompt begins with BOS (BERT's [CLS]) and ends with the separator ([SEP]).
    """

    kind = "word-piece"

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        pre: str,
        lowercase: bool,
        strip_accents: bool,
        warnings: Iterable[str] = (),
    ) -> None:
        super().__init__(vocabulary, pre=pre, add_bos=True, add_eos=False, warnings=warnings)
        if self.unk_id is None:
            raise TokenizerError("The WordPiece vocabulary has no token for unknown words.")
        self.eos_id = vocabulary.sep_id
        self.add_eos = self.eos_id is not None
        self._unknown = [self.unk_id]
        self._lowercase = lowercase
        self._strip_accents = strip_accents
        texts = vocabulary.texts
        spellable = vocabulary.ids_of_kind(TokenKind.NORMAL, TokenKind.UNUSED)
        self._tokens = SubstringIndex({texts[token]: token for token in spellable})
        self._words = WordCache(self._encode_word)

    @property
    def strips_leading_space(self) -> bool:
        return True

    def _encode_plain(self, text: str) -> list[int]:
        return self._words.encode(self._split(text))

    def _split(self, text: str) -> list[str]:
        """The words and signs of a text, cleaned as the model's training text was."""
        text = _LEFT_OUT.sub("", text)
        if self._strip_accents and not text.isascii():
            text = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
        if self._lowercase:
            # Character by character: Python alone has another small sigma at the end of a word.
            text = text.replace("\u03a3", "\u03c3").lower()
        words: list[str] = _WORDS.findall(text)
        return words

    def _encode_word(self, word: str) -> list[int]:
        """The pieces of a word; the unknown token where one of them is missing."""
        word = SPACE + word
        ids: list[int] = []
        position = 0
        while position < len(word):
            found = self._tokens.longest(word, position)
            if found is None:
                return self._unknown
            ids.append(found[0])
            position += found[1]
        return ids

    def _plain_piece(self, token: int) -> bytes:
        return with_spaces(self.vocabulary.texts[token]).encode("utf-8", "surrogateescape")
