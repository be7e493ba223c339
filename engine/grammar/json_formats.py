"""The values of JSON Schema's `format`, as patterns that describe some, though not all, texts of the format.

So what is written always fits: no 29th of February (it would need the year), no time in leap seconds, no
e-mail address with comments.
"""

from __future__ import annotations

from collections.abc import Mapping

_MONTH_AND_DAY = (
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = f"[12][0-9]{{3}}-{_MONTH_AND_DAY}"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL = "[a-z]([a-z0-9]{0,30}|[a-z0-9]{0,15}-[a-z0-9]{1,15})"
_HOST = f"{_LABEL}(\\.{_LABEL}){{1,4}}"

PATTERNS: Mapping[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": "P[1-9][0-9]{0,3}(D|W|M|Y)",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "ipv4": f"{_BYTE}(\\.{_BYTE}){{3}}",
    "hostname": _HOST,
    "email": f"[a-z0-9]{{1,30}}([._-][a-z0-9]{{1,30}}){{0,3}}@{_HOST}",
    "uri": f"https?://{_HOST}(/[A-Za-z0-9._~-]{{0,60}}){{0,8}}",
}
