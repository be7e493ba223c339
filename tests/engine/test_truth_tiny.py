"""Tiny models in every tensor type against the slow reference.

tests/helpers/truth.py says how, and why the reference that rounds by itself is no closer than 6e-4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest

from engine.model import LoadedModel, load_model
from engine.quantisation.registry import FORMATS
from engine.requests import LoadSettings
from tests.helpers.slow_reference import Floats, reference_logits
from tests.helpers.tiny_model import write_tiny_model
from tests.helpers.truth import ReplayedModel, read_logits, relative_l2

IDS = [int(token) for token in np.random.default_rng(11).integers(3, 300, 60)]
OWN_KERNELS = [name for name, format in FORMATS.items() if format.product != "decoded"]

TOLERANCE = {"plain": 1e-2, "quantised": 5e-2}
"""Relative L2.  Quantised weights are multiplied in fixed point (decision 0011); measured: 2e-2 at most."""
REPLAYED_TOLERANCE = 1e-4
"""Of plain weights, given the same stored keys and values.  Measured: 4e-6."""
ROUNDING_EXCESS = 1e-4


@dataclass(frozen=True)
class Tiny:
    """exact: float64[60, 300], the reference's logits."""

    plain: bool
    model: LoadedModel
    exact: Floats
    replayed: ReplayedModel


@pytest.fixture(
    scope="module",
    params=[("llama", name) for name in FORMATS] + [("gemma3", name) for name in OWN_KERNELS],
    ids="-".join,
)
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiny]:
    family, quant_type = request.param
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_tiny_model(path, family, quant_type=quant_type, sliding_window=24, seed=5)
    with closing(load_model(path, LoadSettings(context_size=128))) as model:
        plain = FORMATS[quant_type].product != "fixed"
        yield Tiny(plain, model, reference_logits(path, IDS), ReplayedModel(path))


@pytest.mark.parametrize("chunk", [60, 16, 1])
def test_logits_at_every_position(tiny: Tiny, chunk: int) -> None:
    with closing(tiny.model.new_context()) as context:
        ours = read_logits(tiny.model, context, IDS, chunk)
        wanted = tiny.replayed.replay(IDS, context)
    exact, replay = relative_l2(ours, tiny.exact), relative_l2(ours, wanted)
    print(f"exact {exact.max():.1e}, replayed {replay.max():.1e}")
    assert exact.max() <= TOLERANCE["plain" if tiny.plain else "quantised"]
    if tiny.plain:
        assert tiny.replayed.rounding_excess <= ROUNDING_EXCESS
        assert replay.max() <= REPLAYED_TOLERANCE
