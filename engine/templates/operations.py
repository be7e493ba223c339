"""Operations of a template that can make much out of little: their size is known beforehand."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinMethodType
from typing import Any

from jinja2.exceptions import SecurityError

from engine.templates.budget import MAX_BITS, Budget, BudgetExceeded

MAX_WIDTH = 1_000
"""Of a padded field, an indent, a batch: numbers by which a template multiplies text."""

_WIDE_FIELD = re.compile(r"\d{4}|\*|\{[^{}]*\{")
"""In "%5d" or "{:5}": a width of four digits, or one that is taken from an argument."""

TEXT_METHODS = frozenset(
    """
    capitalize casefold center count endswith find index isalnum isalpha isdecimal isdigit
    islower isnumeric isspace istitle isupper join ljust lower lstrip partition removeprefix
    removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines
    startswith strip swapcase title upper zfill
    """.split()  # noqa: SIM905 - a list of quoted words would hide them
)
"""What a template may do with a text, beside `format`."""

_METHODS: tuple[tuple[type | tuple[type, ...], frozenset[str]], ...] = (
    (str, TEXT_METHODS),
    (dict, frozenset({"copy", "get", "items", "keys", "values"})),
    ((list, tuple), frozenset({"copy", "count", "index"})),
)


class JSONObject(dict[str, Any]):
    """Arguments of a tool call: printed as JSON, whether a template applies `tojson` or not."""

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False)


def to_text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def check_widths(values: Iterable[Any]) -> None:
    for value in values:
        too_wide = isinstance(value, int) and abs(value) > MAX_WIDTH
        if too_wide or (isinstance(value, str) and len(value) > MAX_WIDTH):
            raise BudgetExceeded("it pads text too far")


def check_format(budget: Budget, pattern: str, mark: str, values: Iterable[Any]) -> None:
    """Before values are put into a pattern, whose fields begin with mark ("%" or "{")."""
    if mark in pattern and _WIDE_FIELD.search(pattern):
        raise BudgetExceeded("it pads text too far")
    longest = max((len(to_text(budget.weigh(value))) for value in values), default=0)
    budget.require(len(pattern) + pattern.count(mark) * (MAX_WIDTH + longest))


def replace_text(budget: Budget, text: str, old: str, new: str, count: int = -1) -> str:
    budget.require(len(text) + text.count(old) * len(new))
    return text.replace(old, new, count)


def join_texts(budget: Budget, separator: str, items: Iterable[Any]) -> str:
    texts: list[str] = []
    size = 0
    for item in items:
        budget.step()
        text = to_text(budget.weigh(item))
        texts.append(text)
        size += len(text) + len(separator)
        budget.require(size)
    return separator.join(texts)


def call_built_in(
    budget: Budget, method: BuiltinMethodType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a text, list or object, one of the known ones; all others are refused."""
    owner, name = method.__self__, method.__name__
    if not any(isinstance(owner, kind) and name in names for kind, names in _METHODS):
        raise SecurityError(f"it calls {name} of a {type(owner).__name__}")
    if isinstance(owner, str):
        if name == "replace":
            return replace_text(budget, owner, *args, **kwargs)
        if name == "join":
            return join_texts(budget, owner, *args, **kwargs)
        if name in ("center", "ljust", "rjust", "zfill"):
            check_widths(args)
    return method(*args, **kwargs)


def multiply(budget: Budget, left: Any, right: Any) -> Any:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, (str, list, tuple)) and isinstance(times, int):
            budget.require(len(sequence) * times)
    return operator.mul(left, right)


def power(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > MAX_BITS:
        raise BudgetExceeded("it uses numbers too large")
    return operator.pow(left, right)


def modulo(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, str):
        values = (
            right.values() if isinstance(right, Mapping) else right if isinstance(right, tuple) else (right,)
        )
        check_format(budget, left, "%", (right, *values))
    return operator.mod(left, right)


GROWING_OPERATORS: dict[str, Callable[[Budget, Any, Any], Any]] = {"*": multiply, "**": power, "%": modulo}


def to_json(
    budget: Budget,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as templates expect it: nothing escaped for HTML, keys in their order, a plain str."""
    check_widths([indent, *(separators or ())])
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    return join_texts(budget, "", encoder.iterencode(value))
