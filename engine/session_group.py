"""Several conversations of one model that are written together.

The weights are read once for all of them, which is what writing waits for: so together they are written
faster than one after the other.  Each has its own tokens and its own part of the KV cache.

    with contextlib.closing(SessionGroup(model, 4)) as group:
        for session, ids in zip(group.sessions, prompts):
            list(session.prefill(ids, should_stop))
        logits = group.decode({0: token, 2: other})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.backends.interface import Batch
from engine.errors import ContextOverflowError
from engine.session import Session

if TYPE_CHECKING:
    from engine.model import LoadedModel


class SessionGroup:
    """Owns one context and a session for each of its sequences; used by one thread at a time.

    A session of it reads its prompts, and may write alone, as any session does.  Raises `OutOfMemoryError`
    when made.
    """

    def __init__(self, model: LoadedModel, size: int) -> None:
        self.model = model
        self._context = model.new_context(size)
        self.sessions = tuple(Session(model, self._context, sequence) for sequence in range(size))

    def decode(self, tokens: Mapping[int, int]) -> dict[int, NDArray[np.float32]]:
        """Evaluates one more token for each of these members in one run.

        tokens: index in `sessions` to its next id, in any number.  Gives the `logits` of each of them,
        float32[vocabulary].  Raises `ContextOverflowError` where one is full, before anything is evaluated,
        and what `Context.run` raises; then those members are read again from their beginning.
        """
        if not tokens:
            return {}
        members = sorted(tokens)
        sessions = [self.sessions[index] for index in members]
        for index, session in zip(members, sessions, strict=True):
            if session.is_full:
                raise ContextOverflowError(
                    f"The context of {session.context_size} tokens is full in conversation {index}."
                )
        n = len(members)
        batch = Batch(
            tokens=np.array([tokens[index] for index in members], np.int32),
            positions=np.array([len(session.tokens) for session in sessions], np.int32),
            sequences=np.array(members, np.int32),
            outputs=np.arange(n, dtype=np.int32),
        )
        try:
            rows = self._context.run(self.model.plan_for(n, n), batch)
        except BaseException:
            # Nobody knows what a failed or interrupted run has left in the cache.
            for session in sessions:
                session.forget()
            raise
        result = {}
        for index, session, row in zip(members, sessions, rows, strict=True):
            session.note([tokens[index]], row)
            assert session.logits is not None
            result[index] = session.logits
        return result

    def close(self) -> None:
        """Frees the KV cache.  May be called twice."""
        for session in self.sessions:
            session.close()
        self._context.close()
