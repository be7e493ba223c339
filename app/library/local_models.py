"""The models on this disk: files of the model folder and of folders the person added, used in place.

Reading a header takes some hundredths of a second, so what was read is remembered by path, time of change
and size: a folder of many models is listed at once the next time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import app
from app import paths
from app.library.model_facts import Memory, ModelFacts, read_facts
from engine.errors import ModelFileError, UnsupportedModelError
from engine.requests import LoadSettings

log = logging.getLogger(__name__)

MAX_FILES = 2000
"""A folder such as a whole disk is not searched for ever."""
MAX_DEPTH = 5

DEFAULT_SETTINGS = LoadSettings()


def list_models(
    extra_folders: Iterable[Path] = (), settings: LoadSettings = DEFAULT_SETTINGS
) -> list[ModelFacts]:
    """Every model file of the model folder and the extra ones, by name; damaged ones say so in ``problem``.

    settings: for which the memory needed is estimated.
    """
    found = scan([paths.models_folder(), *extra_folders], settings)
    return sorted(found, key=lambda facts: ((facts.name or facts.path.name).casefold(), str(facts.path)))


def scan(folders: Iterable[Path], settings: LoadSettings = DEFAULT_SETTINGS) -> Iterator[ModelFacts]:
    """The same one by one, in the order they are found; for a list that fills while it is read."""
    known = _load_cache()
    seen: dict[str, Any] = {}
    for path in _model_files(folders):
        try:
            status = path.stat()
        except OSError:
            continue  # vanished meanwhile
        key = f"{path}|{status.st_mtime_ns}|{status.st_size}|{settings}"
        facts = _from_json(path, known.get(key))
        if facts is None:
            facts = _read(path, status.st_size, settings)
        seen[key] = _to_json(facts)
        yield facts
    if not seen.keys() <= known.keys():
        _save_cache(known | seen)


def _read(path: Path, size: int, settings: LoadSettings) -> ModelFacts:
    try:
        return read_facts(path, settings)[0]
    except (ModelFileError, UnsupportedModelError) as error:
        return ModelFacts(path, size, problem=error.title, advice=error.advice)


def _model_files(folders: Iterable[Path]) -> Iterator[Path]:
    """Each .gguf file once, whatever way leads to it."""
    seen: set[Path] = set()
    for folder in folders:
        base = len(folder.parts)
        for root, subfolders, names in os.walk(folder):
            deep = len(Path(root).parts) - base >= MAX_DEPTH
            subfolders[:] = [] if deep else sorted(name for name in subfolders if not name.startswith("."))
            for name in sorted(names):
                path = Path(root, name)
                if path.suffix.lower() != ".gguf" or name.startswith("."):
                    continue
                with contextlib.suppress(OSError, RuntimeError):  # a circle of links
                    real = path.resolve()
                    if real not in seen:
                        seen.add(real)
                        yield path
                if len(seen) >= MAX_FILES:
                    log.warning("more than %d model files: the rest is not listed", MAX_FILES)
                    return


def _cache_file() -> Path:
    return paths.cache_folder() / "models.json"


def _to_json(facts: ModelFacts) -> dict[str, Any]:
    content = dataclasses.asdict(facts)
    del content["path"]
    return content


def _from_json(path: Path, content: Any) -> ModelFacts | None:
    """None where there is nothing, or something that this version did not write."""
    try:
        memory = content["memory"] and Memory(**content["memory"])
        return ModelFacts(path, **{**content, "memory": memory})
    except (TypeError, KeyError):
        return None


def _load_cache() -> dict[str, Any]:
    try:
        content = json.loads(_cache_file().read_text(encoding="utf-8"))
        models = content["models"] if content["version"] == app.__version__ else {}
        return models if isinstance(models, dict) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _save_cache(models: dict[str, Any]) -> None:
    """Keeps the last entries; a cache that cannot be written costs time only, so nobody is told."""
    recent = dict(list(models.items())[-MAX_FILES:])
    try:
        _cache_file().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=_cache_file().parent, delete=False
        ) as file:
            json.dump({"version": app.__version__, "models": recent}, file)
        os.replace(file.name, _cache_file())
    except OSError as error:
        log.warning("the list of models could not be remembered: %r", error)
