"""What a token of a vocabulary is for."""

from __future__ import annotations

from enum import IntEnum


class TokenKind(IntEnum):
    """What a token is for, as the file numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6
