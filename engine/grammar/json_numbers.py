"""Numbers between bounds, digit by digit.

A bound splits the numbers by their first digit that differs from the bound's: before it the digits are equal,
behind it they are free.  Bounds are exact decimals; what a double cannot tell apart is not told apart by more
than `MOST_DIGITS` digits before or behind the point.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

from engine.errors import GrammarError
from engine.grammar.expressions import (
    EMPTY,
    Expression,
    Repeat,
    characters,
    choice,
    literal,
    optional,
    sequence,
)
from engine.grammar.json_values import DIGIT, FRACTION, INTEGER, MOST_DIGITS, NUMBER

Bound = tuple[Decimal, bool]
"""A number, and whether it is itself left out."""

_BEYOND = (Decimal(10) ** MOST_DIGITS, True)
_FROM_ZERO = (Decimal(0), False)
_ABOVE_ZERO = (Decimal(0), True)


def integers(low: Bound | None, high: Bound | None) -> Expression:
    """Whole numbers between the bounds (None: no bound).  Raises `GrammarError` where there is none."""
    if low is None and high is None:
        return INTEGER
    most = 10**MOST_DIGITS - 1
    smallest = -most if low is None else max(-most, _whole(low, upwards=True))
    largest = most if high is None else min(most, _whole(high, upwards=False))
    ways = list(_naturals(max(smallest, 0), largest))
    ways += [sequence(literal("-"), way) for way in _naturals(max(-largest, 1), -smallest)]
    return _any_of(ways, low, high)


def numbers(low: Bound | None, high: Bound | None) -> Expression:
    """Numbers between the bounds, without an exponent where there is a bound."""
    if low is None and high is None:
        return NUMBER
    ways = list(_magnitudes(low if low and low[0] >= 0 else _FROM_ZERO, high or _BEYOND))
    if low is None or low[0] < 0:
        nearest = (-high[0], high[1]) if high and high[0] < 0 else _ABOVE_ZERO
        farthest = (-low[0], low[1]) if low else _BEYOND
        ways += [sequence(literal("-"), way) for way in _magnitudes(nearest, farthest)]
    return _any_of(ways, low, high)


def _any_of(ways: list[Expression], low: Bound | None, high: Bound | None) -> Expression:
    if not ways:
        ends = ("no bound" if bound is None else f"{bound[0]:.17g}" for bound in (low, high))
        raise GrammarError("The schema asks for a number between {} and {}: there is none.".format(*ends))
    return choice(ways)


def _whole(bound: Bound, upwards: bool) -> int:
    """The first whole number within the bound."""
    value, left_out = bound
    whole = int(value.to_integral_value("ROUND_CEILING" if upwards else "ROUND_FLOOR"))
    return whole + (1 if upwards else -1) if left_out and whole == value else whole


def _naturals(low: int, high: int) -> Iterator[Expression]:
    """The numbers low to high, both at least 0, as one expression for each count of digits."""
    for n_digits in range(len(str(low)), len(str(high)) + 1 if high >= low else 0):
        first = max(low, 10 ** (n_digits - 1) if n_digits > 1 else 0)
        yield _same_length(str(first), str(min(high, 10**n_digits - 1)))


def _same_length(low: str, high: str) -> Expression:
    """The digit strings low to high."""
    if not low or (set(low) == {"0"} and set(high) == {"9"}):
        return Repeat(DIGIT, len(low), len(low))
    zeros, nines = "0" * (len(low) - 1), "9" * (len(low) - 1)
    if low[0] == high[0]:
        return sequence(literal(low[0]), _same_length(low[1:], high[1:]))
    ways = [
        sequence(literal(low[0]), _same_length(low[1:], nines)),
        sequence(literal(high[0]), _same_length(zeros, high[1:])),
    ]
    if ord(high[0]) - ord(low[0]) > 1:
        between = characters((ord(low[0]) + 1, ord(high[0]) - 1))
        ways.append(sequence(between, _same_length(zeros, nines)))
    return choice(ways)


def _magnitudes(low: Bound, high: Bound) -> Iterator[Expression]:
    """Decimals from low to high, both at least 0."""
    if low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])):
        return
    high = min(high, _BEYOND)
    (low_whole, low_digits), (high_whole, high_digits) = _digits(low[0]), _digits(high[0])
    if low_whole == high_whole:
        yield from _with_fraction(low_whole, (low_digits, low[1]), (high_digits, high[1]))
        return
    yield from _with_fraction(low_whole, (low_digits, low[1]), None)
    for way in _naturals(low_whole + 1, high_whole - 1):
        yield sequence(way, optional(FRACTION))
    if high_whole < 10**MOST_DIGITS:
        yield from _with_fraction(high_whole, None, (high_digits, high[1]))


def _digits(value: Decimal) -> tuple[int, str]:
    """The whole part, and the digits behind the point."""
    whole = int(value)
    digits = f"{value - whole:f}".partition(".")[2].rstrip("0")
    if len(digits) > MOST_DIGITS:
        raise GrammarError(f"The schema's bound {value} has more than {MOST_DIGITS} digits behind the point.")
    return whole, digits


Digits = tuple[str, bool]
"""Digits of a bound behind the point, and whether the bound is itself left out."""


def _with_fraction(whole: int, low: Digits | None, high: Digits | None) -> Iterator[Expression]:
    if _zero_fits(low, high):
        yield literal(str(whole))
    fraction = _fraction(low, high, MOST_DIGITS, 1)
    if fraction is not None:
        yield sequence(literal(f"{whole}."), fraction)


def _zero_fits(low: Digits | None, high: Digits | None) -> bool:
    above_low = low is None or (not low[0].strip("0") and not low[1])
    below_high = high is None or bool(high[0].strip("0")) or not high[1]
    return above_low and below_high


@lru_cache(maxsize=1024)
def _fraction(low: Digits | None, high: Digits | None, most: int, least: int = 0) -> Expression | None:
    """Strings of least to most digits that, behind the point, are within the bounds; None: there is none."""
    if low is not None and _zero_fits(low, None):
        low = None
    if low is None and high is None:
        return Repeat(DIGIT, least, most)
    ways: list[Expression] = [EMPTY] if not least and _zero_fits(low, high) else []
    if most:
        firsts: dict[Expression, list[str]] = {}
        for digit in "0123456789":
            lowest, highest = (low[0][:1] or "0" if low else "0"), (high[0][:1] or "0" if high else "9")
            if lowest <= digit <= highest:
                rest = _fraction(
                    (low[0][1:], low[1]) if low and digit == lowest else None,
                    (high[0][1:], high[1]) if high and digit == highest else None,
                    most - 1,
                )
                if rest is not None:
                    firsts.setdefault(rest, []).append(digit)
        ways += [
            sequence(characters(*((ord(digit), ord(digit)) for digit in digits)), rest)
            for rest, digits in firsts.items()
        ]
    return choice(ways) if ways else None
