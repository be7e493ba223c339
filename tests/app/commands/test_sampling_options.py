"""Options of sampling: each becomes its setting, and without any they are the engine's own."""

from __future__ import annotations

import argparse

import pytest

from app.commands.sampling_options import OPTIONS, add_sampling, sampling_settings
from engine.errors import SettingsError
from engine.sampling.settings import SamplingSettings


def settings(*arguments: str) -> SamplingSettings:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_sampling(parser)
    return sampling_settings(parser.parse_args(arguments))


def test_without_options_the_defaults_of_the_engine() -> None:
    assert settings() == SamplingSettings()


@pytest.mark.parametrize(("option", "name"), OPTIONS.items())
def test_every_option_becomes_its_setting(option: str, name: str) -> None:
    value = getattr(SamplingSettings(), name)
    other = 7 if isinstance(value, int) else 1.0 if value != 1.0 else 0.5
    if name == "dry_base":
        other = 2.5
    assert settings(option, str(other)) == SamplingSettings(**{name: other})


def test_options_that_take_no_single_number() -> None:
    assert settings("--mirostat").mirostat
    assert settings("--seed", "5").seed == 5
    assert settings("--dry-breaker", "a", "--dry-breaker", "b").dry_sequence_breakers == ("a", "b")
    assert settings("--ban", "3", "--ban", "4").banned_tokens == {3, 4}
    assert settings("--logit-bias", "3=-1.5", "--logit-bias", "4=inf").logit_bias == {
        3: -1.5,
        4: float("inf"),
    }


@pytest.mark.parametrize("text", ["x", "3", "3=", "=1", "3=x", "3.5=1", ""])
def test_biases_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="bias"):
        settings("--logit-bias", text)


def test_the_help_can_be_printed() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_sampling(parser)
    text = " ".join(parser.format_help().split())
    assert "always the likeliest" in text and "(default 0.7)" in text
