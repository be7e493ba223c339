"""Sound containers with wrong contents: vocabularies and hyper-parameters (cases G-12 and G-14).

One sentence names the key or the tensor, before anything is loaded; what can be mended is, with a notice.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import CauserieError, ModelFileError, TokenizerError, UnsupportedModelError
from engine.gguf.metadata import MetadataValue, ValueType
from engine.gguf.reader import GGUFFile
from engine.gguf.values import number
from engine.gguf.writer import write_gguf_parts
from engine.model import load_model
from engine.quantisation.quantise import make_tensor
from engine.requests import LoadSettings, Message
from tests.helpers.tiny_model import N_TOKENS, write_tiny_model

MEMORY_LIMIT = 64 << 20
NAN = float("nan")


def refusal(path: Path) -> CauserieError:
    """The error of loading it, which comes within a second, before the weights, and without memory."""
    shares: list[float] = []
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises((ModelFileError, UnsupportedModelError, TokenizerError)) as caught:
            load_model(path, LoadSettings(backend="fake"), shares.append)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 1
    assert shares == [] and caught.value.advice
    return caught.value


def unsigned(value: int) -> MetadataValue:
    return number(ValueType.UINT32, value)


HYPER_PARAMETERS: list[tuple[str, Any]] = [
    ("attention.head_count", 0),
    ("attention.head_count", 3),  # does not divide the width of 64
    ("attention.head_count", unsigned(2**31)),
    ("attention.head_count_kv", 0),
    ("attention.head_count_kv", 5),
    ("attention.head_count_kv", unsigned(2**31)),
    ("block_count", 0),
    ("block_count", 513),
    ("block_count", unsigned(2**31)),
    ("block_count", "2"),
    ("block_count", [2, 2]),
    ("block_count", number(ValueType.FLOAT32, 2.0)),
    ("rope.dimension_count", 7),
    ("rope.dimension_count", 0),
    ("rope.dimension_count", 18),  # more than a head has
    ("context_length", 0),
    ("context_length", unsigned(2**31)),
    ("rope.freq_base", 0.0),
    ("rope.freq_base", -10000.0),
    ("rope.freq_base", NAN),
    ("rope.freq_base", float("inf")),
    ("rope.scaling.attn_factor", 1e30),
    ("rope.scaling.attn_factor", NAN),
    ("attention.layer_norm_rms_epsilon", NAN),
    ("attention.layer_norm_rms_epsilon", -1.0),
    ("embedding_length", 0),
    ("embedding_length", unsigned(2**31)),
    ("feed_forward_length", 0),
    ("feed_forward_length", number(ValueType.INT32, -1)),
]


@pytest.mark.parametrize(
    ("key", "value"), HYPER_PARAMETERS, ids=lambda part: part if isinstance(part, str) else repr(part)[:60]
)
def test_hyper_parameters(tmp_path: Path, key: str, value: Any) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", metadata={f"llama.{key}": value})
    title = refusal(path).title
    assert f"llama.{key}" in title and "m.gguf" in title


@pytest.mark.parametrize(
    "key",
    [
        "attention.head_count",
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.layer_norm_rms_epsilon",
    ],
)
def test_missing_hyper_parameters(tmp_path: Path, key: str) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", metadata={f"llama.{key}": None})
    title = refusal(path).title
    assert "lacks" in title and f"llama.{key}" in title


def test_no_family_and_an_unknown_one(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", metadata={"general.architecture": None})
    assert "general.architecture" in refusal(path).title
    path = write_tiny_model(tmp_path / "m.gguf", metadata={"general.architecture": "nosuch"})
    error = refusal(path)
    assert isinstance(error, UnsupportedModelError) and "nosuch" in error.title and "llama" in error.advice


@pytest.mark.parametrize(
    "shape", [(N_TOKENS, 65), (N_TOKENS, 32), (N_TOKENS * 64,), (2, N_TOKENS, 32)], ids=str
)
def test_an_embedding_of_another_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    embedding = make_tensor("token_embd.weight", np.zeros(shape))
    path = write_tiny_model(tmp_path / "m.gguf", extra_tensors={"token_embd.weight": embedding})
    assert "token_embd.weight" in refusal(path).title


@pytest.mark.parametrize("kind", [1, 3, 4])
def test_more_tokens_than_rows_of_the_embedding(tmp_path: Path, kind: int) -> None:
    n_tokens = N_TOKENS + 1
    metadata = {
        "tokenizer.ggml.tokens": [f"token {number}" for number in range(n_tokens)],
        "tokenizer.ggml.token_type": [kind] * n_tokens,
    }
    path = write_tiny_model(tmp_path / "m.gguf", metadata=metadata)
    title = refusal(path).title
    assert "tokenizer.ggml.tokens" in title and "token_embd.weight" in title and str(n_tokens) in title


@pytest.mark.parametrize(
    ("name", "shape"), [("blk.0.attn_q.weight", (64, 63)), ("output_norm.weight", (63,))]
)
def test_a_tensor_of_another_shape(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    other = make_tensor(name, np.zeros(shape))
    path = write_tiny_model(tmp_path / "m.gguf", extra_tensors={name: other})
    assert name in refusal(path).title


def test_a_vast_trained_context_takes_no_memory(tmp_path: Path) -> None:
    metadata = {"llama.context_length": unsigned(2**31 - 1)}
    with load_model_of(tmp_path, metadata) as model:
        assert model.description.context_length == 2**31 - 1
        assert model.context_size == 4096
        assert model.memory.kv_cache < 64 << 20


VOCABULARIES: list[tuple[str, Any]] = [
    ("scores", [0.5, 0.25, 0.125]),
    ("token_type", np.ones(N_TOKENS, np.uint8)),
    ("token_type", [1] * 3),
    ("token_type", ["normal"] * N_TOKENS),
    ("token_type", [7] * N_TOKENS),
    ("tokens", [1] * N_TOKENS),
    ("tokens", []),
    ("tokens", "a"),
    ("tokens", None),
    ("merges", [1, 2, 3]),
    ("merges", None),
    ("model", None),
    ("model", 5),
    ("model", "nosuch"),
    ("pre", 5),
    ("add_bos_token", 1),
    ("bos_token_id", "one"),
]


@pytest.mark.parametrize(
    ("key", "value"), VOCABULARIES, ids=lambda part: part if isinstance(part, str) else repr(part)[:30]
)
def test_vocabularies(tmp_path: Path, key: str, value: Any) -> None:
    metadata = {f"tokenizer.ggml.{key}": value}
    if key == "scores":
        metadata["tokenizer.ggml.model"] = "llama"
    title = refusal(write_tiny_model(tmp_path / "m.gguf", metadata=metadata)).title
    assert "nosuch" in title or f"tokenizer.ggml.{key}" in title


def test_scores_of_another_type(tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": [1] * N_TOKENS}
    assert "tokenizer.ggml.scores" in refusal(write_tiny_model(tmp_path / "m.gguf", metadata=metadata)).title


@pytest.mark.parametrize("merge", ["ab", "nosuch token", "", " ", "a b c"])
def test_a_merge_that_means_nothing_is_passed_over(tmp_path: Path, merge: str) -> None:
    """Deterministic, and without harm to the others."""
    with load_model_of(tmp_path, {}) as sound:
        merges = [*sound_merges(tmp_path)]
        expected = sound.tokenizer.encode("the other day", parse_special=False)
    with load_model_of(tmp_path, {"tokenizer.ggml.merges": [*merges, merge]}) as model:
        assert model.tokenizer.encode("the other day", parse_special=False) == expected


@pytest.mark.parametrize("token", [N_TOKENS, 2**32 - 1])
@pytest.mark.parametrize("name", ["bos", "eos", "eot", "unknown", "padding"])
def test_a_special_id_outside_of_the_vocabulary_is_none(tmp_path: Path, name: str, token: int) -> None:
    """With a notice, except where writers mean "none" by it; a chat works all the same."""
    key = f"tokenizer.ggml.{name}_token_id"
    with load_model_of(tmp_path, {key: unsigned(token)}) as model:
        told = any(key in notice for notice in model.notices)
        assert told == (token == N_TOKENS)
        assert model.template is not None
        segments = model.template.render([Message("user", "Hi <|im_end|>")])
        ids = model.tokenizer.encode_segments(segments, add_special=True)
        assert ids and all(0 <= item < N_TOKENS for item in ids)
        assert all(0 <= item < N_TOKENS for item in model.tokenizer.eog_ids)


@pytest.mark.parametrize("repack", [True, False])
def test_a_file_cut_short_before_its_tensors_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repack: bool
) -> None:
    """Case G-09: by another process, after the header was read.  Touching the map would end this process."""
    path = write_tiny_model(tmp_path / "m.gguf", quant_type="Q8_0")

    def cut_short() -> int:
        os.truncate(path, path.stat().st_size // 2)
        return 1 << 40

    monkeypatch.setattr("engine.model.free_memory", cut_short)
    shares: list[float] = []
    with pytest.raises(ModelFileError, match=r"m\.gguf has become shorter"):
        load_model(path, LoadSettings(repack=repack), shares.append)
    assert shares == []


@pytest.mark.parametrize("repack", [True, False])
def test_a_file_cut_short_while_its_tensors_are_loaded(tmp_path: Path, repack: bool) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", quant_type="Q8_0")

    def cut_short(share: float) -> None:
        os.truncate(path, 4096)

    with pytest.raises(ModelFileError, match=r"m\.gguf has become shorter"):
        load_model(path, LoadSettings(repack=repack), cut_short)


def test_a_part_cut_short_before_its_tensors_are_loaded(tmp_path: Path) -> None:
    whole = write_tiny_model(tmp_path / "m.gguf", quant_type="Q8_0")
    with GGUFFile.open(whole) as file:
        paths = write_gguf_parts(tmp_path / "m.gguf", file.metadata, file.tensors.values(), 50_000)
    with GGUFFile.open(paths[0]) as file:
        file.require_whole()
        os.truncate(paths[-1], paths[-1].stat().st_size - 1)
        with pytest.raises(ModelFileError, match=f"{paths[-1].name} has become shorter"):
            file.require_whole()


def load_model_of(folder: Path, metadata: dict[str, Any]) -> Any:
    path = write_tiny_model(folder / "m.gguf", metadata=metadata)
    return closing(load_model(path, LoadSettings(backend="fake")))


def sound_merges(folder: Path) -> list[str]:
    with GGUFFile.open(folder / "m.gguf") as file:
        return file.metadata.get_strings("tokenizer.ggml.merges")
