"""What every context checks of a batch before it runs: the checks are the same on every device."""

from __future__ import annotations

from collections.abc import Sequence

from engine.backends.interface import Batch, CacheSpec
from engine.graph.plan import Plan


def lengths_after(plan: Plan, batch: Batch, spec: CacheSpec, lengths: Sequence[int]) -> dict[int, int]:
    """Length of each sequence of the batch once it has run; lengths: of every sequence before.

    Raises ValueError where the batch does not fit the plan, or does not continue its sequences within the
    context.
    """
    n = plan.n_tokens
    if n > spec.max_batch:
        raise ValueError(f"{n} tokens at once; this context was made for {spec.max_batch}")
    if (len(batch.positions), len(batch.sequences), len(batch.outputs)) != (n, n, plan.n_outputs):
        raise ValueError(f"the batch does not fit a plan of {n} tokens and {plan.n_outputs} outputs")
    outputs = batch.outputs.tolist()
    if outputs != sorted(set(outputs)) or (outputs and (outputs[0] < 0 or outputs[-1] >= n)):
        raise ValueError(f"outputs {outputs} are no ascending indices of {n} tokens")
    after: dict[int, int] = {}
    for sequence, position in zip(batch.sequences.tolist(), batch.positions.tolist(), strict=True):
        if not 0 <= sequence < spec.n_sequences:
            raise ValueError(f"sequence {sequence}; this context has {spec.n_sequences}")
        expected = after.get(sequence, lengths[sequence])
        if position != expected:
            raise ValueError(f"position {position} of sequence {sequence}; the next one is {expected}")
        if position >= spec.context_size:
            raise ValueError(f"position {position} lies outside the context of {spec.context_size}")
        after[sequence] = position + 1
    return after


def check_tokens(plan: Plan, batch: Batch, n_vocabulary: int) -> None:
    """For plans that begin with tokens.  Raises ValueError where one is missing or outside the vocabulary."""
    tokens = batch.tokens
    if len(tokens) != plan.n_tokens or int(tokens.min()) < 0 or int(tokens.max()) >= n_vocabulary:
        raise ValueError(f"the batch does not hold {plan.n_tokens} tokens of a vocabulary of {n_vocabulary}")
