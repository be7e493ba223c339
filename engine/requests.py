"""What is asked of the engine and what it answers: frozen, plain, checked values.

Settings check themselves and raise `SettingsError`; nothing else in the engine checks them again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from engine.errors import SettingsError

FinishReason = Literal["stop", "length", "context", "cancelled"]
"""stop: end-of-generation token or stop string; length: max_tokens reached; context: the context is
full; cancelled: the person asked to stop."""

KVKind = Literal["f16", "q8"]
"""Numbers of a KV cache: half precision, or 8 bits with a scale for 64 numbers of one position and head."""


def _require(condition: bool, title: str) -> None:
    if not condition:
        raise SettingsError(title)


def _require_max_tokens(count: int | None) -> None:
    _require(count is None or count >= 0, f"max_tokens must not be negative, it is {count}.")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. role: system, user or assistant (others as the template allows)."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How the next token is chosen from the logits.

    temperature: 0 (or less) is greedy, the lowest id on ties.
    top_k: keep the k likeliest; 0 or less: off.
    top_p: keep the smallest set of at least this probability; 1: off, 0: only the likeliest.
    min_p: keep what is at least min_p times the likeliest; 0: off.
    repetition_penalty: > 0; 1: off.  Positive logits of recent tokens are divided by it, negative multiplied.
    Line breaks and ends of generation are spared, or replies would run on.
    repetition_window: how many of the last tokens count; 0: off, -1: all.
    seed: None draws a fresh one.
    logit_bias: token id to a number added to its logit.
    """

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repetition_penalty: float = 1.0
    repetition_window: int = 64
    seed: int | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            value = getattr(self, name)
            _require(not math.isnan(value), f"{name} is not a number.")
        _require(self.temperature < math.inf, "temperature must be finite.")
        _require(0 <= self.top_p <= 1, f"top_p must be between 0 and 1, not {self.top_p}.")
        _require(self.min_p >= 0, f"min_p must not be negative, it is {self.min_p}.")
        _require(
            0 < self.repetition_penalty < math.inf,
            f"repetition_penalty must be above 0, not {self.repetition_penalty}.",
        )
        _require(
            self.repetition_window >= -1,
            f"repetition_window must be -1 or more, not {self.repetition_window}.",
        )
        _require(
            self.seed is None or 0 <= self.seed < 2**64,
            f"seed must be between 0 and 2**64 - 1, not {self.seed}.",
        )
        _require(
            all(not math.isnan(bias) for bias in self.logit_bias.values()),
            "a logit_bias is not a number.",
        )


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How a model is loaded.

    context_size: tokens the KV cache holds; None: what the file was trained for, at most 4096.
    threads: compute threads; None: the physical cores this process may use.
    backend: name of a backend of the entry-point group `causerie.backends`.
    prompt_chunk: most tokens of a prompt read in one run; the more, the faster.  Progress is told after each.
    kv: f16 keeps keys and values in half precision, q8 in 8 bits: half the memory, a little less exact.
    repack: copy the weights to a layout that is quick to compute with; False: leave them in the file, which
    takes less memory and more time.
    pin_threads: each compute thread stays on a core of its own; only before the first model is loaded.
    """

    context_size: int | None = None
    threads: int | None = None
    backend: str = "cpu"
    prompt_chunk: int = 512
    kv: KVKind = "f16"
    repack: bool = True
    pin_threads: bool = False

    def __post_init__(self) -> None:
        _require(
            self.context_size is None or self.context_size >= 1,
            f"The context size must be at least 1 token, not {self.context_size}.",
        )
        _require(
            self.threads is None or 1 <= self.threads <= 1024,
            f"threads must be between 1 and 1024, not {self.threads}.",
        )
        _require(self.prompt_chunk >= 1, "prompt_chunk must be at least 1 token.")
        kinds = get_args(KVKind)
        _require(self.kv in kinds, f"The KV cache is {' or '.join(kinds)}, not {self.kv!r}.")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A reply to a conversation, through the model's chat template."""

    messages: tuple[Message, ...]
    sampling: SamplingSettings = SamplingSettings()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_max_tokens(self.max_tokens)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A raw continuation of prompt_ids, without a template."""

    prompt_ids: tuple[int, ...]
    sampling: SamplingSettings = SamplingSettings()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_max_tokens(self.max_tokens)


# What generation yields, in this order: ContextTrimmed?, PromptProgress+, TextPiece*, Finished.


@dataclass(frozen=True, slots=True)
class ContextTrimmed:
    """Whole oldest turns were left out so that the prompt fits; the system prompt was kept."""

    dropped_messages: int


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """done of total prompt tokens are in the KV cache; reused of them were there already."""

    done: int
    total: int
    reused: int


NO_TOKEN = -1
"""Token of a piece that only gives out held-back text, before an error ends the reply."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """One generated token: the whole characters it completed (may be "") and its log-probability."""

    text: str
    token: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Timings:
    """Counts in tokens, times in seconds; prompt_tokens leaves out the reused ones."""

    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    prompt_seconds: float
    generate_seconds: float
    context_used: int

    @property
    def read_tokens_per_second(self) -> float:
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds > 0 else 0.0

    @property
    def write_tokens_per_second(self) -> float:
        return self.generated_tokens / self.generate_seconds if self.generate_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Finished:
    """The last record. text and ids are the whole reply: text equals the joined pieces plus tail;
    ids leave out the end-of-generation token."""

    reason: FinishReason
    text: str
    ids: tuple[int, ...]
    tail: str
    timings: Timings


GenerationRecord = ContextTrimmed | PromptProgress | TextPiece | Finished
