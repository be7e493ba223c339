"""The page of models is what its tool makes of the registries, and has every entry."""

from __future__ import annotations

import pytest

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.models.registry import FAMILIES
from engine.tokenizers.outline import KINDS
from tools import make_models_page
from tools.make_models_page import PAGE, page, rounded, table


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make it again: python -m tools.make_models_page"


def test_everything_is_there() -> None:
    content = page()
    for name in (*FAMILIES, *KINDS):
        assert f"| `{name}` |" in content
    for name in TENSOR_TYPES:
        assert f"| {name} |" in content
    rows = [line for line in content.splitlines() if line.startswith("|")]
    tables = "\n".join("" if not line.startswith("|") else line for line in content.splitlines()).split(
        "\n\n"
    )
    assert len(rows) > 100
    for part in filter(None, (part.strip() for part in tables)):
        widths = {line.replace("\\|", "").count("|") for line in part.splitlines()}
        assert len(widths) == 1, part.splitlines()[0]


def test_every_family_was_checked_and_can_be_converted() -> None:
    lines = [line for line in page().splitlines() if line.startswith("| `")][: len(FAMILIES)]
    assert [line for line in lines if "none" in line] == []


def test_the_page_follows_the_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_models_page, "KINDS", {**KINDS, "novel": "something new"})
    assert "| `novel` | something new |" in page()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (4.5e-07, "5e-7"), (0.0031, "4e-3"), (9.5e-5, "1e-4"), (3e-6, "3e-6"), (1.6, "2e0")],
)
def test_rounding_up(value: float, text: str) -> None:
    assert rounded(value) == text


def test_tables() -> None:
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
