"""A matrix product whose weight is still open: experts of one shape share everything but their weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """y = x W^T with x, y and scratch fixed.

    multiply is called with the `words` of a `PackedWeight` and arguments; prepare, if there is something to
    prepare, before it, and finish after it.  The wrapper that makes a product has checked all but the weight,
    which must have the type and shape of the one that the product was made for.
    """

    multiply: Callable[..., object]
    arguments: tuple[object, ...] = ()
    prepare: Callable[[], object] | None = None
    finish: Callable[[], object] | None = None

    def bind(self, words: NDArray[Any]) -> Callable[[], object]:
        """The call for one weight: as few Python calls as there are kernels."""
        multiply = partial(self.multiply, words, *self.arguments)
        calls = tuple(call for call in (self.prepare, multiply, self.finish) if call is not None)
        return multiply if len(calls) == 1 else partial(run_all, calls)

    def __call__(self, words: NDArray[Any]) -> None:
        """The product with one weight, now."""
        if self.prepare is not None:
            self.prepare()
        self.multiply(words, *self.arguments)
        if self.finish is not None:
            self.finish()


def run_all(calls: tuple[Callable[[], object], ...]) -> None:
    for call in calls:
        call()
