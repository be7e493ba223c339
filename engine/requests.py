"""What is asked of the engine and what it answers: frozen, plain, checked values.

Settings check themselves and raise `SettingsError`; nothing else in the engine checks them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from engine.errors import SettingsError
from engine.grammar.expressions import Grammar
from engine.sampling.settings import SamplingSettings as SamplingSettings

FinishReason = Literal["stop", "length", "context", "cancelled"]
"""stop: end-of-generation token, stop string, or the end of what a grammar allows; length: max_tokens
reached; context: the context is full; cancelled: the person asked to stop."""

DEFAULT_SAMPLING = SamplingSettings()

KVKind = Literal["f32", "f16", "q8"]
"""Numbers of a KV cache: single or half precision, or 8 bits with a scale for 64 numbers of one position and
head."""


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
class LoadSettings:
    """How a model is loaded.

    context_size: tokens the KV cache holds; None: what the file was trained for, at most 4096.
    threads: compute threads; None: the physical cores this process may use.
    backend: name of a backend of the entry-point group `causerie.backends`.
    prompt_chunk: most tokens of a prompt read in one run; the more, the faster.  Progress is told after each.
    kv: f16 keeps keys and values in half precision, q8 in 8 bits: half the memory, a little less exact; f32
    in single precision: twice the memory, as exact as the rest of the computation.
    repack: copy the weights to a layout that is quick to compute with; False: leave them in the file, which
    takes less memory and more time.
    pin_threads: each compute thread stays on a core of its own; only before the first model is loaded.
    template: name of a chat template in the file, or of a family (`engine.templates`); "": the right one.
    """

    context_size: int | None = None
    threads: int | None = None
    backend: str = "cpu"
    prompt_chunk: int = 512
    kv: KVKind = "f16"
    repack: bool = True
    pin_threads: bool = False
    template: str = ""

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
    """A reply to a conversation, through the model's chat template.

    grammar: what the reply has to look like; None: anything.
    thinking: whether a model that can do either should think before it answers; None: as its template has it.
    """

    messages: tuple[Message, ...]
    sampling: SamplingSettings = DEFAULT_SAMPLING
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    grammar: Grammar | None = None
    thinking: bool | None = None

    def __post_init__(self) -> None:
        _require_max_tokens(self.max_tokens)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A raw continuation of prompt_ids, without a template.

    grammar: what the continuation has to look like; None: anything.
    """

    prompt_ids: tuple[int, ...]
    sampling: SamplingSettings = DEFAULT_SAMPLING
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    grammar: Grammar | None = None

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
    """One generated token: the whole characters it completed (may be "") and its log-probability.

    thoughts: characters that belong to the model's thoughts (`engine.reasoning`), which text leaves out.
    """

    text: str
    token: int
    logprob: float
    thoughts: str = ""


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
    ids leave out the end-of-generation token.  thoughts: what the model thought before it answered."""

    reason: FinishReason
    text: str
    ids: tuple[int, ...]
    tail: str
    timings: Timings
    thoughts: str = ""


GenerationRecord = ContextTrimmed | PromptProgress | TextPiece | Finished
