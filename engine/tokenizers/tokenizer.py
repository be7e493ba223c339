"""What every kind of tokenizer offers, and what they share: special tokens, prompts, decoding."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.errors import TokenizerError
from engine.tokenizers.special_tokens import SpecialTokenMatcher
from engine.tokenizers.vocabulary import TokenKind, Vocabulary

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PromptSegment:
    """A part of a rendered prompt.  literal: somebody's words, which never become control tokens."""

    text: str
    literal: bool = False


class Tokenizer(ABC):
    """Text to token ids and back, for one model.

    kind: "byte-pair" or "sentence-piece".  pre: the pre-tokenizer rule the file asks for ("" if none).
    add_bos, add_eos: what the file says about a whole prompt.  warnings: whole sentences for a person.
    eog_ids: ids that end a reply.  control_ids: ids that are never shown and never made from a person's text.
    """

    kind: str

    def __init__(
        self, vocabulary: Vocabulary, *, pre: str, add_bos: bool, add_eos: bool, warnings: Iterable[str] = ()
    ) -> None:
        self.vocabulary = vocabulary
        self.pre = pre
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.unk_id = vocabulary.unk_id
        self.pad_id = vocabulary.pad_id
        self.add_bos = add_bos and self.bos_id is not None
        self.add_eos = add_eos and self.eos_id is not None
        self.eog_ids = vocabulary.eog_ids
        self.control_ids = frozenset(vocabulary.ids_of_kind(TokenKind.CONTROL))
        self.warnings = (*vocabulary.warnings, *warnings)
        user_defined = {
            self._user_defined_text(token): token for token in vocabulary.ids_of_kind(TokenKind.USER_DEFINED)
        }
        control_kinds = (TokenKind.CONTROL, TokenKind.UNKNOWN)
        control = {vocabulary.texts[token]: token for token in vocabulary.ids_of_kind(*control_kinds)}
        self._user_defined = SpecialTokenMatcher(user_defined)
        self._all_special = SpecialTokenMatcher(user_defined | control)
        self._pieces: list[bytes | None] = [None] * vocabulary.n_tokens

    @property
    def n_tokens(self) -> int:
        return self.vocabulary.n_tokens

    # Text to ids

    def encode(self, text: str, *, parse_special: bool, add_special: bool = False) -> list[int]:
        """The ids of text.

        parse_special: texts of control tokens become those tokens; else they are text like any other.
        User-defined tokens are cut out either way.
        add_special: make it a whole prompt: one BOS in front and an EOS behind, where the file says so.
        """
        return self.encode_segments([PromptSegment(text, literal=not parse_special)], add_special=add_special)

    def encode_segments(self, segments: Sequence[PromptSegment], *, add_special: bool = False) -> list[int]:
        """The ids of a rendered prompt, whose literal segments never become control tokens.

        The segments are read as one text: a border between two of them does not split a token.
        """
        texts = [_SURROGATES.sub("\ufffd", segment.text) for segment in segments]
        barred: list[tuple[int, int]] = []
        position = 0
        for segment, text in zip(segments, texts, strict=True):
            if segment.literal and text:
                barred.append((position, position + len(text)))
            position += len(text)
        ids = self._encode_with_special("".join(texts), barred)
        if add_special:
            ids = self.with_bos(ids)
        if add_special and self.add_eos and self.eos_id is not None:
            ids.append(self.eos_id)
        return ids

    def with_bos(self, ids: list[int]) -> list[int]:
        """ids with one BOS in front where the file says so: a prompt that a reply is to follow."""
        if self.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            return [self.bos_id, *ids]
        return ids

    def _encode_with_special(self, text: str, barred: list[tuple[int, int]]) -> list[int]:
        wholly_literal = barred == [(0, len(text))]
        matches = self._user_defined.find(text) if wholly_literal else self._all_special.find(text, barred)
        ids: list[int] = []
        position = 0
        for start, end, token in matches:
            if start < position:
                continue  # a token of spaces that the token before it swallowed
            if start > position:
                ids += self._encode_plain(text[position:start])
            ids.append(token)
            position = end
            if token in self.vocabulary.rstrip_ids:
                while position < len(text) and text[position].isspace():
                    position += 1
        if position < len(text):
            ids += self._encode_plain(text[position:])
        return ids

    @abstractmethod
    def _encode_plain(self, text: str) -> list[int]:
        """The ids of a non-empty text without special tokens."""

    # Ids to text

    def decode(self, ids: Iterable[int], *, continues_text: bool = False) -> str:
        """The text of ids without control tokens; bytes that are no UTF-8 become U+FFFD.

        continues_text: ids follow others (a reply after its prompt), so a leading space is the text's own.
        """
        raw = b"".join(map(self.piece, ids))
        if self.strips_leading_space and not continues_text:
            raw = raw.removeprefix(b" ")
        return raw.decode("utf-8", "replace")

    @property
    def strips_leading_space(self) -> bool:
        """Whether encoding puts a space before a text, which decoding a whole text takes away again."""
        return False

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to a text; none for control tokens.  TokenizerError: no such id."""
        self._check(token)
        known = self._pieces[token]
        if known is None:
            known = self._pieces[token] = self._piece(token)
        return known

    def _piece(self, token: int) -> bytes:
        kind = self.vocabulary.kinds[token]
        if kind in (TokenKind.CONTROL, TokenKind.UNKNOWN):
            return b""
        if kind == TokenKind.USER_DEFINED:
            return self._user_defined_text(token).encode("utf-8", "surrogateescape")
        return self._plain_piece(token)

    @abstractmethod
    def _plain_piece(self, token: int) -> bytes:
        """The bytes of a token that is neither control, unknown nor user-defined."""

    def _user_defined_text(self, token: int) -> str:
        return self.vocabulary.texts[token]

    def token_text(self, token: int) -> str:
        """A token as a person may read it in a list: control tokens by name, others as their text."""
        self._check(token)
        if self.vocabulary.kinds[token] in (TokenKind.CONTROL, TokenKind.UNKNOWN):
            return _SURROGATES.sub("\ufffd", self.vocabulary.texts[token])
        return self.piece(token).decode("utf-8", "replace")

    def is_control(self, token: int) -> bool:
        return token in self.control_ids

    def _check(self, token: int) -> None:
        if not 0 <= token < self.n_tokens:
            raise TokenizerError(
                f"The model has no token {token}; its vocabulary ends at {self.n_tokens - 1}."
            )
