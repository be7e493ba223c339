"""What the worker says: frozen events, each with the id of its request.

**Each request ends with exactly one terminal event**, see `is_terminal`:

    load               LoadProgress*, then Loaded, RequestCancelled or Failed
    unload             Unloaded
    chat, complete     GenerationEvent*, the last with a `Finished` record; or Failed; or RequestCancelled
                       where it was cancelled before its turn came
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import CauserieError
from engine.models.description import ModelDescription
from engine.requests import Finished, GenerationRecord


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The loaded model, as the window shows it. memory_bytes: weights, KV cache and arena."""

    path: Path
    description: ModelDescription
    context_size: int
    memory_bytes: int
    has_template: bool
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """share: 0 to 1, never falling."""

    request_id: int
    share: float


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model is ready; an older one has been closed."""

    request_id: int
    info: ModelInfo


@dataclass(frozen=True, slots=True)
class Unloaded:
    """No model is loaded now."""

    request_id: int


@dataclass(frozen=True, slots=True)
class GenerationEvent:
    """A record of the reply, in the order of `engine.requests`."""

    request_id: int
    record: GenerationRecord


@dataclass(frozen=True, slots=True)
class Failed:
    """The request ended with an error that a person can read."""

    request_id: int
    error: CauserieError


@dataclass(frozen=True, slots=True)
class RequestCancelled:
    """A load was cancelled, or a request before its turn came; or the worker shut down first."""

    request_id: int


Event = LoadProgress | Loaded | Unloaded | GenerationEvent | Failed | RequestCancelled


def is_terminal(event: Event) -> bool:
    """Whether this is the last event of its request."""
    if isinstance(event, GenerationEvent):
        return isinstance(event.record, Finished)
    return not isinstance(event, LoadProgress)
