"""Options of loading: what they become, and that another process of the program gets the same."""

from __future__ import annotations

import argparse

import pytest

from app.commands.common import add_loading, load_settings, loading_arguments
from engine.requests import LoadSettings


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_loading(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ([], LoadSettings()),
        (["--no-repack"], LoadSettings(repack=False)),
        (["--pin"], LoadSettings(pin_threads=True)),
        (
            ["-t", "3", "-c", "77", "--backend", "fake", "--pin", "--no-repack"],
            LoadSettings(77, 3, "fake", repack=False, pin_threads=True),
        ),
    ],
)
def test_options_become_settings(arguments: list[str], settings: LoadSettings) -> None:
    options = parsed(arguments)
    assert load_settings(options) == settings
    assert load_settings(parsed(loading_arguments(options))) == settings
