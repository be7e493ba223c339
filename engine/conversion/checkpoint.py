"""A checkpoint: the folder with ``config.json`` and the weights in one or several safetensors files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.conversion.config import Config, read_json
from engine.conversion.safetensors import SafetensorsFile, SourceTensor
from engine.errors import ModelFileError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_FILES = 4096


@dataclass(frozen=True)
class Checkpoint:
    """folder, and what its ``config.json`` says.  Weights are looked at by `open_weights` only."""

    folder: Path
    config: Config

    @classmethod
    def open(cls, folder: Path) -> Checkpoint:
        """Raises `ModelFileError` where there is no such folder or its configuration cannot be read."""
        if not folder.is_dir():
            what = "is no folder" if folder.exists() else "does not exist"
            raise ModelFileError(
                f"{folder} {what}.", "Choose the folder of a checkpoint: config.json and .safetensors files."
            )
        return cls(folder, Config(read_json(folder / "config.json")))

    @contextlib.contextmanager
    def open_weights(self) -> Iterator[dict[str, SourceTensor]]:
        """All tensors by name; their files are open meanwhile.

        Raises `ModelFileError` for damaged files, for files that the index names and the folder lacks, and
        for tensors that are missing or that several files have.
        """
        names, index = self._weight_files()
        tensors: dict[str, SourceTensor] = {}
        with contextlib.ExitStack() as stack:
            for name in names:
                file = SafetensorsFile(self.folder / name)
                stack.callback(file.close)
                if twice := tensors.keys() & file.tensors.keys():
                    raise ModelFileError(
                        f"{name} and another file both have the tensor {min(twice)}.",
                        "Keep one set of weights in the folder.",
                    )
                tensors.update(file.tensors)
            for tensor, file_name in index.items():
                if tensor not in tensors or tensors[tensor].file.name != file_name:
                    raise ModelFileError(
                        f"{INDEX} says that {file_name} has the tensor {tensor}; it has not."
                    )
            yield tensors

    def _weight_files(self) -> tuple[list[str], Mapping[str, str]]:
        """Names of files in the folder, and which tensor is in which, where an index tells."""
        if (self.folder / INDEX).is_file():
            index = self._index()
            names = sorted(set(index.values()))
            missing = [name for name in names if not (self.folder / name).is_file()]
            if missing:
                raise ModelFileError(
                    f"The checkpoint lacks {len(missing)} of {len(names)} files: {', '.join(missing[:20])}.",
                    "Download them again.",
                )
            return names, index
        if (self.folder / SINGLE).is_file():
            return [SINGLE], {}
        names = sorted(path.name for path in self.folder.glob("*.safetensors"))
        if names:
            return names[:MAX_FILES], {}
        pickled = sorted(path.name for path in self.folder.glob("*.bin"))
        raise ModelFileError(
            f"{self.folder} holds no .safetensors files"
            + (f", but {pickled[0]}, whose format can run any program." if pickled else "."),
            "Choose a checkpoint in the safetensors format.",
        )

    def _index(self) -> dict[str, str]:
        weights = read_json(self.folder / INDEX).get("weight_map")
        if not isinstance(weights, dict) or not weights:
            raise ModelFileError(f"{INDEX} has no weight_map.")
        for name in set(map(str, weights.values())):
            # An index may come from anywhere: it names files beside it, nothing else.
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ModelFileError(
                    f"{INDEX} names {name[:100]!r}, which is no .safetensors file beside it."
                )
        if not all(isinstance(name, str) for name in weights.values()):
            raise ModelFileError(f"{INDEX} names files that are no texts.")
        return weights
