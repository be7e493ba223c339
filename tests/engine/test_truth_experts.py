"""Models with experts against float64 NumPy: every way of holding and packing experts.

Families as a whole are compared with `transformers` in tests/engine/models/test_family_truth.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.errors import UnsupportedModelError
from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from tests.helpers.family_fixtures import load_without_vocabulary
from tests.helpers.slow_reference import Floats
from tests.helpers.tiny_experts import SlowGptOss, SlowMixtral, write_tiny_gpt_oss, write_tiny_mixtral
from tests.helpers.truth import read_logits, relative_l2

IDS = [int(token) for token in np.random.default_rng(11).integers(3, 300, 60)]
TOLERANCE = 1e-4
"""Relative L2 at any position, of weights that are multiplied in float32."""
FIXED_POINT_TOLERANCE = 5e-2
"""Of others (decision 0011), unless rounding makes a token choose another expert: see `median`."""
CHUNKS = [60, 16, 3, 1]


def settings(**changes: object) -> LoadSettings:
    return LoadSettings(context_size=128, kv="f32", **changes)  # type: ignore[arg-type]


def logits(model: LoadedModel, chunk: int) -> np.ndarray:
    with closing(model.new_context()) as context:
        return read_logits(model, context, IDS, chunk)


@pytest.fixture(scope="module", params=["F32", "F16", "BF16"])
def plain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Floats]]:
    path = write_tiny_mixtral(tmp_path_factory.mktemp("models") / "tiny.gguf", request.param)
    yield path, SlowMixtral(path).forward(IDS)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("repack", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_plain_experts(plain: tuple[Path, Floats], chunk: int, repack: bool, threads: int) -> None:
    path, truth = plain
    with closing(load_model(path, settings(repack=repack, threads=threads))) as model:
        assert relative_l2(logits(model, chunk), truth).max() <= TOLERANCE


@pytest.mark.parametrize("quant_type", ["Q8_0", "Q4_0", "Q5_1", "Q4_K", "Q6_K"])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_quantised_experts(quant_type: str, chunk: int, tmp_path: Path) -> None:
    """A rounding that turns a choice of experts changes that token alone, and by much: the median tells."""
    path = write_tiny_mixtral(tmp_path / "tiny.gguf", quant_type)
    with closing(load_model(path, settings())) as model:
        differences = relative_l2(logits(model, chunk), SlowMixtral(path).forward(IDS))
    assert np.median(differences) <= FIXED_POINT_TOLERANCE


def test_files_with_one_tensor_for_each_expert(tmp_path: Path) -> None:
    """The same numbers in the layout of early 2024 give the same logits, to the bit."""
    old = write_tiny_mixtral(tmp_path / "old.gguf", one_tensor_for_each=True)
    new = write_tiny_mixtral(tmp_path / "new.gguf")
    for repack in (True, False):
        with (
            closing(load_model(old, settings(repack=repack))) as ours,
            closing(load_model(new, settings(repack=repack))) as theirs,
        ):
            for chunk in (60, 1):
                np.testing.assert_array_equal(logits(ours, chunk), logits(theirs, chunk))


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("expert_type", ["MXFP4", "F32"])
@pytest.mark.parametrize("repack", [True, False])
def test_gpt_oss(expert_type: str, chunk: int, repack: bool, tmp_path: Path) -> None:
    """Sinks, windows, biases, YaRN and the clamped gate, with experts as the published files have them."""
    path = write_tiny_gpt_oss(tmp_path / "tiny.gguf", expert_type)
    truth = SlowGptOss(path).forward(IDS)
    with closing(load_without_vocabulary(path, settings(repack=repack))) as model:
        assert relative_l2(logits(model, chunk), truth).max() <= TOLERANCE


def test_gpt_oss_after_truncation(tmp_path: Path) -> None:
    path = write_tiny_gpt_oss(tmp_path / "tiny.gguf")
    truth = SlowGptOss(path).forward(IDS)
    with (
        closing(load_without_vocabulary(path, settings())) as model,
        closing(model.new_context()) as context,
    ):
        read_logits(model, context, [*IDS[:27], *IDS[:9]], 36)
        kept = context.truncate(0, 27)
        ours = read_logits(model, context, IDS[kept:], 60, position=kept)
    assert relative_l2(ours, truth[kept:]).max() <= TOLERANCE


# ---- how experts are chosen


@pytest.fixture(scope="module")
def mixtral_truth(tmp_path_factory: pytest.TempPathFactory) -> Floats:
    return SlowMixtral(write_tiny_mixtral(tmp_path_factory.mktemp("models") / "tiny.gguf")).forward(IDS)


def with_metadata(path: Path, **values: object) -> Path:
    return write_tiny_mixtral(path, metadata={f"llama.{key}": value for key, value in values.items()})


def test_a_softmax_of_the_chosen_is_that_of_all_divided_by_its_sum(
    mixtral_truth: Floats, tmp_path: Path
) -> None:
    path = with_metadata(tmp_path / "tiny.gguf", expert_gating_func=3, expert_weights_norm=False)
    with closing(load_model(path, settings())) as model:
        assert relative_l2(logits(model, 60), mixtral_truth).max() <= TOLERANCE


@pytest.mark.parametrize(
    "values",
    [{"expert_weights_norm": False}, {"expert_weights_scale": 2.5}, {"expert_gating_func": 2}],
    ids=str,
)
def test_what_the_file_says_of_weights_counts(
    values: dict[str, object], mixtral_truth: Floats, tmp_path: Path
) -> None:
    with closing(load_model(with_metadata(tmp_path / "tiny.gguf", **values), settings())) as model:
        assert relative_l2(logits(model, 60), mixtral_truth).max() > 100 * TOLERANCE


@pytest.mark.parametrize("values", [{"expert_gating_func": 4}, {"expert_group_count": 2}], ids=str)
def test_other_ways_of_choosing_are_refused(values: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="chosen"):
        load_model(with_metadata(tmp_path / "tiny.gguf", **values))
