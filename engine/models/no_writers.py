"""Architectures whose models do not write replies, and what is said of them: encoders above all.

Names are those of llama.cpp's files.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import UnsupportedModelError

ENCODERS = frozenset(
    {
        "bert",
        "eurobert",
        "gemma-embedding",
        "jina-bert-v2",
        "jina-bert-v3",
        "llama-embed",
        "modern-bert",
        "neo-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "t5encoder",
    }
)

ENCODER = "is an encoder: it turns a text into numbers, for search and comparison, and writes no replies."

OTHERS: Mapping[str, str] = {
    "clip": "is the part of a model that sees pictures or hears; without the other part it writes nothing.",
    "dream": "writes by diffusion, all words of a reply at once, which is not supported.",
    "llada": "writes by diffusion, all words of a reply at once, which is not supported.",
    "llada-moe": "writes by diffusion, all words of a reply at once, which is not supported.",
    "t5": "is a translator with an encoder and a decoder, which is not supported.",
    "wavtokenizer-dec": "makes sound of tokens, and writes no replies.",
}

CHOOSE_A_CHAT_MODEL = "Choose a model that was made for chat, of the family llama, qwen3 or gemma3, say."
CHOOSE_THE_OTHER_PART = "Choose the model's main file: the one without mmproj in its name."


def refusal_of_kind(architecture: str) -> UnsupportedModelError | None:
    """The error for an architecture of another kind than those that write; None for any other."""
    what = ENCODER if architecture in ENCODERS else OTHERS.get(architecture)
    if what is None:
        return None
    advice = CHOOSE_THE_OTHER_PART if architecture == "clip" else CHOOSE_A_CHAT_MODEL
    return UnsupportedModelError(f"A model of the architecture {architecture!r} {what}", advice)
