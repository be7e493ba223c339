"""What a person is told of an architecture that has no family."""

from __future__ import annotations

import pytest

from engine.errors import UnsupportedModelError
from engine.models.registry import FAMILIES, family_of
from engine.models.unsupported import KIN, LONGEST_NAME, nearest


def test_kin_are_families_there_are_of_architectures_there_are_not() -> None:
    assert not set(KIN) & set(FAMILIES)
    assert {family for kin in KIN.values() for family in kin} <= set(FAMILIES)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("qwen35moe", "qwen3moe"),
        ("gemma3n", "gemma3"),
        ("Gemma4", "gemma3"),
        ("granitehybrid", "granite"),
        ("minicpm", "llama"),
        ("phi4", "phi3"),
        ("qwen4", "qwen2"),
        ("olmo3", "olmo2"),
    ],
)
def test_the_nearest_are_named(architecture: str, expected: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        family_of(architecture)
    assert repr(architecture) in caught.value.title
    assert expected in caught.value.advice
    assert caught.value.advice.count(",") <= 2


def test_where_none_is_near_all_are_named() -> None:
    assert nearest("rwkv7", FAMILIES) == []
    with pytest.raises(UnsupportedModelError) as caught:
        family_of("rwkv7")
    assert all(family in caught.value.advice for family in FAMILIES)


def test_a_name_from_a_hostile_file_is_cut_and_shows_no_control_characters() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        family_of("\x1b[2J" + "x" * 10_000)
    assert "\x1b" not in caught.value.title and len(caught.value.title) < LONGEST_NAME + 60
