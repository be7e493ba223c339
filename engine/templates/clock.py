"""`strftime` with English names in any locale, the same on all systems: models were trained on those."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

MAX_FORMAT = 1_000

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_COMPOSED = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
}

_FIELDS: dict[str, Callable[[datetime], str]] = {
    "A": lambda time: _DAYS[time.weekday()],
    "a": lambda time: _DAYS[time.weekday()][:3],
    "B": lambda time: _MONTHS[time.month - 1],
    "b": lambda time: _MONTHS[time.month - 1][:3],
    "h": lambda time: _MONTHS[time.month - 1][:3],
    "d": lambda time: f"{time.day:02}",
    "e": lambda time: f"{time.day:2}",
    "f": lambda time: f"{time.microsecond:06}",
    "H": lambda time: f"{time.hour:02}",
    "I": lambda time: f"{(time.hour - 1) % 12 + 1:02}",
    "j": lambda time: f"{time.timetuple().tm_yday:03}",
    "M": lambda time: f"{time.minute:02}",
    "m": lambda time: f"{time.month:02}",
    "n": lambda time: "\n",
    "p": lambda time: "AM" if time.hour < 12 else "PM",
    "S": lambda time: f"{time.second:02}",
    "t": lambda time: "\t",
    "u": lambda time: str(time.isoweekday()),
    "w": lambda time: str(time.isoweekday() % 7),
    "Y": lambda time: f"{time.year:04}",
    "y": lambda time: f"{time.year % 100:02}",
    "Z": lambda time: time.tzname() or "",
    "z": lambda time: time.strftime("%z"),
    "%": lambda time: "%",
}
_DIRECTIVE = re.compile(r"%(-?)([A-Za-z%])")


def format_time(time: datetime, pattern: str) -> str:
    """time by a `strftime` pattern; "%-d" leaves leading zeros out; what is no directive stays as it is."""

    def replace(match: re.Match[str]) -> str:
        unpadded, letter = match.groups()
        if letter in _COMPOSED:
            return format_time(time, _COMPOSED[letter])
        if letter not in _FIELDS:
            return match[0]
        text = _FIELDS[letter](time)
        return text.lstrip("0 ") or "0" if unpadded else text

    return _DIRECTIVE.sub(replace, pattern[:MAX_FORMAT])
