"""Tokenizers for tests: published vocabularies (tests/data/vocab), and small ones made up on the spot."""

from __future__ import annotations

import functools
import lzma
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.gguf.metadata import Metadata
from engine.gguf.reader import GGUFFile
from engine.gguf.values import infer_value
from engine.tokenizers import Tokenizer, load_tokenizer

FOLDER = Path(__file__).parents[1] / "data" / "vocab"
WHOLE = (
    *("gpt-2", "llama-bpe", "qwen2", "deepseek-coder", "falcon", "llama-spm", "phi-3", "mpt", "starcoder"),
    "bert-bge",
)
PARTS = ("command-r", "deepseek-llm", "gemma-4", "qwen35", "refact")
"""Vocabularies cut down to what their texts need."""
PUBLISHED = WHOLE + PARTS

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


@functools.cache
def published_metadata(name: str) -> Metadata:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.gguf"
        path.write_bytes(lzma.decompress((FOLDER / f"{name}.gguf.xz").read_bytes()))
        with GGUFFile.open(path) as file:
            return file.metadata


@functools.cache
def published(name: str) -> Tokenizer:
    return load_tokenizer(published_metadata(name))


def published_texts(name: str) -> list[str]:
    """The texts whose ids stand in NAME.out: texts of its own where it has some, else the common ones."""
    own = FOLDER / f"{name}.inp"
    path = own if own.exists() else FOLDER / "texts.inp"
    return path.read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")


def published_ids(name: str) -> list[list[int]]:
    lines = (FOLDER / f"{name}.out").read_text(encoding="utf-8").split("\n")
    return [[int(number) for number in line.split()] for line in lines]


def made_up_metadata(**values: object) -> Metadata:
    """tokenizer.ggml.NAME for each value that is not None; `chat_template` keeps its own key."""
    entries = {
        "tokenizer.chat_template" if name == "chat_template" else f"tokenizer.ggml.{name}": infer_value(value)
        for name, value in values.items()
        if value is not None
    }
    return Metadata(entries, "made-up.gguf")


def byte_characters() -> list[str]:
    """The visible character of each byte in byte-level vocabularies, from the published GPT-2 vocabulary:
    its first 256 tokens are the bytes, printing ones first, each group in order."""
    texts = published("gpt-2").vocabulary.texts[:256]
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    order = printing + [byte for byte in range(256) if byte not in printing]
    return [text for _, text in sorted(zip(order, texts, strict=True))]


def byte_pair_metadata(
    merges: Sequence[str], /, extra: Sequence[tuple[str, int]] = (), **values: object
) -> Metadata:
    """Ids 0 to 255 are the bytes, then one token for each merge, then extra (text, kind)."""
    texts = [*byte_characters(), *(merge.replace(" ", "") for merge in merges), *(text for text, _ in extra)]
    kinds = [NORMAL] * (256 + len(merges)) + [kind for _, kind in extra]
    defaults: dict[str, object] = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": texts,
        "token_type": kinds,
        "merges": list(merges),
    }
    return made_up_metadata(**(defaults | values))


def sentence_piece_metadata(
    pieces: Sequence[tuple[str, float]], /, extra: Sequence[tuple[str, int]] = (), **values: object
) -> Metadata:
    """Ids 0 to 2: <unk>, <s>, </s>; up to 258: the bytes; then pieces (text, score); extra (text, kind)."""
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    scores = [0.0] * len(texts) + [score for _, score in pieces] + [0.0] * len(extra)
    texts += [text for text, _ in pieces] + [text for text, _ in extra]
    kinds += [NORMAL] * len(pieces) + [kind for _, kind in extra]
    defaults: dict[str, object] = {
        "model": "llama",
        "tokens": texts,
        "token_type": kinds,
        "scores": scores,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
    }
    return made_up_metadata(**(defaults | values))
