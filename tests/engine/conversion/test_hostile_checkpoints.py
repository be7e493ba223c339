"""Checkpoints of every family with one thing wrong: a value of the configuration, or the shape of a tensor.

Only a typed error or a model file that loads may come out, and an error leaves no file behind.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.conversion import convert_checkpoint
from engine.errors import CauserieError
from engine.gguf.reader import GGUFFile
from engine.inspection import outline
from engine.requests import LoadSettings
from tests.helpers.checkpoints import Arrays, changed_checkpoint, read_safetensors
from tests.helpers.family_fixtures import FOLDER, NAMES

VALUES: tuple[Any, ...] = (None, 0, 1, 3, -1, 2**31, 2**70, 0.5, "x", True, [], [1], {}, {"x": 1}, "")
N_TENSORS = 6


def require_error_or_model(folder: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        convert_checkpoint(folder, target, "f32", vocabulary=False)
    except CauserieError as error:
        assert error.title and error.advice
        assert not target.exists()
    else:
        with GGUFFile.open(target) as file:
            outline(file, LoadSettings(context_size=64))


@pytest.mark.parametrize("name", NAMES)
def test_values_of_the_configuration(name: str, tmp_path: Path) -> None:
    config = json.loads((FOLDER / name / "config.json").read_text(encoding="utf-8"))
    folder = changed_checkpoint(name, tmp_path / "changed")
    generator = np.random.default_rng(len(name))
    for key in sorted(config):
        for index in generator.choice(len(VALUES), 2, replace=False):
            changed = {k: v for k, v in (config | {key: VALUES[index]}).items() if v is not None}
            (folder / "config.json").write_text(json.dumps(changed), encoding="utf-8")
            require_error_or_model(folder, tmp_path / "out.gguf")


@pytest.mark.parametrize("name", NAMES)
def test_shapes_of_tensors(name: str, tmp_path: Path) -> None:
    names = sorted(read_safetensors(FOLDER / name))
    generator = np.random.default_rng(len(name))
    for tensor in generator.choice(names, min(N_TENSORS, len(names)), replace=False):
        for change in (
            lambda a: a.T,
            np.ravel,
            lambda a: a[: len(a) // 2],
            lambda a: a[None],
            lambda a: a[:0],
        ):

            def apply(arrays: Arrays, tensor: str = str(tensor), change: Any = change) -> Arrays:
                return {**arrays, tensor: change(arrays[tensor])}

            folder = changed_checkpoint(name, tmp_path / "changed", tensors=apply)
            require_error_or_model(folder, tmp_path / "out.gguf")
