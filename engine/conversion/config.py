"""The configuration of a checkpoint (``config.json``), with getters that check type and range."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from engine.errors import ModelFileError

MAX_JSON_BYTES = 64 << 20
MAX_COUNT = (1 << 31) - 1
MAX_NUMBER = 1e30


def read_json(path: Path, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """The object in a JSON file.  Raises `ModelFileError` for anything else."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise ModelFileError(f"{path.name} has {size:,} bytes; at most {max_bytes:,} are sensible.")
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ModelFileError(
            f"There is no {path.name} in {path.parent}.",
            "Choose the folder of a checkpoint: config.json and .safetensors files.",
        ) from error
    except OSError as error:
        raise ModelFileError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path.name} is no sound JSON file ({error}).") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path.name} holds no JSON object.")
    return content


def is_number(value: object) -> TypeGuard[int | float]:
    """A number that float32 can hold; an integer in JSON may be longer than any float."""
    return isinstance(value, int | float) and type(value) is not bool and -MAX_NUMBER < value < MAX_NUMBER


class Config:
    """Values of a configuration.  ``null`` counts as missing.

    A getter takes several names where releases have called a value differently: the first that is there
    counts.  Every getter raises `ModelFileError` naming the key where a value is missing, of another type or
    out of its range.
    """

    def __init__(self, values: Mapping[str, Any], file_name: str = "config.json") -> None:
        self.values = values
        self.file_name = file_name

    def has(self, *names: str) -> bool:
        return any(self.values.get(name) is not None for name in names)

    def with_defaults(self, defaults: Mapping[str, Any], *, keep_null: bool = False) -> Config:
        """The same, with other values where some are missing.

        keep_null: ``null`` stays, where it says that there is none (such as a window), unlike a missing key.
        """
        given = {name: value for name, value in self.values.items() if keep_null or value is not None}
        return Config({**defaults, **given}, self.file_name)

    def get(self, *names: str) -> Any:
        """The value as it is; None where it is missing."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def count(
        self, *names: str, default: int | None = None, minimum: int = 1, maximum: int = MAX_COUNT
    ) -> int:
        """A whole number."""
        value = self._required(names, default)
        if type(value) is not int:
            raise self._wrong(names, value, "a whole number")
        if not minimum <= value <= maximum:
            raise self._wrong(names, value, f"a number from {minimum} to {maximum}")
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        """A finite number, of less than 1e30."""
        value = self._required(names, default)
        if not is_number(value):
            raise self._wrong(names, value, "a number")
        return float(value)

    def flag(self, *names: str, default: bool | None = None) -> bool:
        value = self._required(names, default)
        if type(value) is not bool:
            raise self._wrong(names, value, "true or false")
        return value

    def text(self, *names: str, default: str | None = None) -> str:
        value = self._required(names, default)
        if type(value) is not str:
            raise self._wrong(names, value, "a text")
        return value

    def items(self, *names: str) -> list[Any]:
        """A list; empty where it is missing."""
        value = self._required(names, [])
        if type(value) is not list:
            raise self._wrong(names, value, "a list")
        return value

    def part(self, *names: str) -> Config | None:
        """An object inside this one, None where it is missing."""
        value = self.get(*names)
        if value is None:
            return None
        if type(value) is not dict:
            raise self._wrong(names, value, "an object")
        return Config(value, f"{self.file_name}: {names[0]}")

    def _required(self, names: tuple[str, ...], default: Any) -> Any:
        value = self.get(*names)
        if value is None:
            value = default
        if value is None:
            raise ModelFileError(f"{self.file_name} lacks {' or '.join(names)}.")
        return value

    def _wrong(self, names: tuple[str, ...], value: object, wanted: str) -> ModelFileError:
        name = next(name for name in names if self.values.get(name) is not None)
        return ModelFileError(f"{self.file_name}: {name} is {str(value)[:80]!r}, not {wanted}.")
