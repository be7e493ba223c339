"""Seconds that a model takes to read a prompt and to write a reply, after as many tokens as wanted.

Both go through a `Session`, as chats do: reading is its prefill of the ids in chunks with the logits of the
last, writing is one decode per token and the choice of the likeliest.  Text and sampling are left out.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from engine.graph.plan import Plan
from engine.model import LoadedModel
from engine.session import Session

FIRST_IDS = 1000
"""Prompts run through this many ids of the vocabulary; which ones has no influence on the speed."""


class SpeedMeter:
    """Measures one model; owns a session of it.

    ``depth`` tokens lie in the KV cache before those that are measured.  They are read once, untimed, and
    stay for the next measurement, unless sliding-window layers have lost what is needed of them.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._session = Session(model)
        self._n_ids = min(FIRST_IDS, model.description.n_vocabulary)
        self._numbers = itertools.count()

    def warm_up(self) -> None:
        """Wakes threads and pages, and waits for what loading left to be done in the background."""
        self._model.weights.settle()
        self.read(8)
        self.write(2)

    def read(self, n_tokens: int, depth: int = 0) -> float:
        """Seconds from a cache with depth tokens to the logits after n_tokens more.

        Raises `ContextOverflowError` where they do not fit the context, and what `Session.prefill` raises.
        """
        beginning = self._ids(depth)
        self._prefill(beginning)
        # Another first id than last time, since a session reuses what it has read already.
        prompt = self._ids(n_tokens, first=next(self._numbers))
        started = time.perf_counter()
        self._prefill([*beginning, *prompt])
        return time.perf_counter() - started

    def write(self, n_tokens: int, depth: int = 0) -> float:
        """Seconds for n_tokens, one after the other, the likeliest each, after a prompt of depth tokens.

        Raises as `read` does.
        """
        self._prefill(self._ids(max(depth, 1)))
        logits = self._session.logits
        assert logits is not None, "a whole prompt was read"
        started = time.perf_counter()
        for _ in range(n_tokens):
            logits = self._session.decode(int(np.argmax(logits)))
        return time.perf_counter() - started

    def close(self) -> None:
        """Frees the session.  May be called twice."""
        self._session.close()

    def _ids(self, count: int, first: int = 0) -> list[int]:
        return [(first + index) % self._n_ids for index in range(count)]

    def _prefill(self, ids: Sequence[int]) -> None:
        if ids:
            for _ in self._session.prefill(ids, lambda: False):
                pass


def bytes_per_token(model: LoadedModel) -> int:
    """Bytes of weights, as the file holds them, that writing one token reads.

    Of an embedding only one row is read, which does not count; where it is the output matrix too, it does.
    """
    return _weight_bytes(model, model.plan_for(1, 1))


def _weight_bytes(model: LoadedModel, plan: Plan) -> int:
    read = {name for step in plan.steps if step.node.operation != "embed" for name in step.node.weights}
    return sum(model.tensors[name].nbytes for name in read)
