"""The model of random blocks: its shape and types are as promised, and it computes sanely."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.gguf.reader import GGUFFile
from engine.model import load_model
from engine.quantisation.dequantise import dequantise
from engine.session import Session
from tools.make_synthetic_model import WEIGHT_DEVIATION, Shape, write_synthetic_model

ROOT = Path(__file__).parents[2]
TINY = Shape(layers=3, width=256, feed_forward=512, heads=8, kv_heads=2, vocabulary=600, context=64)
MIXTURES = ("q4_0", "q4_k_m")


@pytest.fixture(scope="module", params=MIXTURES)
def mixture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def path(mixture: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("synthetic") / "tiny.gguf"
    write_synthetic_model(path, mixture, TINY)
    return path


def test_types(path: Path, mixture: str) -> None:
    with GGUFFile.open(path) as file:
        types = {name: tensor.type.name for name, tensor in file.tensors.items()}
    base = {"q4_0": "Q4_0", "q4_k_m": "Q4_K"}[mixture]
    assert types["token_embd.weight"] == types["blk.0.attn_q.weight"] == types["blk.2.ffn_up.weight"] == base
    assert types["output.weight"] == "Q6_K"
    careful = {name for name, type in types.items() if type == "Q6_K"} - {"output.weight"}
    layers = (0, 2) if mixture == "q4_k_m" else ()
    assert careful == {f"blk.{i}.{part}.weight" for i in layers for part in ("attn_v", "ffn_down")}


def test_weights_have_the_deviation_promised_and_differ(path: Path) -> None:
    with GGUFFile.open(path) as file:
        seen = set()
        for name, tensor in file.tensors.items():
            if len(tensor.shape) == 2:
                values = dequantise(tensor)
                assert abs(float(values.mean())) < 0.1 * WEIGHT_DEVIATION, name
                assert 0.8 < float(values.std()) / WEIGHT_DEVIATION < 1.25, name
                assert np.isfinite(values).all()
                seen.add(values.tobytes())
                assert len(np.unique(values, axis=0)) == len(values), "two rows hold the same weights"
        assert len(seen) > 7 * (TINY.layers - 1), "two layers hold the same weights"


def test_logits_are_of_ordinary_size(path: Path) -> None:
    with closing(load_model(path)) as model, closing(Session(model)) as session:
        assert model.notices == ()
        assert model.context_size == TINY.context
        for _ in session.prefill(model.tokenizer.encode("ab cd", parse_special=False), lambda: False):
            pass
        logits = session.logits
        assert logits is not None
        assert logits.shape == (TINY.vocabulary,)
        assert np.isfinite(logits).all()
        assert 0.05 < float(logits.std()) < 5


def test_any_text_comes_back(path: Path) -> None:
    text = "ab zz\n\N{SNOWMAN} \x00Q"
    with closing(load_model(path)) as model:
        assert model.tokenizer.decode(model.tokenizer.encode(text, parse_special=False)) == text


def test_the_same_seed_gives_the_same_file(path: Path, mixture: str, tmp_path: Path) -> None:
    again, other = tmp_path / "again.gguf", tmp_path / "other.gguf"
    write_synthetic_model(again, mixture, TINY)
    write_synthetic_model(other, mixture, TINY, seed=1)
    assert again.read_bytes() == path.read_bytes() != other.read_bytes()


@pytest.mark.parametrize(
    "wrong", [Shape(width=300), Shape(feed_forward=100), Shape(heads=7), Shape(vocabulary=200)]
)
def test_impossible_shapes_are_refused(tmp_path: Path, wrong: Shape) -> None:
    with pytest.raises(ValueError):
        write_synthetic_model(tmp_path / "x.gguf", "q4_0", wrong)
    assert list(tmp_path.iterdir()) == []


def test_on_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools/make_synthetic_model.py"), str(tmp_path / "x.gguf")]
    small = ["--layers=1", "--width=256", "--feed-forward=256", "--heads=4", "--vocabulary=300"]
    done = subprocess.run([*command, "--type", "q4_k_m", *small], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with GGUFFile.open(tmp_path / "x.gguf") as file:
        assert file.tensors["blk.0.attn_k.weight"].shape == (256, 256)
    done = subprocess.run(
        [*command, "--type", "q4_0", "--width", "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "multiples of 256" in done.stderr
    assert "Traceback" not in done.stderr
