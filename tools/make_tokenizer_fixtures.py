"""Writes tests/fixtures/tokenizers: small tokenizers as checkpoints have them, and ids that others give.

It needs libraries that stay out of the project's own environment:

    python3 -m venv fixtures-environment
    fixtures-environment/bin/pip install tokenizers sentencepiece protobuf transformers
    fixtures-environment/bin/python tools/make_tokenizer_fixtures.py

Each folder gets the files of a checkpoint (``tokenizer.json`` or ``tokenizer.model``, and
``tokenizer_config.json``) and ``truth.json``: ``texts``, their ``ids`` by `tokenizers` or `sentencepiece`
without anything added, and ``rows``, as many tokens as the embedding of the model would have.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = Path(__file__).parents[1] / "tests/fixtures/tokenizers"
CORPUS = Path(__file__).parents[1] / "tests/data/text/harbour.txt"
SIZE = 380

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
"""As the makers of Llama 3 and Qwen 2 publish them."""

TEXTS = (
    "the harbour wall",
    " the  boats   came in\n\nat 12345 o'clock, We'Ve heard",
    "naïve café 私は 🦙!",
    "a\tb\r\n  c",
    "x",
    "...",
    "<tool>the sea</tool>",
)
PLAIN = tuple(text for text in TEXTS if "<" not in text and "\t" not in text and "\n" not in text)
"""For SentencePiece, which we prepare to keep every space, but whose library drops line breaks."""


def main() -> None:
    byte_level("byte-level-gpt2", [], special=["<|endoftext|>"])
    byte_level("byte-level-llama3", [split(LLAMA3)], special=["<|begin|>", "<|end|>"], begin=True, whole=True)
    byte_level("byte-level-qwen2", [split(QWEN2)], special=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    byte_level(
        "byte-level-smollm",
        [pre_tokenizers.Digits(individual_digits=True)],
        special=["<|endoftext|>"],
        own_pattern=True,
    )
    byte_level("byte-level-unknown", [split(r"\p{L}+|\P{L}+")], special=["<|endoftext|>"])
    sentence_pieces("sentence-piece", "bpe", prefix=True)
    sentence_pieces("sentence-piece-no-prefix", "bpe", prefix=False)
    sentence_pieces("unigram", "unigram", prefix=True)
    spaced_json("spaced")
    word_pieces("word-pieces")


def split(pattern: str) -> pre_tokenizers.Split:
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(
    name: str,
    steps: list[Any],
    *,
    special: list[str],
    begin: bool = False,
    whole: bool = False,
    own_pattern: bool = False,
) -> None:
    """steps: before the one that turns bytes into characters, whose own pattern counts where there are none.

    begin: the first special token begins every text.  whole: words that are tokens are taken without merges.
    """
    tokenizer = Tokenizer(models.BPE(ignore_merges=whole))
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=own_pattern or not steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, last]) if steps else last
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(
        [str(CORPUS)],
        trainers.BpeTrainer(
            vocab_size=SIZE,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer.add_tokens(["<tool>", "</tool>"])
    if begin:
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single=f"{special[0]} $A",
                    special_tokens=[(special[0], tokenizer.token_to_id(special[0]))],
                ),
            ]
        )
    config = {
        "bos_token": special[0],
        "eos_token": {"content": special[-1]},
        "chat_template": "{{ messages }}",
    }
    write(name, tokenizer, config, tokenizer.get_vocab_size() + 3)


def sentence_pieces(name: str, kind: str, *, prefix: bool) -> None:
    folder = fresh(name)
    train_pieces(folder / "tokenizer", kind, prefix)
    (folder / "tokenizer.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    config = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "add_bos_token": True,
        "add_eos_token": False,
        "added_tokens_decoder": {"1": {"content": "<s>", "special": True}},
    }
    write_json(folder / "tokenizer_config.json", config)
    write_truth(folder, processor.encode, PLAIN, processor.get_piece_size() + 4)


def train_pieces(prefix_path: Path, kind: str, prefix: bool) -> None:
    sentencepiece.SentencePieceTrainer.train(
        input=str(CORPUS),
        model_prefix=str(prefix_path),
        model_type=kind,
        vocab_size=SIZE,
        byte_fallback=True,
        character_coverage=1.0,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        user_defined_symbols=["<tool>"],
        minloglevel=2,
    )


def spaced_json(name: str) -> None:
    """The same pieces as byte pairs of `tokenizers`, as checkpoints of Llama 2 have them."""
    folder = fresh(name)
    train_pieces(folder / "pieces", "bpe", prefix=True)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "pieces.model"))
    pieces = [processor.id_to_piece(token) for token in range(processor.get_piece_size())]
    ids = {piece: token for token, piece in enumerate(pieces)}
    pairs = [
        (-processor.get_score(ids[piece]), piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in ids and piece[cut:] in ids and piece != "<tool>"
    ]
    merges = [(left, right) for _, left, right in sorted(pairs, key=lambda pair: pair[0])]
    tokenizer = Tokenizer(
        models.BPE(vocab=ids, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    for path in folder.glob("pieces.*"):
        path.unlink()
    write(
        name, tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, len(pieces), PLAIN
    )


def word_pieces(name: str) -> None:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=special, show_progress=False)
    tokenizer.train([str(CORPUS)], trainer)
    config = {"unk_token": "[UNK]", "sep_token": "[SEP]", "cls_token": "[CLS]", "pad_token": "[PAD]"}
    texts = tuple(text for text in TEXTS if text.isascii() and "<" not in text)
    write(name, tokenizer, config, tokenizer.get_vocab_size(), texts)


def write(
    name: str, tokenizer: Tokenizer, config: dict[str, Any], rows: int, texts: tuple[str, ...] = TEXTS
) -> None:
    folder = fresh(name)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)
    write_truth(folder, lambda text: tokenizer.encode(text, add_special_tokens=False).ids, texts, rows)


def write_truth(folder: Path, encode: Callable[[str], list[int]], texts: tuple[str, ...], rows: int) -> None:
    truth = {"texts": texts, "ids": [encode(text) for text in texts], "rows": rows}
    write_json(folder / "truth.json", truth)
    print(folder.name, sum(path.stat().st_size for path in folder.iterdir()), "bytes")


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def fresh(name: str) -> Path:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main()
