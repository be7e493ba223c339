"""How much a template may compute, hold and write: counted as it runs, in the thread that renders it.

A template out of a model file is hostile until shown otherwise.  Nothing in Python stops a single operation
that is under way, so values are measured before and after each operation (none is given operands that could
make it long), and the clock is read between operations.
"""

from __future__ import annotations

import time
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace

CPU_SECONDS = 1.0
"""Of the rendering thread; a busy machine does not use it up."""
MAX_TEXT = 8_000_000
"""Characters of one value and of the whole output: several times the longest context there is."""
MAX_ITEMS = 200_000
"""Items of one value, those inside its items included."""
MAX_BITS = 4_096
"""Of one integer."""
MAX_DEPTH = 100
"""Calls within calls."""
STEPS_PER_LOOK = 16
"""Steps between two looks at the clock."""

_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


def deadline() -> float:
    """The end of CPU_SECONDS from now, by the clock of this thread: to be drawn up once for all tries."""
    return time.thread_time() + CPU_SECONDS


class BudgetExceeded(SecurityError):
    """A template asked for more than it may have."""


class Budget:
    """The account of one rendering.

    deadline: see `deadline`.  known: containers handed in by us, which need no counting again.
    """

    def __init__(self, deadline: float, known: Iterable[Any] = ()) -> None:
        self._deadline = deadline
        self._steps = 0
        self._written = 0
        self._known: dict[int, tuple[int, int]] = {}
        self.depth = 0
        for value in known:
            self._known[id(value)] = self._measure(value)

    def step(self) -> None:
        """To be called in every iteration, call and operation."""
        self._steps += 1
        # The clock is a system call; no single step takes more than some milliseconds.
        if self._steps % STEPS_PER_LOOK == 0 and time.thread_time() > self._deadline:
            raise BudgetExceeded("it takes too long")

    def write(self, text: str) -> str:
        self.step()
        self._written += len(text)
        if self._written > MAX_TEXT:
            raise BudgetExceeded("it writes too much")
        return text

    def require(self, size: int) -> None:
        """To be called before an operation whose result has size characters or items."""
        if size > MAX_TEXT:
            raise BudgetExceeded("it needs too much memory")

    def weigh(self, value: Any) -> Any:
        """value, if it is small enough to be copied, compared and printed."""
        if isinstance(value, str):
            self.require(len(value))
        elif value is not None and not isinstance(value, (bool, float)):
            self._measure(value)
        return value

    def _measure(self, value: Any) -> tuple[int, int]:
        """(characters, items) of value as it would be printed: what it holds twice counts twice."""
        characters = items = 0
        pending = [value]
        while pending:
            item = pending.pop()
            items += 1
            if isinstance(item, str):
                characters += len(item)
            elif isinstance(item, int):
                if item.bit_length() > MAX_BITS:
                    raise BudgetExceeded("it uses numbers too large")
            elif id(item) in self._known:
                known_characters, known_items = self._known[id(item)]
                characters += known_characters
                items += known_items
            elif isinstance(item, Mapping):
                items += len(item)
                pending.extend(item.keys())
                pending.extend(item.values())
            elif isinstance(item, _CONTAINERS):
                items += len(item)
                pending.extend(item)
            elif isinstance(item, Namespace):
                # Its attributes are private to Jinja; printing a namespace prints them.
                pending.append(object.__getattribute__(item, "_Namespace__attrs"))
            if characters > MAX_TEXT or items > MAX_ITEMS:
                raise BudgetExceeded("it needs too much memory")
        return characters, items
