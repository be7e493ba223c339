"""The vocabulary of a checkpoint on its way into metadata (``tokenizer.ggml.*`` of the specification)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from engine.errors import TokenizerError
from engine.tokenizers.vocabulary import TokenKind

MAX_TOKENS = 1 << 22
ADDED_SCORE = -1000.0
UNUSED_SCORE = -10000.0
"""What public converters give tokens that nothing is merged to."""

SPACE = "▁"


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that a tokenizer cuts out of a text before anything else."""

    id: int
    text: str
    special: bool

    @property
    def kind(self) -> TokenKind:
        return TokenKind.CONTROL if self.special or looks_special(self.text) else TokenKind.USER_DEFINED


@dataclass
class TokenTable:
    """model: ``tokenizer.ggml.model``.  By id: texts, kinds, and scores for the models that have some.

    others: further metadata.  notices: sentences a person should see.
    """

    model: str
    texts: list[str]
    kinds: list[TokenKind]
    scores: list[float] | None = None
    others: dict[str, object] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    @classmethod
    def of_pieces(cls, model: str, ids: dict[str, int], *, scored: bool = False) -> TokenTable:
        """A table with these normal tokens; ids that nothing has are unused.

        Raises `TokenizerError` for ids that are no sensible numbers, or that two tokens share.
        """
        size = max(ids.values(), default=-1) + 1
        if not ids or size > MAX_TOKENS or min(ids.values()) < 0 or len(set(ids.values())) != len(ids):
            raise TokenizerError("The ids of the vocabulary are no numbers in a row.")
        table = cls(model, [], [], [] if scored else None)
        table.extend(size)
        for text, token in ids.items():
            table.texts[token] = text
            table.kinds[token] = TokenKind.NORMAL
        return table

    def extend(self, size: int) -> None:
        """Unused tokens up to that many: an embedding may have more rows than there are tokens."""
        for token in range(len(self.texts), size):
            self.texts.append(f"[PAD{token}]")
            self.kinds.append(TokenKind.UNUSED)
            if self.scores is not None:
                self.scores.append(UNUSED_SCORE)

    def add(self, tokens: Iterable[AddedToken]) -> None:
        """Added tokens take their ids, whatever was there.  Raises `TokenizerError` for absurd ids."""
        for token in tokens:
            if not 0 <= token.id < MAX_TOKENS:
                raise TokenizerError(f"The added token {token.text[:40]!r} has the id {token.id}.")
            self.extend(token.id + 1)
            kind = token.kind
            if self.kinds[token.id] is TokenKind.UNKNOWN:
                kind = TokenKind.UNKNOWN
            self.kinds[token.id] = kind
            spaced = kind is TokenKind.USER_DEFINED
            self.texts[token.id] = token.text.replace(SPACE, " ") if spaced else token.text
            if self.scores is not None:
                self.scores[token.id] = ADDED_SCORE

    def fit(self, n_rows: int) -> None:
        """As many tokens as the embedding has rows; a notice where tokens have none."""
        beyond = [text for text in self.texts[n_rows:] if not text.startswith("[PAD")]
        if beyond:
            self.notices.append(
                f"{len(beyond)} tokens, such as {beyond[0][:40]!r}, have no row in the embedding "
                "and were left out."
            )
        del self.texts[n_rows:], self.kinds[n_rows:]
        if self.scores is not None:
            del self.scores[n_rows:]
        self.extend(n_rows)

    def id_of(self, text: str) -> int | None:
        return self.texts.index(text) if text in self.texts else None

    def metadata(self) -> dict[str, object]:
        values: dict[str, object] = {
            "tokenizer.ggml.model": self.model,
            "tokenizer.ggml.tokens": self.texts,
        }
        if self.scores is not None:
            values["tokenizer.ggml.scores"] = np.array(self.scores, np.float32)
        values["tokenizer.ggml.token_type"] = np.array(self.kinds, np.int32)
        return values | self.others


def looks_special(text: str) -> bool:
    """Tokens that some makers forgot to mark, though no text should ever hold them."""
    return (
        text in ("<pad>", "<mask>", "<2mass>", "[@BOS@]")
        or (text.startswith("<|") and text.endswith("|>"))
        or (text.startswith("<\uff5c") and text.endswith("\uff5c>"))
        or (text.startswith("<unused") and text.endswith(">"))
    )
