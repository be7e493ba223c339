"""Numbers between bounds, against comparing them."""

import json
import math
import random
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import GrammarError
from engine.grammar.json_schema import schema_grammar
from tests.engine.grammar.following import accepts, follow, random_text

small = st.integers(-1200, 1200) | st.none()


def within(value, schema):
    return schema.get("minimum", value) <= value <= schema.get("maximum", value) and schema.get(
        "exclusiveMinimum", -math.inf
    ) < value < schema.get("exclusiveMaximum", math.inf)


def bounds_of(low, high, low_kind, high_kind):
    return {key: value for key, value in ((low_kind, low), (high_kind, high)) if value is not None}


low_kinds, high_kinds = (
    st.sampled_from(["minimum", "exclusiveMinimum"]),
    st.sampled_from(["maximum", "exclusiveMaximum"]),
)


@settings(deadline=None, max_examples=60)
@given(small, small, low_kinds, high_kinds)
@example(-10, 1000, "minimum", "maximum")
@example(0, 0, "minimum", "maximum")
@example(-1, 0, "exclusiveMinimum", "exclusiveMaximum")
@example(None, -100, "minimum", "maximum")
def test_integers(low, high, low_kind, high_kind):
    schema = {"type": "integer", **bounds_of(low, high, low_kind, high_kind)}
    expected = [value for value in range(-1300, 1301) if within(value, schema)]
    try:
        automaton = follow(schema_grammar(schema))
    except GrammarError:
        assert not expected
        return
    assert [value for value in range(-1300, 1301) if accepts(automaton, str(value))] == expected
    assert not any(accepts(automaton, text) for text in ("00", "01", "-01", "+1", "1.0", "", "-"))


decimals = st.decimals(min_value=-30, max_value=30, allow_nan=False, places=2).map(float) | st.none()


@settings(deadline=None, max_examples=80)
@given(decimals, decimals, low_kinds, high_kinds, st.lists(st.decimals(-40, 40, places=3), max_size=30))
@example(0.05, 0.0625, "exclusiveMinimum", "maximum", [])
@example(-1.0, 1.0, "exclusiveMinimum", "exclusiveMaximum", [Decimal("0.999"), Decimal("-0.001")])
@example(1.1, 1.1, "minimum", "maximum", [Decimal("1.1"), Decimal("1.100"), Decimal("1.101")])
def test_numbers(low, high, low_kind, high_kind, samples):
    schema = {"type": "number", **bounds_of(low, high, low_kind, high_kind)}
    exact = {key: Decimal(str(value)) for key, value in schema.items() if key != "type"}
    near = [bound + step for bound in exact.values() for step in (0, Decimal("0.001"), Decimal("-0.001"))]
    try:
        automaton = follow(schema_grammar(schema))
    except GrammarError:
        assert not any(within(value, exact) for value in near + samples)
        return
    for value in near + samples:
        if value:
            assert accepts(automaton, f"{value:f}") == within(value, exact), value
    chance = random.Random(3)
    for _ in range(10):
        text = random_text(automaton, chance)
        assert within(Decimal(text.decode()), exact), text
        json.loads(text)


@pytest.mark.parametrize("text", ["0", "-0", "12.5", "1e10", "1E-5", "123456789012345", "-0.001"])
def test_numbers_without_bounds(text):
    assert accepts(schema_grammar({"type": "number"}), text)
