"""Settings: checked when set, saved whole or not at all, and read whatever the file holds."""

import dataclasses
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import paths, settings
from app.errors import FolderError
from engine.errors import SettingsError
from engine.requests import LoadSettings, SamplingSettings


def test_what_is_saved_is_read_again():
    kept = settings.load()
    assert kept == settings.Settings() and kept.problems == ()
    kept.temperature, kept.threads, kept.system_prompt = 1, 4, "Füße 👣\n"
    kept.model_folders = ("/somewhere/models", "odd\udcffname")
    settings.save(kept)
    assert settings.load() == kept
    assert settings.load().temperature == 1.0 and isinstance(settings.load().temperature, float)


def test_every_setting_is_described_and_its_default_is_allowed():
    for declaration in settings.DECLARATIONS.values():
        assert declaration.description.endswith(".")
        assert declaration.checked(declaration.default) == declaration.default


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_p", 1.5),
        ("threads", 0),
        ("threads", 2.0),
        ("context_size", -1),
        ("seed", 2**64),
        ("system_prompt", None),
        ("model_folders", ["a", 1]),
        ("side_panel_open", 1),
    ],
)
def test_values_out_of_their_limits_are_refused_by_name(name, value):
    kept = settings.Settings()
    with pytest.raises(SettingsError, match=name):
        setattr(kept, name, value)
    assert kept == settings.Settings()


def test_limits_are_no_wider_than_the_engine_allows():
    low, high = {}, {}
    numbers = [
        declared.name
        for declared in dataclasses.fields(SamplingSettings)
        if declared.name in settings.DECLARATIONS and settings.DECLARATIONS[declared.name].maximum is not None
    ]
    assert len(numbers) > 20
    for name in numbers:
        low[name], high[name] = settings.DECLARATIONS[name].minimum, settings.DECLARATIONS[name].maximum
    SamplingSettings(**low)
    SamplingSettings(**high)
    changed = settings.Settings(dry_multiplier=0.8, seed=3)
    assert changed.sampling() == SamplingSettings(dry_multiplier=0.8, seed=3, repetition_penalty=1.1)
    for name in ("threads", "context_size"):
        LoadSettings(**{name: settings.DECLARATIONS[name].minimum})
        LoadSettings(**{name: settings.DECLARATIONS[name].maximum})


def write(text: str | bytes) -> None:
    paths.config_folder().mkdir(parents=True, exist_ok=True)
    paths.settings_file().write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{}",
        '{"version": "1"}',
        '{"version": 0}',
        '{"version": true}',
        b"\xff\xfe\x00",
        "[" * 100_000,
    ],
    ids=range(11),
)
def test_a_damaged_file_is_set_aside_and_told(damaged):
    write(damaged)
    kept = settings.load()
    assert kept == settings.Settings()
    assert "settings.damaged.json" in kept.problems[0]
    assert not paths.settings_file().exists()
    aside = paths.config_folder() / "settings.damaged.json"
    assert aside.read_bytes() == (damaged.encode() if isinstance(damaged, str) else damaged)


def test_an_earlier_damaged_file_is_not_overwritten():
    for number in range(3):
        write(f"broken {number}")
        settings.load()
    kept = {path.read_text() for path in paths.config_folder().iterdir()}
    assert kept == {"broken 0", "broken 1", "broken 2"}


def test_an_impossible_value_costs_that_value_only():
    write(json.dumps({"version": 1, "temperature": 99, "top_k": 7, "threads": "many"}))
    kept = settings.load()
    assert (kept.temperature, kept.top_k, kept.threads) == (0.7, 7, None)
    assert len(kept.problems) == 2 and any("temperature" in problem for problem in kept.problems)


def test_what_a_newer_version_wrote_is_kept():
    write(json.dumps({"version": 1000, "top_k": 7, "colour_of_the_sky": ["blue"]}))
    kept = settings.load()
    assert kept.top_k == 7 and kept.problems == ()
    settings.save(kept)
    content = json.loads(paths.settings_file().read_text())
    assert content["version"] == 1000 and content["colour_of_the_sky"] == ["blue"]


def test_a_failing_save_leaves_the_old_file_and_no_other(monkeypatch):
    settings.save(settings.Settings(top_k=5))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FolderError, match="No space left"):
        settings.save(settings.Settings(top_k=6))
    assert settings.load().top_k == 5
    assert [path.name for path in paths.config_folder().iterdir()] == ["settings.json"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*settings.DECLARATIONS, "problems", "_version", "x"]), json_values))
def test_reading_never_fails_and_gives_only_allowed_values(content):
    write(json.dumps({"version": 1, **content}))
    kept = settings.load()
    for name, declaration in settings.DECLARATIONS.items():
        value = getattr(kept, name)
        assert declaration.checked(value) == value
