"""A session: the KV cache of one conversation and the tokens that are really in it.

A new prompt is compared with those tokens, by id, and only what follows the longest common beginning is
evaluated.  So a continued, regenerated or edited chat, or another chat in between, always gives the logits
that a fresh session would give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.backends.interface import Batch, Context, ShouldStop
from engine.errors import Cancelled, ContextOverflowError, SettingsError
from engine.requests import PromptProgress

if TYPE_CHECKING:
    from engine.model import LoadedModel


class Session:
    """One conversation; used by one thread at a time.

    It owns a context of the model, or is one sequence of a context that a `SessionGroup` owns.  Raises
    `OutOfMemoryError` when made.
    """

    def __init__(self, model: LoadedModel, context: Context | None = None, sequence: int = 0) -> None:
        self.model = model
        self.context_size = model.context_size
        self.logits: NDArray[np.float32] | None = None
        """float32[vocabulary] after the last token, valid until the next run of this session; None within a
        prompt."""
        self._chunk = min(model.prompt_chunk, model.cache_spec.max_batch)
        self._tokens: list[int] = []
        self._sequence = sequence
        self._is_member = context is not None
        self._context = model.new_context() if context is None else context
        self._own_logits: NDArray[np.float32] | None = None

    @property
    def tokens(self) -> Sequence[int]:
        """The ids that are in the KV cache, in order: never what text would be tokenised to again."""
        return self._tokens

    @property
    def is_full(self) -> bool:
        """Whether no further token can be evaluated."""
        return len(self._tokens) >= self.context_size

    def prefill(self, ids: Sequence[int], should_stop: ShouldStop) -> Iterator[PromptProgress]:
        """Makes the cache hold exactly these ids; afterwards `logits` are those after the last of them.

        Yields once at the start and after each chunk, and ends early, with `logits` None, when should_stop()
        says so, which the backend asks within a chunk too; whole chunks that were evaluated stay usable.  A
        prompt may fill the whole context.

        Raises `ContextOverflowError` for more ids than that, `SettingsError` for no ids or ids outside the
        vocabulary, and what `Context.run` raises.
        """
        self._check(ids)
        total = len(ids)
        self.logits = None
        reused = self._reuse(ids)
        yield PromptProgress(done=reused, total=total, reused=reused)
        for start in range(reused, total, self._chunk):
            if should_stop():
                return
            stop = min(start + self._chunk, total)
            try:
                self._run(ids[start:stop], want_logits=stop == total, should_stop=should_stop)
            except Cancelled:
                return
            yield PromptProgress(done=stop, total=total, reused=reused)

    def decode(self, token: int) -> NDArray[np.float32]:
        """Evaluates one more token and returns `logits`.  Raises `ContextOverflowError` when `is_full`."""
        if self.is_full:
            raise ContextOverflowError(f"The context of {self.context_size} tokens is full.")
        self._run([token], want_logits=True)
        assert self.logits is not None
        return self.logits

    def note(self, tokens: Sequence[int], logits: NDArray[np.float32] | None) -> None:
        """These tokens now follow in the cache, and logits, float32[vocabulary], are those after the last.

        For whoever runs the context: this session, or the group it belongs to.
        """
        self._tokens.extend(tokens)
        if logits is None or not self._is_member:
            self.logits = logits
            return
        # The next run may be another member's, and would overwrite the row.
        if self._own_logits is None:
            self._own_logits = np.empty_like(logits)
        np.copyto(self._own_logits, logits)
        self.logits = self._own_logits

    def forget(self) -> None:
        """Trusts nothing in the cache any more: the next prompt is read from its beginning."""
        self._tokens = []
        self.logits = None

    def close(self) -> None:
        """Frees the KV cache, or leaves that to the group.  May be called twice."""
        self.forget()
        if not self._is_member:
            self._context.close()

    def _check(self, ids: Sequence[int]) -> None:
        if not ids:
            raise SettingsError("The prompt is empty.", "Write something first.")
        if len(ids) > self.context_size:
            raise ContextOverflowError(
                f"The prompt has {len(ids)} tokens, and the context holds {self.context_size}."
            )
        n_vocabulary = self.model.description.n_vocabulary
        outside = [token for token in ids if not 0 <= token < n_vocabulary]
        if outside:
            raise SettingsError(
                f"The prompt holds token {outside[0]}, but the model has {n_vocabulary} tokens.",
                "Use ids that `causerie tokenize` gives for this model.",
            )

    def _reuse(self, ids: Sequence[int]) -> int:
        """Cuts the cache back to what it shares with ids; at least the last id stays to be evaluated."""
        shared = 0
        for mine, wanted in zip(self._tokens, ids[:-1], strict=False):
            if mine != wanted:
                break
            shared += 1
        # A sliding window may have lost what the cut would need; then less is usable.
        usable = self._context.truncate(self._sequence, shared)
        del self._tokens[usable:]
        return usable

    def _run(self, tokens: Sequence[int], want_logits: bool, should_stop: ShouldStop | None = None) -> None:
        n = len(tokens)
        plan = self.model.plan_for(n, int(want_logits))
        batch = Batch(
            tokens=np.array(tokens, np.int32),
            positions=np.arange(len(self._tokens), len(self._tokens) + n, dtype=np.int32),
            sequences=np.full(n, self._sequence, np.int32),
            outputs=np.array([n - 1] if want_logits else [], np.int32),
        )
        try:
            logits = self._context.run(plan, batch, should_stop)
            self.note(tokens, logits[0] if want_logits else None)
        except Cancelled:
            # The cache holds what it held before.
            self.logits = None
            raise
        except BaseException:
            # Nobody knows what a failed or interrupted run has left in the cache.
            self.forget()
            raise
