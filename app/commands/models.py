"""The models on this disk, and those that can be fetched by name."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from app import paths, settings
from app.commands.common import add_json, print_json
from app.commands.facts import as_json
from app.library.known_models import known_models
from app.library.local_models import list_models
from app.library.model_facts import ModelFacts
from app.terminal import one_line, tell
from engine.memory import free_memory, readable_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="look here too, beside the model folder"
    )


def run(options: argparse.Namespace) -> int:
    kept = settings.load()
    for problem in kept.problems:
        tell(f"note: {problem}")
    for folder in options.folders:
        if not os.path.isdir(folder):
            tell(f"note: {folder} is no folder")
    local = list_models([*map(Path, kept.model_folders), *options.folders])
    known = known_models()
    here = {facts.path.name for facts in local if facts.path.parent == paths.models_folder()}
    if options.json:
        fetchable = [
            {
                "name": model.name,
                "title": model.title,
                "file": model.file_name,
                "bytes": model.size,
                "licence": model.licence,
                "here": model.file_name in here,
            }
            for model in known
        ]
        print_json({"local": [as_json(facts) for facts in local], "known": fetchable})
        return 0
    free = readable_bytes(free_memory())
    print(f"On this disk ({paths.models_folder()}):")
    for facts in local:
        print("  " + _line(facts, free))
    if not local:
        print("  none yet")
    print("\nKnown by name:")
    for model in known:
        state = "is here" if model.file_name in here else f"`causerie get {model.name}` fetches it"
        print(f"  {model.name}: {model.title}, {readable_bytes(model.size)}, {model.licence}; {state}")
    return 0


def _line(facts: ModelFacts, free: str) -> str:
    title = one_line(facts.name or facts.path.name)
    if facts.memory is None:
        return f"{title}  cannot run: {one_line(facts.problem)}  {facts.path}"
    needs = f"needs {readable_bytes(facts.memory.total)}, {free} free"
    parts = [title, facts.family, readable_bytes(facts.file_bytes), facts.main_type, needs, str(facts.path)]
    return "  ".join(map(one_line, parts))
