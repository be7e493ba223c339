"""What the truth tests share: the reference's answers, and the engine's logits at every position.

The engine stores keys and values in half precision.  Its float32 sums and the reference's float64 sums differ
by 1e-7, and where such a difference crosses a border of that rounding, a stored number differs by a whole
step of 1e-3; the layers above turn that into more crossings.  So no logits can be predicted closer than that
noise: the reference that rounds, with 1e-7 of noise on its embeddings, differs from itself by 1.6e-3 on both
real models, and the engine from it by 6e-4 to 2.4e-3.  Two comparisons remain, which together miss nothing:

- with the exact reference, where the noise of half precision is inside the tolerance;
- with a reference that reads the very numbers the engine has stored (`ReplayedModel`).  It checks that each
  is a right rounding of its own, and then has to agree to float32 accuracy, as nothing else is ever rounded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backends.cpu.context import CpuContext
from engine.backends.interface import Batch, Context
from engine.gguf.reader import GGUFFile
from engine.model import LoadedModel
from engine.tokenizers import load_tokenizer
from tests.helpers.slow_reference import Floats, ReferenceModel, log_softmax

TESTS = Path(__file__).parents[1]
HALF_STEP = 2.0**-10
"""Distance of neighbouring half-precision numbers, relative to the lower power of two."""
SMALLEST_HALF_STEP = 2.0**-24

N_TEXT = 200
"""Positions of running text with answers; the first N_LOGITS are read in several ways."""
N_LOGITS = 100
N_FAR, N_FAR_LAST = 700, 20
"""Length of a text beyond the window of gemma3, and how many of its last positions have answers."""

RUNNING_TEXT = (TESTS / "data/text/harbour.txt").read_text(encoding="utf-8")


@dataclass(frozen=True)
class GoldenSteps:
    """What the reference would take at each step along a golden continuation, having read the golden ids.

    first: float64[vocabulary], log-probabilities after the prompt.  best: int[steps].  In log-probability,
    float64[steps]: lead, of the best over the runner-up; lag, of the golden id behind the best.
    """

    case: dict[str, Any]
    first: Floats
    best: NDArray[np.int64]
    lead: Floats
    lag: Floats


@dataclass(frozen=True)
class Truth:
    """Answers of the exact reference for one real model.

    ids: the running text, long enough for all of it.  logits: float32[N_TEXT, vocabulary].
    far: float32[N_FAR_LAST, vocabulary], after the last ids of the first N_FAR; None where it is not needed.
    """

    path: Path
    ids: list[int]
    logits: NDArray[np.float32]
    far: NDArray[np.float32] | None
    golden: tuple[GoldenSteps, ...]


def compute_truth(path: Path, golden_name: str, *, far: bool) -> Truth:
    """Takes up to a minute and some GB of memory, which it gives back."""
    with GGUFFile.open(path) as file:
        ids = load_tokenizer(file.metadata).encode(RUNNING_TEXT, parse_special=False, add_special=True)
    cases = json.loads((TESTS / "golden" / golden_name).read_text(encoding="utf-8"))
    reference = ReferenceModel(path)
    logits = reference.forward(ids[:N_TEXT]).astype(np.float32)
    reference.forget()
    far_logits = reference.forward(ids[:N_FAR], last=N_FAR_LAST).astype(np.float32) if far else None
    return Truth(path, ids, logits, far_logits, tuple(_golden_steps(reference, case) for case in cases))


def _golden_steps(reference: ReferenceModel, case: dict[str, Any]) -> GoldenSteps:
    reference.forget()
    read, n_steps = case["ids"] + case["greedy"][:-1], len(case["greedy"])
    steps = log_softmax(reference.forward(read, last=n_steps))
    best = steps.argmax(axis=1)
    second, first = np.partition(steps, -2, axis=1)[:, -2:].T
    return GoldenSteps(
        case, steps[0], best, first - second, first - steps[np.arange(n_steps), case["greedy"]]
    )


class ReplayedModel(ReferenceModel):
    """A reference whose keys and values are those in an engine's cache, once they are checked.

    rounding_excess: how far beyond half a step of half precision a stored number lies from the reference's
    own at most, relative to the root mean square of its vector: what float32 sums were off by before it.
    """

    rounding_excess: float

    def replay(self, ids: list[int], context: Context) -> Floats:
        """float64[n, vocabulary]: the logits after each of the ids, which are all that context has read."""
        assert isinstance(context, CpuContext)
        self.forget()
        self.context = context
        self.rounding_excess = 0.0
        return self.forward(ids)

    def stored(self, layer: int, keys: Floats, values: Floats) -> tuple[Floats, Floats]:
        stored_keys, stored_values = stored_kv(self.context, layer, len(keys))
        for own, theirs in ((keys, stored_keys), (values, stored_values)):
            exponent = np.floor(np.log2(np.maximum(np.abs(own), 2.0**-30)))
            step = np.maximum(2.0**exponent * HALF_STEP, SMALLEST_HALF_STEP)
            size = np.sqrt((own**2).mean(axis=-1, keepdims=True))
            self.rounding_excess = max(
                self.rounding_excess, float(((np.abs(own - theirs) - step / 2) / size).max())
            )
        return stored_keys, stored_values


def stored_kv(context: CpuContext, layer: int, n: int) -> tuple[Floats, Floats]:
    """float64[n, kv_heads, head_size] each: keys and values of the first n positions, while in the ring."""
    store = context.cache.layers[layer]
    assert n <= store.capacity
    tiles = store.keys[0].view(np.float16)  # [kv_heads, tiles, head_size, tile]
    keys = tiles.transpose(1, 3, 0, 2).reshape(store.capacity, tiles.shape[0], tiles.shape[2])
    values = store.values[0].view(np.float16).transpose(1, 0, 2)
    return keys[:n].astype(np.float64), values[:n].astype(np.float64)


def read_logits(
    model: LoadedModel,
    context: Context,
    ids: list[int],
    chunk: int,
    *,
    last: int | None = None,
    position: int = 0,
) -> NDArray[np.float32]:
    """float32[n, vocabulary]: the engine's logits after each of the ids (or the last ones), chunk by chunk.

    position: how many ids the context has read before.
    """
    first_output = len(ids) - (last or len(ids))
    parts = []
    for start in range(0, len(ids), chunk):
        part = ids[start : start + chunk]
        outputs = range(min(max(0, first_output - start), len(part)), len(part))
        batch = Batch(
            tokens=np.array(part, np.int32),
            positions=np.arange(position + start, position + start + len(part), dtype=np.int32),
            sequences=np.zeros(len(part), np.int32),
            outputs=np.array(outputs, np.int32),
        )
        parts.append(context.run(model.plan_for(len(part), len(outputs)), batch).copy())
    return np.concatenate(parts)


def relative_l2(ours: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
    """Per row: |ours - wanted| / |wanted|."""
    assert ours.shape == wanted.shape
    result: NDArray[Any] = np.linalg.norm(ours - wanted, axis=-1) / np.linalg.norm(wanted, axis=-1)
    return result


def mean_divergence(wanted: NDArray[np.float32], ours: NDArray[np.float32]) -> float:
    """Mean over rows of the Kullback-Leibler divergence (wanted || ours) of the next token, in nats."""
    rows = []
    for wanted_row, our_row in zip(wanted, ours, strict=True):
        p, q = log_softmax(wanted_row.astype(np.float64)), log_softmax(our_row.astype(np.float64))
        rows.append(float(np.sum(np.exp(p) * (p - q))))
    return float(np.mean(rows))
