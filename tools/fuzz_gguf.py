"""Damages GGUF headers at random and opens them: an error of ours or a correct load, nothing else, ever.

    python -m tools.fuzz_gguf FILE... --seconds 600

Each round overwrites some bytes, most of them in counts, lengths, types and other numbers, or cuts the file,
and then opens it; what opens is compared with `tools.plain_gguf`, and goes on to the checks of loading
(plan, memory, template, vocabulary).  A file that fails is kept under the seed that made it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import struct
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.library.model_facts import read_facts
from engine.errors import CauserieError
from engine.gguf.metadata import MetadataValue
from engine.gguf.reader import GGUFFile
from engine.requests import LoadSettings
from engine.tokenizers import load_tokenizer
from tools.plain_gguf import PlainHeader, read_plainly

TIME_LIMIT = 1.0
"""Seconds of processor time that opening may take."""
MEMORY_LIMIT = 64 << 20
"""Bytes that opening may take beside what is there."""

INTERESTING = (
    0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 31, 32, 33, 63, 64, 255, 256, 2**15, 2**16 - 1, 2**16, 2**20,
    2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**60 + 1, 2**61, 2**62, 2**63 - 1, 2**63,
    2**64 - 32, 2**64 - 1, 0x7FC00000, 0x7F800000, 0xBF800000,
)  # fmt: skip
"""Numbers at which sizes, products and signs turn over; at last NaN, infinity and -1 as float32."""


@dataclass(frozen=True)
class Damage:
    """patches: (position, bytes) written over the file; length: what is left of it."""

    patches: tuple[tuple[int, bytes], ...]
    length: int


class Victim:
    """A file of a header and room for its data, damaged in place and mended again.

    Data is not written: the file has a hole there, which reads as zeros.
    """

    def __init__(self, path: Path, header: bytes, size: int) -> None:
        self.path = path
        self.header = header
        self.size = size
        self.records = read_plainly(header).records
        # A key of one number has three fields: the length of its name, its type, the number.
        self.numbers = [record[-1] for record in self.records if len(record) == 3]
        path.write_bytes(header)
        os.truncate(path, size)

    @classmethod
    def of(cls, source: Path, path: Path) -> Victim:
        """A copy of a model file without its data."""
        size = source.stat().st_size
        with source.open("rb") as file:
            content = file.read(64 << 20)
        return cls(path, content[: read_plainly(content).end], size)

    def damage(self, damage: Damage) -> bytearray:
        """Damages the file; its header as it is now."""
        content = bytearray(self.header)
        with self.path.open("r+b") as file:
            for position, raw in damage.patches:
                file.seek(position)
                file.write(raw)
                content[position : position + len(raw)] = raw
            file.truncate(damage.length)
        return content[: damage.length]

    def mend(self, damage: Damage) -> None:
        with self.path.open("r+b") as file:
            if damage.length < len(self.header):
                file.write(self.header)
            for position, raw in damage.patches:
                file.seek(position)
                file.write(self.header[position : position + len(raw)])
            file.truncate(self.size)


def random_damage(generator: random.Random, victim: Victim) -> Damage:
    """One to four patches, and in one of ten files a cut."""
    patches = [_random_patch(generator, victim) for _ in range(generator.choice((1, 1, 1, 2, 4)))]
    length = victim.size
    if generator.random() < 0.1:
        length = generator.randrange(generator.choice((victim.size, len(victim.header))) + 1)
    return Damage(tuple(patches), length)


def _random_patch(generator: random.Random, victim: Victim) -> tuple[int, bytes]:
    if generator.random() < 0.75:
        # The first fields of a record decide most; those of a vocabulary would drown all others.
        fields = generator.choice(victim.records)
        among = generator.choice((fields[:6], fields[:6], fields, victim.numbers))
        position, size = generator.choice(among)
        value = generator.choice(INTERESTING) + generator.choice((0, 0, 0, 1, -1))
        if generator.random() < 0.2:
            value = generator.choice((victim.size, len(victim.header), len(victim.header) - position))
        return position, (value % (1 << 8 * size)).to_bytes(size, "little")
    position = generator.randrange(len(victim.header))
    if generator.random() < 0.5:
        return position, bytes([victim.header[position] ^ 1 << generator.randrange(8)])
    count = min(generator.choice((1, 4, 8, 40)), len(victim.header) - position)
    return position, generator.randbytes(count)


def try_damage(victim: Victim, damage: Damage, *, whole: bool = True, traced: bool = False) -> str:
    """Opens the damaged file; "" or what is wrong with the outcome.

    whole: what opens goes on to the checks of loading.  traced: the memory of opening is watched, not its
    time, which that makes longer.
    """
    content = victim.damage(damage)
    try:
        with contextlib.ExitStack() as opened:
            file, problem = _open(victim.path, traced)
            if file is not None:
                opened.enter_context(file)
                problem = problem or difference(file, content, victim.path.stat().st_size)
                if whole and not problem:
                    _load(file)
            return problem
    except Exception as error:  # whatever it is, it is what we look for
        return f"{type(error).__name__}: {error}"
    finally:
        victim.mend(damage)


def _open(path: Path, traced: bool) -> tuple[GGUFFile | None, str]:
    """The file where it opens, and what is wrong with the error, the time or the memory it took."""
    file, problem = None, ""
    if traced:
        tracemalloc.start()
    started = time.process_time()
    try:
        file = GGUFFile.open(path)
    except CauserieError as error:
        if path.name not in error.title or not error.advice:
            problem = f"the error says too little: {error!r}"
    finally:
        seconds = time.process_time() - started
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    if peak > MEMORY_LIMIT:
        problem = f"{peak} bytes of memory were taken"
    elif seconds > TIME_LIMIT and not traced:
        problem = f"it took {seconds:.1f} s"
    return file, problem


def _load(file: GGUFFile) -> None:
    """Each part of loading that a file can disturb: plan, memory, template, vocabulary, tokenizer."""
    with contextlib.suppress(CauserieError):
        read_facts(file.path, LoadSettings(64))
    with contextlib.suppress(CauserieError):
        load_tokenizer(file.metadata)


def difference(file: GGUFFile, content: bytes | bytearray, size: int) -> str:
    """Where what was read differs from content, the header of a file of so many bytes; "" nowhere."""
    try:
        plain = read_plainly(content)
    except (struct.error, KeyError) as error:
        return f"it opened, but cannot be read plainly: {error}"
    if list(file.metadata) != [key.decode() for key in plain.metadata]:
        return "other keys"
    for key, value in file.metadata.values.items():
        if not _same(value, *plain.metadata[key.encode()]):
            return f"another value of {key}"
    return _tensor_difference(file, plain, size)


def _same(value: MetadataValue, type: int, element_type: int | None, expected: object) -> bool:
    if (value.type, value.element_type) != (type, element_type):
        return False
    found = value.value.tolist() if isinstance(value.value, np.ndarray) else value.value
    return repr(found) == repr(expected) or found == expected  # repr: a NaN equals no NaN


def _tensor_difference(file: GGUFFile, plain: PlainHeader, size: int) -> str:
    if [name.encode() for name in file.tensors] != list(plain.tensors):
        return "other tensors"
    data_start = -(-plain.end // file.alignment) * file.alignment
    for name, tensor in file.tensors.items():
        lengths, type, offset = plain.tensors[name.encode()]
        if (list(tensor.shape[::-1]), tensor.type.number) != (lengths, type):
            return f"{name} has another shape or type"
        if tensor.data.nbytes != tensor.nbytes or data_start + offset + tensor.nbytes > size:
            return f"{name} reaches beyond the file"
        first = np.empty(1, np.uint8)
        assert tensor.source is not None
        tensor.source.read(0, first)
    return ""


def rounds(victims: Sequence[Victim], seed: int) -> Iterator[tuple[int, Victim, Damage]]:
    """Without end: the seed of a round, whom it damages, and how."""
    while True:
        generator = random.Random(seed)
        victim = generator.choice(victims)
        yield seed, victim, random_damage(generator, victim)
        seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Damages GGUF headers and opens them.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a sound .gguf file")
    parser.add_argument("--seconds", type=float, default=60, metavar="N", help="default %(default)s")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first round")
    parser.add_argument("--keep", type=Path, default=Path("."), metavar="FOLDER", help="where failures go")
    options = parser.parse_args()
    failures: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        victims = [Victim.of(path, Path(folder) / f"{i}.gguf") for i, path in enumerate(options.files)]
        end = time.monotonic() + options.seconds
        for seed, victim, damage in rounds(victims, options.seed):
            if time.monotonic() > end:
                break
            if problem := try_damage(victim, damage, traced=seed % 16 == 0):
                failures[problem] += 1
                kept = options.keep / f"fuzz-{seed}.gguf"
                kept.write_bytes(victim.damage(damage))
                victim.mend(damage)
                print(f"{kept}: {problem}")
    print(f"{seed - options.seed} files, {failures.total()} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
