"""Highlighting never changes the code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text import highlight as module
from app.text.highlight import LANGUAGES, highlight


def test_roles_of_python() -> None:
    pieces = highlight('def f(x):\n    return "a" + 1  # why', "python")
    roles = {text.strip(): role for text, role in pieces if text.strip()}
    assert roles["def"] == "keyword"
    assert roles["f"] == "name"
    assert roles['"a"'] == "string"
    assert roles["1"] == "number"
    assert roles["# why"] == "comment"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_is_known_and_keeps_the_code(language: str) -> None:
    from pygments.lexers import get_lexer_by_name

    get_lexer_by_name(language)  # raises where it is unknown
    code = "\n\n  if x { return 'a'; } // <b>\t\n# end \n\n"
    assert "".join(text for text, _ in highlight(code, language)) == code


@settings(max_examples=100, deadline=None)
@given(st.text(), st.sampled_from(["python", "html", "bash", "json", "c++", "unknown", ""]))
def test_any_code_is_kept(code: str, language: str) -> None:
    assert "".join(text for text, _ in highlight(code, language)) == code


def test_unknown_languages_and_long_code_stay_plain() -> None:
    assert highlight("x = 1", "no-such-language") == [("x = 1", "plain")]
    long = "x = 1\n" * 20_000
    assert highlight(long, "python") == [(long, "plain")]


def test_code_that_takes_long_goes_on_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 0.0)
    code = "def f():\n    return 1\n" * 50
    pieces = highlight(code, "python")
    assert "".join(text for text, _ in pieces) == code
    assert len(pieces) <= 3
