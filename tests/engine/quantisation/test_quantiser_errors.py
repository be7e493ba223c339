"""Errors of the types that search for their scales, beside those of llama.cpp on the same weights."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import make_tensor
from tools.make_quantiser_figures import TYPES, gaussian_weights

FOLDER = Path(__file__).parents[2] / "fixtures" / "quantisers"
FIGURES = json.loads((FOLDER / "figures.json").read_text())["root_mean_square_error_of_llama_cpp"]
WEIGHTS = {
    "gaussian": gaussian_weights(),
    "real": np.load(FOLDER / "real_weights.npy").astype(np.float32),
}


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("name", WEIGHTS)
def test_no_larger_than_llama_cpp_s(name, type_name):
    values = dequantise(make_tensor("w", WEIGHTS[name], type_name))
    error = np.sqrt(np.mean((values.astype(np.float64) - WEIGHTS[name]) ** 2))
    assert 0 < error <= FIGURES[name][type_name]


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("size", [1e-4, 1e-5, 1e-6, 1e-7])
def test_tiny_weights_are_never_further_off_than_zero_is(type_name, size):
    weights = WEIGHTS["gaussian"][:4] * np.float32(size)
    values = dequantise(make_tensor("w", weights, type_name))
    assert np.linalg.norm(values - weights) <= np.linalg.norm(weights)
