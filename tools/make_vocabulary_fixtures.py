"""Writes into tests/data/vocab what tokenizers are compared with beyond the published vocabularies there.

    words.json          how the library `tokenizers` splits texts by the patterns of every rule
    unigram.gguf.xz     a small Unigram vocabulary with SentencePiece's table of characters, and its ids
    NAME.gguf.xz        parts of published vocabularies that are large: what the 47 texts need of them

It runs in an environment of its own, with the engine's own dependencies besides, and needs llama.cpp's folder
of vocabularies (`models` in its repository, also in the source archive of llama-cpp-python on PyPI):

    python3 -m venv fixtures-environment
    fixtures-environment/bin/pip install tokenizers sentencepiece protobuf numpy regex jinja2 psutil
    fixtures-environment/bin/python -m tools.make_vocabulary_fixtures LLAMA_CPP/models
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, pre_tokenizers

from engine.gguf.metadata import MetadataValue, ValueType
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf
from engine.tokenizers import load_tokenizer
from engine.tokenizers.byte_pair import visible
from engine.tokenizers.rules import RULES

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests/data/vocab"
CORPUS = ROOT / "tests/data/text/harbour.txt"
MARK = "\n__ggml_vocab_test__\n"
REDUCED = ("command-r", "deepseek-llm", "gemma-4", "qwen35", "refact")


def main() -> None:
    texts = [*published_texts(FOLDER / "texts.inp"), *published_texts(FOLDER / "more_texts.inp")]
    write_words(texts)
    write_unigram(texts)
    for name in REDUCED:
        reduce_vocabulary(Path(sys.argv[1]), name)


def published_texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split(MARK)


def write_words(texts: list[str]) -> None:
    """The lengths of the words of each text, by rule."""
    words = {}
    for rule in RULES:
        steps = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in rule.patterns]
        split = pre_tokenizers.Sequence(steps).pre_tokenize_str
        words[rule.name] = [[len(word) for word, _ in split(text)] for text in texts]
    (FOLDER / "words.json").write_text(json.dumps(words, separators=(",", ":")), encoding="utf-8")


def write_unigram(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "unigram"
        sentencepiece.SentencePieceTrainer.train(
            input=str(CORPUS),
            model_prefix=str(prefix),
            model_type="unigram",
            vocab_size=300,
            character_coverage=1.0,
            normalization_rule_name="nmt_nfkc",
        )
        raw = prefix.with_suffix(".model").read_bytes()
    model = sentencepiece_model_pb2.ModelProto.FromString(raw)
    table = np.frombuffer(model.normalizer_spec.precompiled_charsmap, np.uint8)
    write_vocabulary(
        "unigram",
        {
            "general.architecture": "t5",
            "tokenizer.ggml.model": "t5",
            "tokenizer.ggml.tokens": [piece.piece for piece in model.pieces],
            "tokenizer.ggml.scores": [piece.score for piece in model.pieces],
            "tokenizer.ggml.token_type": [piece.type for piece in model.pieces],
            "tokenizer.ggml.unknown_token_id": model.trainer_spec.unk_id,
            "tokenizer.ggml.eos_token_id": model.trainer_spec.eos_id,
            "tokenizer.ggml.add_space_prefix": True,
            "tokenizer.ggml.remove_extra_whitespaces": True,
            "tokenizer.ggml.precompiled_charsmap": MetadataValue(ValueType.ARRAY, table, ValueType.UINT8),
        },
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=raw)
    write_ids("unigram", [processor.encode(text) for text in texts])


def reduce_vocabulary(models: Path, name: str) -> None:
    """Keeps the merges that can happen in the texts, and their tokens; the published ids are new."""
    source = models / f"ggml-vocab-{name}.gguf"
    with GGUFFile.open(source) as file:
        metadata = file.metadata
    texts = published_texts(source.with_suffix(".gguf.inp"))
    lines = source.with_suffix(".gguf.out").read_text(encoding="utf-8").split("\n")
    ids = [[int(number) for number in line.split()] for line in lines[: len(texts)]]
    whole = load_tokenizer(metadata)
    spelling = visible if whole.pre != "gemma4" else spaced
    symbols = "\0".join(map(spelling, texts))
    merges = metadata.get_strings("tokenizer.ggml.merges")
    merges = [merge for merge in merges if merge.replace(" ", "") in symbols]
    wanted = {part for merge in merges for part in (*merge.split(" "), merge.replace(" ", ""))}
    wanted |= {*symbols, *(f"<0x{byte:02X}>" for byte in range(256))}
    named = [whole.bos_id, whole.eos_id, whole.unk_id]
    kept = sorted(
        {token for line in ids for token in line}
        | {token for token, text in enumerate(whole.vocabulary.texts) if text in wanted}
        | {token for token in named if token is not None}
    )
    number = {token: index for index, token in enumerate(kept)}
    values: dict[str, object] = {
        key: value
        for key, value in metadata.values.items()
        if not key.startswith("tokenizer.") or key in ("tokenizer.ggml.model", "tokenizer.ggml.pre")
    }
    values |= {
        "tokenizer.ggml.tokens": [whole.vocabulary.texts[token] for token in kept],
        "tokenizer.ggml.token_type": [int(whole.vocabulary.kinds[token]) for token in kept],
        "tokenizer.ggml.merges": merges,
    }
    for key, token in zip(("bos", "eos", "unknown"), named, strict=True):
        if token is not None:
            values[f"tokenizer.ggml.{key}_token_id"] = number[token]
    write_vocabulary(name, values)
    write_ids(name, [[number[token] for token in line] for line in ids])
    if name in ("gemma-4", "qwen35"):  # the others have the texts that are there already
        (FOLDER / f"{name}.inp").write_text(MARK.join(texts), encoding="utf-8")


def spaced(text: str) -> str:
    return text.replace(" ", "\u2581")


def write_vocabulary(name: str, values: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary.gguf"
        write_gguf(path, values, [])
        (FOLDER / f"{name}.gguf.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9))


def write_ids(name: str, ids: Iterable[list[int]]) -> None:
    lines = [" ".join(map(str, line)) for line in ids]
    (FOLDER / f"{name}.out").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
