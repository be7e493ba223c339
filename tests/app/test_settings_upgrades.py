"""Upgrades of the settings file run in order; each that exists has a test here."""

import pytest

from app import settings_upgrades
from app.settings_upgrades import UPGRADES, VERSION, upgrade


def test_steps_are_taken_in_order_from_the_version_of_the_file():
    steps = {
        1: lambda content: {"trail": [*content["trail"], "1 to 2"]},
        2: lambda content: {"trail": [*content["trail"], "2 to 3"]},
    }
    assert upgrade({"trail": []}, 1, 3, steps) == {"trail": ["1 to 2", "2 to 3"]}
    assert upgrade({"trail": []}, 2, 3, steps) == {"trail": ["2 to 3"]}
    assert upgrade({"trail": []}, 3, 3, steps) == {"trail": []}
    assert upgrade({"trail": []}, 9, 3, steps) == {"trail": []}


def test_a_gap_in_the_steps_does_not_pass_silently():
    with pytest.raises(KeyError):
        upgrade({}, 1, 3, {1: dict})


def test_every_version_before_this_one_has_an_upgrade_and_every_upgrade_a_test():
    assert sorted(UPGRADES) == list(range(1, VERSION))
    for version in UPGRADES:
        assert f"test_upgrade_from_{version}" in globals(), "write a test for the upgrade"
    assert settings_upgrades.__doc__ and "test" in settings_upgrades.__doc__
