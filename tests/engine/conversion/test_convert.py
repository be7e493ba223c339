"""From a checkpoint to a model file: types, what is refused and when, what is left, parts with pictures.

That converted models compute what they should is shown by tests/engine/models/test_family_truth.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.conversion import convert_checkpoint, gemma3
from engine.conversion.config import Config
from engine.conversion.tensors import widened
from engine.errors import Cancelled, ModelFileError, SettingsError, TokenizerError, UnsupportedModelError
from engine.gguf.reader import GGUFFile
from engine.model import load_model
from engine.quantisation.dequantise import dequantise
from engine.requests import LoadSettings
from tests.helpers.checkpoints import Arrays, changed_checkpoint, read_safetensors
from tests.helpers.family_fixtures import FOLDER

TOKENIZERS = FOLDER.parent / "tokenizers"
EMBEDDINGS = ("model.embed_tokens.weight", "lm_head.weight")


def convert(folder: Path, target: Path, type: Any = "f32") -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata's values, and by name the type and the numbers of each tensor."""
    convert_checkpoint(folder, target, type, vocabulary=False)
    with GGUFFile.open(target) as file:
        values = {key: value.value for key, value in file.metadata.values.items()}
        tensors = {
            name: (tensor.type.name, dequantise(tensor.in_memory())) for name, tensor in file.tensors.items()
        }
    return values, tensors


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out.gguf"


class TestTypes:
    @pytest.mark.parametrize(
        ("wanted", "type", "file_type"), [("f32", "F32", 0), ("f16", "F16", 1), ("bf16", "BF16", 32)]
    )
    def test_matrices_get_it_and_vectors_stay(
        self, target: Path, wanted: Any, type: str, file_type: int
    ) -> None:
        values, tensors = convert(FOLDER / "llama", target, wanted)
        assert values["general.file_type"] == file_type
        exact = read_safetensors(FOLDER / "llama")
        embedding_type, embedding = tensors["token_embd.weight"]
        assert embedding_type == type
        rtol, atol = (0.0, 0.0) if wanted == "f32" else (2.0**-8, 2.0**-25)
        np.testing.assert_allclose(embedding, exact["model.embed_tokens.weight"], rtol, atol)
        norm_type, norm = tensors["output_norm.weight"]
        assert norm_type == "F32"
        np.testing.assert_array_equal(norm, exact["model.norm.weight"])

    def test_routers_stay_exact(self, target: Path) -> None:
        assert convert(FOLDER / "mixtral", target, "bf16")[1]["blk.0.ffn_gate_inp.weight"][0] == "F32"

    @pytest.mark.parametrize(
        ("dtype", "type"), [("BF16", "BF16"), ("F16", "F16"), ("F32", "F32"), ("F64", "F32")]
    )
    def test_auto_takes_that_of_the_checkpoint(
        self, tmp_path: Path, target: Path, dtype: str, type: str
    ) -> None:
        folder, exact = stored_as(dtype, tmp_path / "other")
        tensors = convert(folder, target, "auto")[1]
        assert tensors["token_embd.weight"][0] == type
        np.testing.assert_array_equal(tensors["token_embd.weight"][1], exact["model.embed_tokens.weight"])
        np.testing.assert_array_equal(tensors["output_norm.weight"][1], exact["model.norm.weight"])

    def test_numbers_that_do_not_fit(self, tmp_path: Path, target: Path) -> None:
        folder = changed_checkpoint(
            "llama", tmp_path / "big", tensors=scaled("model.embed_tokens.weight", 1e6)
        )
        with pytest.raises(ModelFileError, match="does not fit F16"):
            convert_checkpoint(folder, target, "f16", vocabulary=False)
        assert not target.exists() and [path.name for path in tmp_path.iterdir()] == ["big"]
        convert_checkpoint(folder, target, "bf16", vocabulary=False)

    def test_an_unknown_type(self, target: Path) -> None:
        with pytest.raises(SettingsError):
            convert_checkpoint(FOLDER / "llama", target, "q9", vocabulary=False)  # type: ignore[arg-type]


def stored_as(dtype: str, folder: Path) -> tuple[Path, Arrays]:
    """The fixture `llama` with numbers of another type, and what they are as float32."""
    folder.mkdir()
    shutil.copy(FOLDER / "llama/config.json", folder)
    header: dict[str, Any] = {}
    exact: Arrays = {}
    data = b""
    for name, array in read_safetensors(FOLDER / "llama").items():
        if dtype == "BF16":
            stored = (array.view(np.uint32) >> 16).astype("<u2")
        else:
            stored = array.astype({"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype])
        exact[name] = widened(stored, dtype)
        raw = stored.tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder, exact


def scaled(name: str, factor: float) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, name: arrays[name] * np.float32(factor)}


def without(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {key: array for key, array in arrays.items() if key != name}


class TestRefusals:
    @pytest.mark.parametrize(
        ("config", "named", "near"),
        [
            ({"architectures": ["LlamoForCausalLM"]}, "LlamoForCausalLM", "Llama"),
            ({"architectures": ["Qwen3NextForCausalLM"]}, "Qwen3NextForCausalLM", "Qwen3"),
            ({"model_type": "mamba"}, "mamba", ""),
        ],
    )
    def test_another_family_before_any_tensor_is_looked_at(
        self, tmp_path: Path, target: Path, config: dict[str, Any], named: str, near: str
    ) -> None:
        """The folder holds nothing but the configuration."""
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(UnsupportedModelError, match=named) as caught:
            convert_checkpoint(tmp_path, target)
        assert near in caught.value.advice

    @pytest.mark.parametrize(
        ("name", "config", "tensors", "error", "message"),
        [
            ("llama", {"hidden_act": "relu"}, None, UnsupportedModelError, "relu"),
            ("llama", {"num_hidden_layers": None}, None, ModelFileError, "num_hidden_layers"),
            ("llama", {"num_hidden_layers": 3}, None, ModelFileError, r"blk\.2\.attn_norm"),
            ("llama", {"num_attention_heads": 0}, None, ModelFileError, "num_attention_heads"),
            (
                "llama",
                {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
                None,
                UnsupportedModelError,
                "dynamic",
            ),
            ("llama", {"rope_scaling": {"rope_type": "yarn"}}, None, ModelFileError, "factor"),
            ("llama", {"quantization_config": {"quant_method": "gptq"}}, None, UnsupportedModelError, "gptq"),
            ("llama", {}, without("model.layers.1.mlp.up_proj.weight"), ModelFileError, r"blk\.1\.ffn_up"),
            (
                "mixtral",
                {},
                without("model.layers.1.block_sparse_moe.experts.2.w1.weight"),
                ModelFileError,
                "expert",
            ),
            (
                "gemma3",
                {"sliding_window_pattern": 4, "layer_types": None},
                None,
                UnsupportedModelError,
                "sixth",
            ),
            ("gemma3", {"query_pre_attn_scalar": 99}, None, UnsupportedModelError, "query_pre_attn_scalar"),
            ("ministral3", {"sliding_window": 9}, None, UnsupportedModelError, "sliding"),
            ("ministral", {"layer_types": ["chunked_attention"] * 3}, None, UnsupportedModelError, "chunked"),
            ("ministral", {"layer_types": ["full_attention"]}, None, ModelFileError, "layer_types"),
        ],
    )
    def test_before_anything_is_written(
        self, tmp_path: Path, name: str, config: Any, tensors: Any, error: Any, message: str
    ) -> None:
        keep = {} if tensors is None else {"tensors": tensors}
        folder = changed_checkpoint(name, tmp_path / "changed", config, **keep)
        (tmp_path / "out").mkdir()
        with pytest.raises(error, match=message):
            convert_checkpoint(folder, tmp_path / "out/out.gguf", vocabulary=False)
        assert list((tmp_path / "out").iterdir()) == []

    def test_tensors_that_nothing_knows(self, tmp_path: Path, target: Path) -> None:
        """Such as the norm of q that a variant has: leaving it out would give a model that talks nonsense."""
        extra = {"model.layers.0.self_attn.q_norm.weight": np.ones(8, np.float32)}
        folder = changed_checkpoint("llama", tmp_path / "variant", tensors=lambda arrays: {**arrays, **extra})
        with pytest.raises(UnsupportedModelError, match=r"q_norm"):
            convert_checkpoint(folder, target, vocabulary=False)

    def test_a_checkpoint_without_a_tokenizer(self, target: Path) -> None:
        with pytest.raises(TokenizerError) as caught:
            convert_checkpoint(FOLDER / "llama", target)
        assert "--no-vocabulary" in caught.value.advice
        assert not target.exists()


@pytest.mark.parametrize("error", [Cancelled("stopped"), KeyboardInterrupt()], ids=["cancelled", "Ctrl-C"])
def test_stopped_in_the_middle_nothing_is_left_and_what_was_there_stays(
    target: Path, error: BaseException
) -> None:
    target.write_bytes(b"precious")
    shares: list[float] = []

    def stop(share: float) -> None:
        shares.append(share)
        if share > 0.5:
            raise error

    with pytest.raises(type(error)):
        convert_checkpoint(FOLDER / "llama", target, vocabulary=False, on_progress=stop)
    assert shares == sorted(shares) and 0 < shares[0] < 0.5 < shares[-1] < 1
    assert target.read_bytes() == b"precious"
    assert list(target.parent.iterdir()) == [target]


def test_a_tied_output_is_not_written_twice(tmp_path: Path, target: Path) -> None:
    folder = changed_checkpoint(
        "qwen2",
        tmp_path / "tied",
        tensors=lambda arrays: {**arrays, "lm_head.weight": arrays["model.embed_tokens.weight"]},
    )
    assert "output.weight" not in convert(folder, target)[1]


class TestModelsWithPictures:
    """The language model inside is the same, under the names of old and of new releases."""

    @pytest.mark.parametrize(
        ("name", "outer", "prefix"),
        [
            ("gemma3", "Gemma3ForConditionalGeneration", "language_model."),
            ("gemma3", "Gemma3ForConditionalGeneration", "model.language_model."),
            ("mistral", "Mistral3ForConditionalGeneration", "language_model."),
            ("ministral3", "Mistral3ForConditionalGeneration", "model.language_model."),
        ],
    )
    def test_text_part(self, tmp_path: Path, target: Path, name: str, outer: str, prefix: str) -> None:
        text = json.loads((FOLDER / name / "config.json").read_text())
        config = {key: None for key in text} | {
            "architectures": [outer],
            "model_type": "x",
            "text_config": text,
        }

        def inside(arrays: Arrays) -> Arrays:
            new = prefix.startswith("model.")
            moved = {
                (
                    key
                    if new and key == "lm_head.weight"
                    else prefix + (key.removeprefix("model.") if new else key)
                ): array
                for key, array in arrays.items()
            }
            eye = np.ones((2, 2), np.float32)
            return {**moved, "vision_tower.a.weight": eye, "model.multi_modal_projector.b.weight": eye}

        folder = changed_checkpoint(name, tmp_path / "pictures", config, inside)
        wanted = convert(FOLDER / name, tmp_path / "plain.gguf")
        conversion = convert_checkpoint(folder, target, "f32", vocabulary=False)
        assert any("2 tensors" in notice for notice in conversion.notices)
        found = convert(folder, target)
        assert found[0] | {"general.name": wanted[0]["general.name"]} == wanted[0]
        assert found[1].keys() == wanted[1].keys()
        for tensor, (_, numbers) in wanted[1].items():
            np.testing.assert_array_equal(found[1][tensor][1], numbers)

    def test_what_gemma3_leaves_to_its_defaults(self, tmp_path: Path) -> None:
        """A configuration as the 4B model has it: only what differs from the library's defaults is there."""
        text = {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        }
        values = gemma3.metadata(Config(text))
        wanted = {
            "attention.head_count": 8,
            "attention.head_count_kv": 4,
            "attention.key_length": 256,
            "context_length": 131072,
            "rope.freq_base": 1e6,
            "rope.freq_base_swa": 1e4,
            "rope.scaling.factor": 8.0,
            "attention.sliding_window": 1024,
            "attention.layer_norm_rms_epsilon": 1e-6,
        }
        assert {key: values[key] for key in wanted} == wanted


def test_a_converted_checkpoint_is_loaded_whole(tmp_path: Path, target: Path) -> None:
    """With its tokenizer, through `load_model`: text in, logits for every token out."""
    truth = json.loads((TOKENIZERS / "byte-level-llama3/truth.json").read_text(encoding="utf-8"))
    rows = truth["rows"]
    generator = np.random.default_rng(0)

    def widen(arrays: Arrays) -> Arrays:
        more = {name: generator.normal(size=(rows, 48)).astype(np.float32) for name in EMBEDDINGS}
        return {**arrays, **more}

    folder = changed_checkpoint("llama", tmp_path / "whole", {"vocab_size": rows}, widen)
    for path in (TOKENIZERS / "byte-level-llama3").glob("tokenizer*"):
        shutil.copy(path, folder)
    conversion = convert_checkpoint(folder, target)
    assert (conversion.architecture, conversion.n_tokens, conversion.name) == ("llama", rows, "whole")
    assert conversion.file_bytes == target.stat().st_size
    with closing(load_model(target, LoadSettings(context_size=64))) as model:
        assert model.tokenizer.n_tokens == model.description.n_vocabulary == rows
        ids = model.tokenizer.encode(truth["texts"][0], parse_special=False, add_special=True)
        assert ids == [model.tokenizer.bos_id, *truth["ids"][0]]


@pytest.mark.parametrize(("tied", "n_notices"), [(False, 1), (True, 0)])
def test_an_output_that_should_be_there_and_is_not(tied: bool, n_notices: int, tmp_path: Path) -> None:
    """The embedding takes its place, as other programs have it, but not in silence."""

    def without_output(arrays: Arrays) -> Arrays:
        return {name: array for name, array in arrays.items() if name != "lm_head.weight"}

    folder = changed_checkpoint("llama", tmp_path / "model", {"tie_word_embeddings": tied}, without_output)
    conversion = convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)
    assert len(conversion.notices) == n_notices
