"""Quantised files load, and compute nearly what their sources do."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.conversion import convert_checkpoint
from engine.gguf.file_types import FILE_TYPE_KEY
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf
from engine.quantisation.mixtures import MIXTURES
from engine.quantisation.quantise_file import quantise_file
from engine.requests import LoadSettings
from tests.helpers.family_fixtures import FOLDER, load_without_vocabulary, truth_of
from tests.helpers.quantised_files import Written
from tests.helpers.tiny_experts import write_tiny_mixtral
from tests.helpers.tiny_model import write_tiny_model
from tests.helpers.truth import read_logits, relative_l2

PROMPT = [7, 31, 105, 9, 250, 3, 77]
FAMILIES = ("llama", "gpt2", "falcon", "gemma3", "mixtral", "gpt-oss", "phi3", "command-r")


def logits_of(path: Path, ids: list[int]) -> NDArray[np.float32]:
    with (
        closing(load_without_vocabulary(path, LoadSettings(threads=1, kv="f32"))) as model,
        closing(model.new_context()) as context,
    ):
        return read_logits(model, context, ids, len(ids))


def test_the_more_bits_the_nearer(source: Path, tmp_path: Path) -> None:
    """Weights are random, so what errors there are grow from layer to layer more than in a trained model."""
    before = logits_of(source, PROMPT)
    distances = []
    for mixture in ("F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K"):
        quantise_file(source, tmp_path / "out.gguf", mixture)
        distances.append(float(relative_l2(logits_of(tmp_path / "out.gguf", PROMPT), before).mean()))
    assert distances == sorted(distances) and distances[0] > 0
    limits = (0.002, 0.015, 0.06, 0.15, 0.3, 0.6)
    assert all(distance < limit for distance, limit in zip(distances, limits, strict=False))


@pytest.mark.parametrize("mixture", ["Q4_K_M", "Q8_0"])
@pytest.mark.parametrize(("width", "n_heads"), [(288, 4), (60, 2)])
def test_rows_that_are_no_whole_blocks(tmp_path: Path, width: int, n_heads: int, mixture: str) -> None:
    """Case Q-01: what takes their place runs; rows of 60 are in half precision."""
    source = write_tiny_model(tmp_path / "in.gguf", width=width, n_heads=n_heads)
    quantise_file(source, tmp_path / "out.gguf", mixture)
    before, after = (logits_of(path, PROMPT) for path in (source, tmp_path / "out.gguf"))
    assert 0 < relative_l2(after, before).mean() < (0.01 if width == 60 else 0.4)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_experts(tmp_path: Path, mixture: str) -> None:
    source = write_tiny_mixtral(tmp_path / "in.gguf", "F32")
    quantise_file(source, tmp_path / "out.gguf", mixture)
    types = Written.read(tmp_path / "out.gguf").types
    assert types["blk.0.ffn_gate_inp.weight"] == "F32"
    assert (types["blk.0.ffn_up_exps.weight"] == "F32") == (mixture == "F32")
    assert np.isfinite(logits_of(tmp_path / "out.gguf", PROMPT)).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_converted_families(tmp_path: Path, name: str) -> None:
    """Converted by our converter, quantised, computed."""
    convert_checkpoint(FOLDER / name, tmp_path / "in.gguf", "f32", vocabulary=False)
    ids = truth_of(name).ids[:20]
    before = logits_of(tmp_path / "in.gguf", ids)
    for mixture, distance in (("Q8_0", 0.15), ("Q4_K_M", 0.6)):
        quantise_file(tmp_path / "in.gguf", tmp_path / "out.gguf", mixture)
        assert 0 < relative_l2(logits_of(tmp_path / "out.gguf", ids), before).mean() < distance, mixture


@pytest.mark.parametrize("mixture", ["Q4_1", "Q4_K_M"])
def test_published_files_have_the_types_we_choose(
    smollm2_path: Path, gemma3_path: Path, tmp_path: Path, mixture: str
) -> None:
    """What they call themselves plays no part: it is taken away."""
    path = {"Q4_1": smollm2_path, "Q4_K_M": gemma3_path}[mixture]
    with GGUFFile.open(path) as file:
        values = {key: value for key, value in file.metadata.values.items() if key != FILE_TYPE_KEY}
        write_gguf(tmp_path / "nameless.gguf", values, file.tensors.values())
    told = quantise_file(tmp_path / "nameless.gguf", tmp_path / "out.gguf", mixture, dry_run=True)
    assert told.already and told.fallbacks == ()


def test_a_real_model_again_in_8_bits(smollm2_path: Path, tmp_path: Path) -> None:
    quantise_file(smollm2_path, tmp_path / "out.gguf", "Q8_0", requantise=True)
    ids = [504, 3575, 282, 4649, 314]
    before, after = (logits_of(path, ids) for path in (smollm2_path, tmp_path / "out.gguf"))
    assert relative_l2(after, before).max() < 0.05
    assert after[-1].argmax() == before[-1].argmax()
