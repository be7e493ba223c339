"""Plain data: a chat and its messages, as they stand in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["user", "assistant"]

State = Literal["complete", "partial", "stopped", "interrupted", "error"]
"""partial: being written now; stopped: by the person or at closing; interrupted: the program died while
it was written; error: the engine failed in the middle."""


@dataclass(frozen=True, slots=True)
class Chat:
    """created, changed: seconds since 1970."""

    id: int
    title: str
    created: float
    changed: float


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """content: the text as typed or as written by the model; model: name of the model, "" for a person."""

    id: int
    chat_id: int
    role: Role
    content: str
    state: State
    model: str
    created: float
