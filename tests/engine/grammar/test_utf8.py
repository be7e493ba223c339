"""Byte ranges against Python's own UTF-8."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.grammar.expressions import LAST_CODE_POINT, SURROGATES
from engine.grammar.utf8 import byte_ranges

BORDERS = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, LAST_CODE_POINT]
code_points = st.one_of(st.sampled_from(BORDERS), st.integers(0, LAST_CODE_POINT))


def described(forms, raw):
    return sum(
        len(form) == len(raw)
        and all(low <= byte <= high for (low, high), byte in zip(form, raw, strict=True))
        for form in forms
    )


@given(code_points, code_points, st.lists(code_points, max_size=30))
@example(0, LAST_CODE_POINT, BORDERS)
def test_each_character_of_the_range_has_one_form(a, b, others):
    first, last = min(a, b), max(a, b)
    forms = list(byte_ranges(first, last))
    for code in {*others, first, last, max(0, first - 1), min(LAST_CODE_POINT, last + 1)}:
        if not SURROGATES[0] <= code <= SURROGATES[1]:
            assert described(forms, chr(code).encode()) == (first <= code <= last), hex(code)


def test_every_character_once():
    forms = list(byte_ranges(0, LAST_CODE_POINT))
    count = 0
    for form in forms:
        n = 1
        for low, high in form:
            n *= high - low + 1
        count += n
    assert count == LAST_CODE_POINT + 1 - (SURROGATES[1] - SURROGATES[0] + 1)
    assert len(forms) < 12, "few steps are enough for any character"


@pytest.mark.parametrize("raw", [b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"])
def test_what_is_no_utf8_is_not_described(raw):
    assert not described(list(byte_ranges(0, LAST_CODE_POINT)), raw)
