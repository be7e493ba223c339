"""The models on this disk: files of the model folder and of folders the person added, used in place.

A model in several files stands there once, with their size together.

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
from app.library.model_facts import Memory, ModelFacts, TemplateFacts, read_facts
from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.parts import read_part_name
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

    def facts_of(files: list[Path]) -> ModelFacts | None:
        try:
            status = [path.stat() for path in files]
        except OSError:
            return None  # vanished meanwhile
        marks = [f"{each.st_mtime_ns}|{each.st_size}" for each in status]
        key = "|".join([str(files[0]), *marks, str(settings)])
        facts = _from_json(files[0], known.get(key))
        if facts is None:
            facts = _read(files[0], sum(each.st_size for each in status), settings)
        seen[key] = _to_json(facts)
        return facts

    for files in _models(folders):
        facts = facts_of(files)
        if facts is not None:
            yield facts
        if facts is not None and len(files) > len(facts.files) == 1 and not facts.problem:
            # They are called parts of one model, but each is a model of its own.
            yield from filter(None, (facts_of([path]) for path in files[1:]))
    if not seen.keys() <= known.keys():
        _save_cache(known | seen)


def _read(path: Path, size: int, settings: LoadSettings) -> ModelFacts:
    try:
        return read_facts(path, settings)[0]
    except (ModelFileError, UnsupportedModelError) as error:
        return ModelFacts(path, size, problem=error.title, advice=error.advice)


def _models(folders: Iterable[Path]) -> Iterator[list[Path]]:
    """The files of each model: one, or all that are called parts of one model, in order."""
    waiting: dict[tuple[Path, int], list[Path]] = {}
    for path in _model_files(folders):
        name = read_part_name(path)
        if name is None:
            yield [path]
        else:
            whole, _, n_parts = name
            waiting.setdefault((whole, n_parts), []).append(path)
    yield from waiting.values()


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
        template = content["template"]
        parts = {
            "memory": content["memory"] and Memory(**content["memory"]),
            "template": template and TemplateFacts(**{**template, "names": tuple(template["names"])}),
            "files": tuple(content["files"]),
            "notices": tuple(content["notices"]),
        }
        return ModelFacts(path, **{**content, **parts})
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
