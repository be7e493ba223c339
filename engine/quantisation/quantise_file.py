"""A model file in another mixture of types: `quantise_file`.

The order is the promise: whatever can be refused (the family, missing tensors, weights that are quantised
already, a full disk) is refused before anything is written; tensors are streamed, so that a model larger than
the memory is no problem; and the finished file takes its name only when whole.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelWriteError, SettingsError, UnsupportedModelError
from engine.gguf.file_types import FILE_TYPE_KEY, FILE_TYPES
from engine.gguf.layout import SPLIT_KEYS
from engine.gguf.metadata import Metadata, MetadataValue, ValueType
from engine.gguf.reader import GGUFFile
from engine.gguf.values import number
from engine.gguf.writer import Progress, gguf_bytes, write_gguf
from engine.inspection import outline
from engine.memory import readable_bytes, usable_cores
from engine.quantisation.choosing_types import ChosenType, choose_types, copied
from engine.quantisation.mixtures import FILE_TYPE_NUMBERS, MIXTURES, ModelShape
from engine.quantisation.quantise import QUANTISERS
from engine.quantisation.quantised_stream import quantised_stream
from engine.requests import LoadSettings

VERSION_KEY = "general.quantization_version"
QUANTISATION_VERSION = 2
"""Of the layouts of blocks, since the types exist in their present form."""


@dataclass(frozen=True, slots=True)
class QuantisedTensor:
    """One tensor before and after; wanted: the type it would have got if its rows allowed it."""

    name: str
    shape: tuple[int, ...]
    before: str
    after: str
    wanted: str
    nbytes: int

    @property
    def n_weights(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def is_fallback(self) -> bool:
        return self.wanted != self.after


@dataclass(frozen=True, slots=True)
class Quantisation:
    """What was written, or with dry_run would be.  source_bytes: of all parts together; sizes in bytes.

    already: the source has this mixture, and every tensor is copied.
    """

    path: Path
    mixture: str
    source_bytes: int
    file_bytes: int
    tensors: tuple[QuantisedTensor, ...]
    already: bool

    @property
    def n_weights(self) -> int:
        return sum(tensor.n_weights for tensor in self.tensors)

    @property
    def types(self) -> dict[str, int]:
        """Type -> bytes."""
        types: Counter[str] = Counter()
        for tensor in self.tensors:
            types[tensor.after] += tensor.nbytes
        return dict(types.most_common())

    @property
    def bits_per_weight(self) -> float:
        """Of all weights, with the scales that they share."""
        return 8 * sum(tensor.nbytes for tensor in self.tensors) / self.n_weights

    @property
    def fallbacks(self) -> tuple[QuantisedTensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.is_fallback)

    @property
    def fallback_share(self) -> float:
        """Of all weights, those in tensors whose rows allow another type only: 0 to 1."""
        return sum(tensor.n_weights for tensor in self.fallbacks) / self.n_weights


def quantise_file(
    source: Path,
    target: Path,
    mixture: str,
    *,
    output_type: str | None = None,
    embedding_type: str | None = None,
    requantise: bool = False,
    replace: bool = True,
    dry_run: bool = False,
    threads: int | None = None,
    on_progress: Progress = lambda share: None,
) -> Quantisation:
    """Writes the model of source (any part of it) to target, as one file.

    mixture: a name in MIXTURES.  output_type, embedding_type: tensor types in place of the mixture's.
    requantise: allows weights that are quantised already; they lose more than from the original.
    replace: whether target may be there already.  dry_run: only tells what would be written, to the byte.
    threads: None for the cores there are.  on_progress: called with the share written, 0 to 1; what it raises
    ends the work, and nothing is left of it.

    Raises `SettingsError` for names and numbers out of range, `ModelFileError` for a damaged source or
    weights that are no numbers or do not fit, `UnsupportedModelError` for a family that is not supported or
    a source that is quantised already, `ModelWriteError` where target is the source or cannot be written.
    """
    _require_names(mixture, output_type, embedding_type)
    settings = LoadSettings(threads=threads)
    with GGUFFile.open(source) as file:
        _require_other_file(target, file)
        shape = _shape_of(file, settings)
        choices = choose_types(
            file.tensors, mixture, shape, output_type=output_type, embedding_type=embedding_type
        )
        called = _mixture_of(file.metadata)
        # A mixture of that name by another program, perhaps an older one: rounding again would gain nothing.
        named_so = called == mixture and not (output_type or embedding_type) and _any_again(choices)
        already = named_so or all(choice.is_copied for choice in choices)
        if already:
            choices = [copied(tensor) for tensor in file.tensors.values()]
        if not requantise:
            _refuse_quantised(file, choices)
        values = {key: value for key, value in file.metadata.values.items() if key not in SPLIT_KEYS}
        if called != mixture or not already:
            values |= _types_metadata(mixture)
        streams = [quantised_stream(choice, settings.threads or usable_cores()) for choice in choices]
        size = gguf_bytes(values, streams)
        if not dry_run:
            _require_place(target, size, replace)
            write_gguf(target, values, streams, version=file.version, on_progress=on_progress)
        return Quantisation(target, mixture, file.size, size, _told(choices), already)


def _told(choices: Sequence[ChosenType]) -> tuple[QuantisedTensor, ...]:
    return tuple(
        QuantisedTensor(
            choice.tensor.name,
            choice.tensor.shape,
            choice.tensor.type.name,
            choice.type.name,
            choice.wanted,
            choice.nbytes,
        )
        for choice in choices
    )


def _require_names(mixture: str, *types: str | None) -> None:
    if mixture not in MIXTURES:
        raise SettingsError(f"There is no mixture of types {mixture!r}.", f"Choose {', '.join(MIXTURES)}.")
    for name in types:
        if name is not None and name not in QUANTISERS:
            raise SettingsError(f"Weights cannot be written as {name!r}.", f"Choose {', '.join(QUANTISERS)}.")


def _require_other_file(target: Path, file: GGUFFile) -> None:
    """Also where target is a link to a file that is read: replacing it would surprise."""
    for path in file.paths:
        try:
            same = os.path.samefile(target, path)
        except OSError:  # there is no such file yet, or its folder cannot be entered, which writing tells
            return
        if same:
            raise ModelWriteError(
                f"{target.name} is the file that is read ({path.name}).", "Choose another name to write to."
            )


def _shape_of(file: GGUFFile, settings: LoadSettings) -> ModelShape:
    """Checks the model as loading would: what cannot run is not worth quantising."""
    model = outline(file, settings).description
    return ModelShape(
        model.architecture,
        model.n_layers,
        model.n_heads,
        model.n_kv_heads,
        model.experts.n,
        tied="output.weight" not in file.tensors,
    )


def _mixture_of(metadata: Metadata) -> str:
    """What the file calls its own, "" where it does not say."""
    value = metadata.values.get(FILE_TYPE_KEY)
    return FILE_TYPES.get(value.value, "") if value and isinstance(value.value, int) else ""


def _any_again(choices: Sequence[ChosenType]) -> bool:
    return any(choice.is_requantised for choice in choices)


def _refuse_quantised(file: GGUFFile, choices: Sequence[ChosenType]) -> None:
    again = Counter(choice.tensor.type.name for choice in choices if choice.is_requantised)
    if again:
        types = ", ".join(name for name, _ in again.most_common())
        raise UnsupportedModelError(
            f"{file.path.name} is quantised already: {again.total()} of its tensors are {types}. "
            "Rounded again, they would be worse than the original rounded once.",
            "Take the model in F16 or BF16, or allow it with `--requantize`.",
        )


def _types_metadata(mixture: str) -> dict[str, MetadataValue]:
    return {
        FILE_TYPE_KEY: number(ValueType.UINT32, FILE_TYPE_NUMBERS[mixture]),
        VERSION_KEY: number(ValueType.UINT32, QUANTISATION_VERSION),
    }


def _require_place(target: Path, size: int, replace: bool) -> None:
    try:
        if target.exists() and not replace:
            raise ModelWriteError(f"{target} is already there.", "Choose another name, or add `--replace`.")
        free = shutil.disk_usage(target.parent).free
    except OSError as error:
        raise ModelWriteError(f"{target.name} cannot be written: {error.strerror or error}.") from error
    if free < size:
        raise ModelWriteError(
            f"{target.name} takes {readable_bytes(size)}; the disk has {readable_bytes(free)} left.",
            "Free some space, or write to another disk.",
        )
