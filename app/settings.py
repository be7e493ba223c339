"""The settings of the app: each declared once, checked when set, saved atomically as JSON.

A field of `Settings` is its declaration: name, type, default, description and limits.  Setting a value out of
its limits raises `SettingsError`.  Reading never fails: a damaged file is set aside, an impossible value is
replaced by its default, and ``problems`` says so in sentences for the person.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import os
import tempfile
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import paths
from app.errors import FolderError
from app.settings_upgrades import VERSION, upgrade
from engine.errors import SettingsError
from engine.sampling.settings import SamplingSettings

log = logging.getLogger(__name__)


def _setting(
    default: Any, description: str, minimum: float | None = None, maximum: float | None = None
) -> Any:
    metadata = {"description": description, "minimum": minimum, "maximum": maximum}
    return field(default=default, metadata=metadata)


_OF_SAMPLING = {declared.name: declared for declared in dataclasses.fields(SamplingSettings)}


def _sampling(
    name: str, default: Any = None, *, minimum: float | None = None, maximum: float | None = None
) -> Any:
    """As the engine declares it, with closer limits or another default where they serve people better."""
    declared = _OF_SAMPLING[name]
    limits = declared.metadata
    return _setting(
        declared.default if default is None else default,
        limits["description"],
        limits["minimum"] if minimum is None else minimum,
        limits["maximum"] if maximum is None else maximum,
    )


@dataclass
class Settings:
    """Read with `load`, change by assigning to a field, write with `save`."""

    system_prompt: str = _setting("", "What the model is told before the conversation; empty: nothing.")
    temperature: float = _sampling("temperature", minimum=0, maximum=5)
    top_k: int = _sampling("top_k", minimum=0, maximum=1_000_000)
    top_p: float = _sampling("top_p")
    min_p: float = _sampling("min_p", maximum=1)
    typical_p: float = _sampling("typical_p")
    top_n_sigma: float = _sampling("top_n_sigma", maximum=100)
    xtc_probability: float = _sampling("xtc_probability")
    xtc_threshold: float = _sampling("xtc_threshold")
    dynamic_temperature_range: float = _sampling("dynamic_temperature_range", maximum=5)
    dynamic_temperature_exponent: float = _sampling("dynamic_temperature_exponent", maximum=10)
    repetition_penalty: float = _sampling("repetition_penalty", 1.1, minimum=0.1, maximum=10)
    repetition_window: int = _sampling("repetition_window", maximum=10**9)
    presence_penalty: float = _sampling("presence_penalty", minimum=-10, maximum=10)
    frequency_penalty: float = _sampling("frequency_penalty", minimum=-10, maximum=10)
    dry_multiplier: float = _sampling("dry_multiplier", maximum=10)
    dry_base: float = _sampling("dry_base", maximum=10)
    dry_allowed_length: int = _sampling("dry_allowed_length", maximum=1000)
    dry_window: int = _sampling("dry_window", maximum=10**9)
    dry_sequence_breakers: tuple[str, ...] = _sampling("dry_sequence_breakers")
    mirostat: bool = _sampling("mirostat")
    mirostat_tau: float = _sampling("mirostat_tau", maximum=20)
    mirostat_eta: float = _sampling("mirostat_eta", maximum=1)
    seed: int | None = _sampling("seed")
    max_tokens: int | None = _setting(
        None, "Longest reply in tokens; empty: until the model ends it.", 1, 10**9
    )
    context_size: int | None = _setting(
        None, "Tokens of conversation kept in memory; empty: as trained, at most 4096.", 1, 10**9
    )
    weights_in_place: bool = _setting(
        False, "Computes straight from the model file: hardly any memory for the weights, but slower."
    )
    pin_threads: bool = _setting(
        False, "Keeps each thread on a core of its own; takes effect when the program is started again."
    )
    eight_bit_context: bool = _setting(
        False, "Keeps the conversation in 8 bits: half the memory for it, a little less exact."
    )
    threads: int | None = _setting(None, "Threads that compute; empty: one for each core.", 1, 1024)
    model_folders: tuple[str, ...] = _setting((), "Folders with models, beside the model folder.")
    last_model: str = _setting("", "The model file that was loaded last.")
    window_geometry: str = _setting("", "Size and place of the window, as Qt writes them (base64).")
    side_panel_open: bool = _setting(False, "Whether the panel with these settings is shown.")

    problems: tuple[str, ...] = field(default=(), compare=False)
    _unknown: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _version: int = field(default=VERSION, repr=False, compare=False)

    def sampling(self) -> SamplingSettings:
        """What of these settings is for the sampler chain."""
        return SamplingSettings(
            **{name: getattr(self, name) for name in _OF_SAMPLING if name in DECLARATIONS}
        )

    def __setattr__(self, name: str, value: Any) -> None:
        declared = DECLARATIONS.get(name)
        super().__setattr__(name, declared.checked(value) if declared else value)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is known of one setting. kind: bool, int, float, str or tuple of str; optional: None allowed."""

    name: str
    kind: type[Any]
    optional: bool
    default: Any
    description: str
    minimum: float | None
    maximum: float | None

    def checked(self, value: Any) -> Any:
        """The value as it is kept.  Raises `SettingsError` where type or limits do not fit."""
        if value is None and self.optional:
            return None
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self.kind is tuple and isinstance(value, list):
            value = tuple(value)
        if type(value) is not self.kind or (
            self.kind is tuple and not all(isinstance(item, str) for item in value)
        ):
            raise SettingsError(f"The setting {self.name} cannot be {value!r}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingsError(f"The setting {self.name} must be a finite number.")
        if self.minimum is not None and value < self.minimum:
            raise SettingsError(f"The setting {self.name} must be at least {self.minimum}, not {value}.")
        if self.maximum is not None and value > self.maximum:
            raise SettingsError(f"The setting {self.name} must be at most {self.maximum}, not {value}.")
        return value


def _declarations() -> dict[str, Declaration]:
    hints = typing.get_type_hints(Settings)
    found = {}
    for item in dataclasses.fields(Settings):
        if not item.metadata:
            continue
        hint = hints[item.name]
        optional = isinstance(hint, types.UnionType)
        kind = typing.get_args(hint)[0] if optional else (typing.get_origin(hint) or hint)
        found[item.name] = Declaration(item.name, kind, optional, item.default, **item.metadata)
    return found


DECLARATIONS: dict[str, Declaration] = {}
DECLARATIONS.update(_declarations())


def load(path: Path | None = None) -> Settings:
    """The settings in the file, or the defaults where there is none.  Never raises."""
    path = path or paths.settings_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        return _set_aside(path, error)
    try:
        content = json.loads(text)
        version = content.pop("version")
        if type(version) is not int or version < 1:
            raise ValueError(f"version {version!r}")
        content = upgrade(content, version)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return _set_aside(path, error)
    return _from_content(content, max(version, VERSION))


def save(settings: Settings, path: Path | None = None) -> None:
    """Writes to a temporary name, then replaces the file.  Raises `FolderError`."""
    path = path or paths.settings_file()
    content = {"version": settings._version, **settings._unknown}
    content |= {name: getattr(settings, name) for name in DECLARATIONS}
    text = json.dumps(content, indent=2)  # in ASCII, since file names may hold what is no Unicode
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as file:
            temporary = file.name
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise FolderError(f"The settings could not be saved to {path}: {error.strerror}.") from error


def _from_content(content: dict[str, Any], version: int) -> Settings:
    settings = Settings()
    settings._version = version
    problems = []
    for name, value in content.items():
        if name not in DECLARATIONS:
            settings._unknown[name] = value  # a newer version's: kept for it
            continue
        try:
            setattr(settings, name, value)
        except SettingsError as error:
            problems.append(f"{error.title} Its default is used.")
    settings.problems = tuple(problems)
    return settings


def _set_aside(path: Path, error: Exception) -> Settings:
    log.warning("settings file unreadable: %r", error)
    aside = path.with_name(f"{path.stem}.damaged{path.suffix}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{path.stem}.damaged-{count}{path.suffix}")
    try:
        path.rename(aside)
        told = f"The settings file is damaged; it was set aside as {aside.name}, and the defaults are used."
    except OSError:
        told = f"The settings file {path} cannot be read; the defaults are used."
    return Settings(problems=(told,))
