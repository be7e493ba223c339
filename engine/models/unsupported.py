"""What is said of an architecture without a family: its name, and the nearest families there are.

Nearest is first who stems from the same models (KIN), then who is spelt alike.  Names of architectures are
those of llama.cpp's files.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from engine.errors import UnsupportedModelError

KIN: Mapping[str, tuple[str, ...]] = {
    "afmoe": ("gpt-oss", "qwen3moe"),
    "apertus": ("llama",),
    "arcee": ("llama",),
    "arctic": ("llama",),
    "baichuan": ("llama",),
    "bailingmoe": ("qwen2moe",),
    "bailingmoe2": ("qwen3moe",),
    "bitnet": ("llama",),
    "bloom": ("falcon", "gptneox"),
    "chameleon": ("llama",),
    "chatglm": ("qwen2", "llama"),
    "codeshell": ("starcoder2",),
    "cohere2moe": ("cohere2",),
    "dbrx": ("llama",),
    "deci": ("llama",),
    "deepseek": ("llama", "qwen2moe"),
    "deepseek2": ("llama", "qwen3moe"),
    "dots1": ("qwen3moe",),
    "ernie4_5": ("llama",),
    "ernie4_5-moe": ("qwen3moe",),
    "exaone": ("exaone4", "llama"),
    "exaone-moe": ("exaone4", "qwen3moe"),
    "falcon-h1": ("falcon", "llama"),
    "gemma3n": ("gemma3",),
    "gemma4": ("gemma3",),
    "glm4": ("qwen3", "llama"),
    "glm4moe": ("qwen3moe",),
    "gptj": ("gptneox", "gpt2"),
    "granitehybrid": ("granite", "granitemoe"),
    "grok": ("llama", "gpt-oss"),
    "hunyuan-dense": ("qwen3",),
    "hunyuan-moe": ("qwen3moe",),
    "internlm2": ("llama",),
    "jais": ("gpt2",),
    "lfm2": ("llama", "qwen3"),
    "lfm2moe": ("qwen3moe",),
    "llama4": ("llama",),
    "minicpm": ("llama", "granite"),
    "minicpm3": ("llama", "granite"),
    "mistral4": ("mistral3",),
    "mpt": ("gptneox",),
    "nemotron": ("llama", "mistral3"),
    "nemotron_h": ("llama", "mistral3"),
    "olmo": ("olmo2",),
    "openelm": ("llama", "gemma3"),
    "orion": ("llama",),
    "phimoe": ("phi3",),
    "plamo": ("llama",),
    "qwen": ("qwen2",),
    "qwen2vl": ("qwen2",),
    "qwen3next": ("qwen3moe", "qwen3"),
    "qwen35": ("qwen3",),
    "qwen35moe": ("qwen3moe",),
    "refact": ("starcoder2", "llama"),
    "seed_oss": ("qwen2", "llama"),
    "smallthinker": ("smollm3", "qwen3moe"),
    "starcoder": ("starcoder2", "gpt2"),
    "xverse": ("llama",),
}
"""Supported families by architectures that are not."""

MOST_NAMED = 3
LONGEST_NAME = 60
"""Characters of a name that are repeated: it comes from the file."""


def refusal(architecture: str, supported: Collection[str]) -> UnsupportedModelError:
    """The error for an architecture that is not among the supported ones."""
    near = nearest(architecture, supported)
    return UnsupportedModelError(
        f"Models of the family {architecture[:LONGEST_NAME]!r} are not supported.",
        f"The nearest families that are: {', '.join(near)}."
        if near
        else f"Choose a model of one of these families: {', '.join(sorted(supported))}.",
    )


def nearest(architecture: str, supported: Collection[str]) -> list[str]:
    """At most three, nearest first; empty where none is near."""
    name = architecture[:LONGEST_NAME].lower()
    kin = [family for family in KIN.get(name, ()) if family in supported]
    alike = difflib.get_close_matches(name, sorted(supported), n=MOST_NAMED, cutoff=0.6)
    return list(dict.fromkeys(kin + alike))[:MOST_NAMED]
