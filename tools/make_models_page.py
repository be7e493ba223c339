"""Writes docs/models.md: what runs here, and how it was checked, out of the registries and the test fixtures.

    python -m tools.make_models_page

A test compares the page with what this tool makes, so that it is made again whenever something changes.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.conversion.registry import FAMILIES as CONVERTED
from engine.gguf.tensor_types import TENSOR_TYPES, QuantType
from engine.models.no_writers import ENCODERS, OTHERS
from engine.models.registry import FAMILIES
from engine.quantisation.quantise import QUANTISERS
from engine.quantisation.registry import FORMATS
from engine.templates.families import FAMILIES as TEMPLATES
from engine.tokenizers.outline import KINDS, SPLIT_BY_RULE
from engine.tokenizers.rules import FALLBACK, RULES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/models.md"
FAMILY_FIXTURES = ROOT / "tests/fixtures/families"
VOCABULARIES = ROOT / "tests/data/vocab"
GOLDEN = ROOT / "tests/golden"
DECODED_TYPES = ROOT / "tests/data/decoded_types.npz"

PRODUCTS = {
    "float32": "kernels in float32",
    "fixed": "kernels in 16-bit fixed point",
    "decoded": "decoded to float32 first",
}


def page() -> str:
    """The whole page."""
    parts = [
        "# Models that run here, and how that was checked",
        "Made by `python -m tools.make_models_page` from the registries of the engine and the fixtures of "
        "the tests; edit those instead.  `causerie info FILE` says what a file is, and why it cannot run "
        "where it cannot.",
        *_families(),
        *_tensor_types(),
        *_tokenizers(),
        *_templates(),
    ]
    return "\n\n".join(parts) + "\n"


def _families() -> list[str]:
    classes = defaultdict(list)
    for name, family in CONVERTED.items():
        classes[family.ARCHITECTURE].append(name)
    peer = json.loads((FAMILY_FIXTURES / "llama_cpp.json").read_text(encoding="utf-8"))
    fixtures = _fixtures()
    rows = [
        (
            code(architecture),
            ", ".join(map(code, sorted(classes[architecture]))) or "none",
            _variants(fixtures[architecture], peer["families"]) or "none",
        )
        for architecture in sorted(FAMILIES)
    ]
    told = [
        f"- `{name}`: {outcome['note']}."
        for name, outcome in sorted(peer["families"].items())
        if outcome["note"] and any(name in names for names in fixtures.values())
    ]
    real = sorted(path.stem for path in GOLDEN.glob("*.json"))
    refused = sorted({*ENCODERS, *OTHERS} - set(FAMILIES))
    return [
        "## Families",
        "A family is named by `general.architecture`.  For each there are tiny random models, converted by "
        "`causerie convert` from safetensors; their logits are those of `transformers` (float64) within a "
        "relative L2 of 1e-4 in F32: for a prompt at once, token by token, and after a truncation of the "
        "cache (`tests/engine/models/test_family_truth.py`).  In brackets: the relative difference of the "
        f"same converted file in llama.cpp ({peer['program']}) from the same truth, rounding of its kernels "
        "and of its half precision included.",
        table(("family", "converted from", "checked with (llama.cpp)"), rows),
        *(["\n".join(["Where llama.cpp differs by design:\n", *told])] if told else []),
        f"Real models, compared with log-probabilities and texts of llama.cpp: {', '.join(real)} "
        "(`tests/golden`).",
        f"Refused by name, since they write no replies: {', '.join(map(code, refused))}.  Any other "
        "architecture is refused before its tensors are read, with the nearest families that are supported.",
    ]


def _fixtures() -> dict[str, list[str]]:
    """Architecture -> names of its fixtures."""
    found = defaultdict(list)
    for folder in sorted(path.parent for path in FAMILY_FIXTURES.glob("*/truth.npz")):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        found[CONVERTED[config["architectures"][0]].ARCHITECTURE].append(folder.name)
    return found


def _variants(names: Iterable[str], peer: dict[str, Any]) -> str:
    """The fixtures of a family, each with the difference of llama.cpp where it was measured."""
    told = []
    for name in names:
        outcome = peer.get(name, {"difference": None, "note": ""})
        if outcome["note"]:
            told.append(f"{name} (see below)")
        elif outcome["difference"] is None:
            told.append(name)
        else:
            told.append(f"{name} ({rounded(outcome['difference'])})")
    return ", ".join(told)


def _tensor_types() -> list[str]:
    with np.load(DECODED_TYPES) as decoded:
        compared = {name.partition(".")[0] for name in decoded}
    rows = [
        (
            name,
            f"{type.bits_per_weight:g}",
            f"{type.block_size} in {type.block_bytes} bytes" if type.block_size > 1 else "plain",
            PRODUCTS[FORMATS[name].product] if name in FORMATS else "listed, not run",
            "yes" if name in QUANTISERS else "no",
            _decoding(type, compared),
        )
        for name, type in TENSOR_TYPES.items()
    ]
    return [
        "## Tensor types",
        "Decoding is compared bit for bit with PyPI `gguf`, where it knows the type, on blocks that are kept "
        "in the tests; products are compared with those of the decoded weights.",
        table(("type", "bits per weight", "block", "products", "written", "decoding"), rows),
    ]


def _decoding(type: QuantType, compared: set[str]) -> str:
    if type.name not in FORMATS:
        return "none"
    if type.name in compared:
        return "as `gguf`, bit for bit"
    return "by the formula of the format" if type.block_size > 1 else "plain numbers"


def _tokenizers() -> list[str]:
    kinds = [
        (code(name), what, "by a rule" if name in SPLIT_BY_RULE else "no") for name, what in KINDS.items()
    ]
    rules = [
        (
            code(rule.name) + (" (also where a rule is unknown, with a notice)" if rule is FALLBACK else ""),
            ", ".join(map(code, rule.aliases)),
            rule.checked,
        )
        for rule in RULES
    ]
    published = sorted(path.stem for path in VOCABULARIES.glob("*.out") if path.stem != "unigram")
    return [
        "## Tokenizers",
        table(("`tokenizer.ggml.model`", "kind", "splits words first"), kinds),
        f"Published vocabularies whose texts give the published ids, every one: {', '.join(published)}.  "
        "A Unigram vocabulary made for the tests gives the ids of the library `sentencepiece`.",
        "Rules by which byte-pair vocabularies split a text (`tokenizer.ggml.pre`):",
        table(("rule", "other names of it", "checked by"), rules),
    ]


def _templates() -> list[str]:
    rows = [
        (
            family.name,
            ", ".join(map(code, family.marks)) or "none",
            ", ".join(" + ".join(group) for group in family.words),
            ", ".join((*family.architectures, *filter(None, [family.tokenizer]))),
        )
        for family in TEMPLATES
    ]
    return [
        "## Chat templates",
        "A file's own template comes first.  A file without one gets the first of these whose marks are "
        "control tokens of its vocabulary, preferably one whose end of a turn is the file's EOS; with none "
        "of them it cannot chat.  `causerie info FILE --template` shows which, why, and a sample.",
        table(("template", "control tokens needed", "words in the model's name", "only for"), rows),
    ]


def code(text: str) -> str:
    """As code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def rounded(value: float) -> str:
    """One digit, rounded up, so that a slightly different measurement seldom changes the page."""
    if value <= 0:
        return "0"
    exponent = math.floor(math.log10(value))
    digit = math.ceil(value / 10**exponent - 1e-9)
    return f"{digit}e{exponent}" if digit < 10 else f"1e{exponent + 1}"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
