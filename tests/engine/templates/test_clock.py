"""`strftime_now` against the C library's own `strftime` in its C locale, and in no other."""

from __future__ import annotations

import locale
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.templates.clock import MAX_FORMAT, format_time

MOMENT = datetime(2024, 7, 26, 9, 5)
C_DIRECTIVES = "aAbBcdDeFhHIjmMnpRStTuwxXyY%"


@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31)),
    st.text(C_DIRECTIVES, min_size=1, max_size=5),
)
def test_as_in_the_c_locale(moment: datetime, letters: str) -> None:
    assert locale.setlocale(locale.LC_TIME) in ("C", "POSIX", "en_US.UTF-8", "C.UTF-8")
    pattern = "|".join(f"%{letter}" for letter in letters)
    assert format_time(moment, pattern) == moment.strftime(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%d %b %Y", "26 Jul 2024"),
        ("%Y-%m-%d %H:%M:%S", "2024-07-26 09:05:00"),
        ("%A, %B %d", "Friday, July 26"),
        ("%-d.%-m. %-H:%-M %-I", "26.7. 9:5 9"),
        ("", ""),
        ("%", "%"),
        ("%%d", "%d"),
        ("%Q %é %", "%Q %é %"),
        ("%z%Z", ""),
        ("🤗 %Y\x00\ud800", "🤗 2024\x00\ud800"),
    ],
)
def test_formats(pattern: str, text: str) -> None:
    assert format_time(MOMENT, pattern) == text


def test_the_time_zone() -> None:
    assert format_time(MOMENT.replace(tzinfo=UTC), "%z %Z") == "+0000 UTC"


def test_a_format_without_end_is_cut() -> None:
    assert len(format_time(MOMENT, "%Y" * 10**6)) == 4 * MAX_FORMAT // 2


def test_english_whatever_the_locale_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = locale.setlocale(locale.LC_TIME)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "ja_JP.UTF-8"):
        try:
            locale.setlocale(locale.LC_TIME, name)
        except locale.Error:
            continue
        try:
            assert format_time(MOMENT, "%A %d %B, %a %b") == "Friday 26 July, Fri Jul"
        finally:
            locale.setlocale(locale.LC_TIME, before)
