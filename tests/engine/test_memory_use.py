"""Memory of real models: what was foretold is what is held, and neither writing nor reloading takes more."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.backends.cpu.context import CpuContext
from engine.generation import generate
from engine.model import load_model
from engine.requests import CompletionRequest, LoadSettings, SamplingSettings, TextPiece
from engine.session import Session
from tests.helpers.truth import read_logits

IDS = list(range(1000, 1128))
N_WARM, N_WRITTEN = 10, 200


@pytest.mark.parametrize("context_size", [256, 4096])
@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_the_estimate_is_what_is_held(name: str, context_size: int, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(f"{name}_path")
    with (
        closing(load_model(path, LoadSettings(context_size=context_size))) as model,
        closing(model.new_context()) as context,
    ):
        assert isinstance(context, CpuContext)
        read_logits(model, context, IDS, model.prompt_chunk, last=1)
        read_logits(model, context, IDS[:1], 1, position=len(IDS))
        held = model.weights.nbytes + context.nbytes
        print(f"foretold {model.memory.total:,}, held {held:,}: {model.memory.total / held - 1:+.2%}")
        assert model.memory.weights == model.weights.nbytes
        assert model.memory.total == pytest.approx(held, rel=0.05)


PEAK_WITH_A_FULL_CONTEXT = """
import json, sys
from contextlib import closing
from app.commands.machine import peak_memory
from engine.model import load_model
from engine.requests import LoadSettings
from engine.session import Session

model = load_model(sys.argv[1], LoadSettings(context_size=1024))
with closing(model), closing(Session(model)) as session:
    list(session.prefill([100 + i % 1000 for i in range(1014)], lambda: False))
    for token in range(10):
        session.decode(token)
    print(json.dumps([peak_memory(), model.memory.peak, model.memory.total]))
"""


@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_the_peak_of_the_process_is_foretold(name: str, request: pytest.FixtureRequest) -> None:
    """In a process of its own, whose memory is its own."""
    command = [sys.executable, "-c", PEAK_WITH_A_FULL_CONTEXT, str(request.getfixturevalue(f"{name}_path"))]
    root = Path(__file__).parents[2]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    peak, foretold, model = json.loads(result.stdout)
    print(f"peak {peak:,}, foretold {foretold:,}: {foretold / peak - 1:+.2%}")
    assert foretold == pytest.approx(peak, rel=0.05)
    assert peak < model + 150e6


def array_bytes() -> int:
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)


@pytest.mark.parametrize("repack", [True, False])
def test_evaluating_a_token_allocates_nothing(repack: bool, smollm2_path: Path) -> None:
    with (
        closing(load_model(smollm2_path, LoadSettings(context_size=512, repack=repack))) as model,
        closing(Session(model)) as session,
    ):
        for _ in session.prefill(IDS, lambda: False):
            pass
        model.weights.settle()
        tracemalloc.start()
        try:
            for token in IDS[:N_WARM]:
                session.decode(token)
            gc.collect()
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            for token in range(N_WRITTEN):
                session.decode(token)
            gc.collect()
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    print(f"growth {after - before:,} bytes, peak {peak - before:,}")
    assert after - before < 20_000  # the ids themselves
    assert peak - before < 64_000


def test_writing_a_reply_keeps_nothing_but_the_reply(smollm2_path: Path) -> None:
    with (
        closing(load_model(smollm2_path, LoadSettings(context_size=512))) as model,
        closing(Session(model)) as session,
    ):
        # Without ends, so that the reply is long enough.
        sampling = SamplingSettings(seed=1, logit_bias=dict.fromkeys(model.tokenizer.eog_ids, -1e9))
        request = CompletionRequest(tuple(IDS), sampling, max_tokens=N_WARM + N_WRITTEN)
        marks: list[tuple[int, int]] = []
        tracemalloc.start()
        try:
            pieces = 0
            for record in generate(session, request, lambda: False):
                pieces += isinstance(record, TextPiece)
                if isinstance(record, TextPiece) and pieces in (N_WARM, N_WARM + N_WRITTEN):
                    gc.collect()
                    marks.append((tracemalloc.get_traced_memory()[0], array_bytes()))
        finally:
            tracemalloc.stop()
    (before, arrays_before), (after, arrays_after) = marks
    print(f"growth {after - before:,} bytes, of which arrays {arrays_after - arrays_before:,}")
    assert arrays_after == arrays_before
    assert after - before < 100_000  # ids and text of 200 tokens


RESIDENT_AFTER_EACH_CYCLE = """
import gc, sys, psutil
from contextlib import closing
from engine.model import load_model
from engine.requests import LoadSettings
from engine.session import Session

for _ in range(20):
    model = load_model(sys.argv[1], LoadSettings(context_size=512))
    with closing(model), closing(Session(model)) as session:
        list(session.prefill(list(range(1000, 1020)), lambda: False))
        session.decode(5)
    del model, session
    gc.collect()
    print(psutil.Process().memory_info().rss)
"""


def test_loading_again_and_again_takes_no_more(smollm2_path: Path) -> None:
    """In a process of its own: free memory that other tests left behind would hide a leak."""
    command = [sys.executable, "-c", RESIDENT_AFTER_EACH_CYCLE, str(smollm2_path)]
    root = Path(__file__).parents[2]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    resident = [int(line) / 1e6 for line in result.stdout.split()]
    print([round(size) for size in resident])
    assert len(resident) == 20
    # The allocator needs some rounds to settle; one model kept would be 100 MB.
    assert resident[-1] - resident[9] < 10
    assert resident[-1] - resident[0] < 100
