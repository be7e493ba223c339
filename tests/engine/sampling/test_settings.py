"""Sampling settings: each declared with its limits, and refused by name outside of them."""

import dataclasses
import math
import subprocess
import sys

import pytest

from engine.errors import SettingsError
from engine.sampling.settings import SamplingSettings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", math.inf),
        ("top_p", -0.1),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("typical_p", 2),
        ("top_n_sigma", -1),
        ("xtc_probability", 1.5),
        ("xtc_threshold", -1),
        ("dynamic_temperature_range", -1),
        ("dynamic_temperature_exponent", -1),
        ("repetition_penalty", 0),
        ("repetition_penalty", -1),
        ("repetition_window", -2),
        ("dry_multiplier", -1),
        ("dry_base", 0.5),
        ("dry_allowed_length", 0),
        ("dry_window", -2),
        ("mirostat_tau", -1),
        ("mirostat_eta", -1),
        ("seed", -1),
        ("seed", 2**64),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(SettingsError, match=name):
        SamplingSettings(**{name: value})


NUMBERS = [item.name for item in dataclasses.fields(SamplingSettings) if type(item.default) is float]


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number_is_refused(name):
    with pytest.raises(SettingsError, match=name):
        SamplingSettings(**{name: math.nan})


def test_a_bias_that_is_no_number_is_refused():
    with pytest.raises(SettingsError):
        SamplingSettings(logit_bias={1: math.nan})


def test_every_setting_has_a_description():
    described = [
        item.name for item in dataclasses.fields(SamplingSettings) if item.metadata.get("description")
    ]
    assert set(described) == {item.name for item in dataclasses.fields(SamplingSettings)} - {
        "logit_bias",
        "banned_tokens",
    }


def test_settings_are_known_without_numpy():
    """The window is up before NumPy is loaded."""
    program = "import sys, engine.requests; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
