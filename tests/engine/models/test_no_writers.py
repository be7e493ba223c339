"""Models that write no replies are refused as what they are."""

from __future__ import annotations

import pytest

from engine.errors import UnsupportedModelError
from engine.models.no_writers import ENCODERS, OTHERS
from engine.models.registry import FAMILIES, family_of


@pytest.mark.parametrize("architecture", sorted(ENCODERS))
def test_encoders_are_refused_by_name(architecture: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        family_of(architecture)
    assert repr(architecture) in caught.value.title
    assert "is an encoder" in caught.value.title
    assert "chat" in caught.value.advice


@pytest.mark.parametrize("architecture", sorted(OTHERS))
def test_other_kinds_are_refused_by_name(architecture: str) -> None:
    with pytest.raises(UnsupportedModelError, match=repr(architecture)):
        family_of(architecture)


def test_the_part_that_sees_sends_to_the_other_file() -> None:
    with pytest.raises(UnsupportedModelError, match="mmproj"):
        family_of("clip")


def test_no_supported_family_is_among_them() -> None:
    assert not FAMILIES.keys() & (ENCODERS | OTHERS.keys())
