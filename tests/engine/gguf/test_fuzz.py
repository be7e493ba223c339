"""Ten thousand damaged headers: an error of ours or a correct load, at once, without memory."""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.conversion import convert_checkpoint
from engine.gguf.metadata import Metadata, MetadataValue
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf
from tests.helpers.family_fixtures import FOLDER as FAMILY_FOLDER
from tests.helpers.family_fixtures import NAMES
from tests.helpers.tiny_model import write_tiny_model
from tests.helpers.vocabularies import FOLDER
from tools.fuzz_gguf import INTERESTING, Damage, Victim, difference, rounds, try_damage
from tools.plain_gguf import read_plainly

KEPT_ITEMS = 200
"""Of every array of the real header, so that a round takes a millisecond."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> list[Victim]:
    folder = tmp_path_factory.mktemp("tiny")
    sources = [
        write_tiny_model(folder / "llama.gguf", rope_factors=True),
        write_tiny_model(folder / "gemma3.gguf", "gemma3", quant_type="Q4_0"),
        write_tiny_model(folder / "wide.gguf", quant_type="Q4_K", metadata={"general.alignment": 4096}),
    ]
    return [Victim.of(source, folder / f"damaged {source.name}") for source in sources]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, smollm2_path: Path) -> Victim:
    """SmolLM2's own header, its vocabulary cut to a few tokens."""
    folder = tmp_path_factory.mktemp("real")
    with GGUFFile.open(smollm2_path) as file:
        cut = {
            key: MetadataValue(value.type, value.value[:KEPT_ITEMS], value.element_type)
            if value.element_type is not None
            else value
            for key, value in file.metadata.values.items()
        }
        write_gguf(folder / "cut.gguf", Metadata(cut, "cut.gguf"), file.tensors.values())
    victim = Victim.of(folder / "cut.gguf", folder / "damaged.gguf")
    (folder / "cut.gguf").unlink()
    return victim


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> list[Victim]:
    folder = tmp_path_factory.mktemp("families")
    victims = []
    for name in NAMES:
        convert_checkpoint(FAMILY_FOLDER / name, folder / f"{name}.gguf", "f32", vocabulary=False)
        victims.append(Victim.of(folder / f"{name}.gguf", folder / f"damaged {name}.gguf"))
    return victims


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Victim]]:
    folder = tmp_path_factory.mktemp("vocabularies")
    victims = []
    for name in ("llama-spm", "deepseek-coder"):
        (folder / f"{name}.gguf").write_bytes(lzma.decompress((FOLDER / f"{name}.gguf.xz").read_bytes()))
        victims.append(Victim.of(folder / f"{name}.gguf", folder / f"damaged {name}.gguf"))
    yield victims


def fuzz(victims: list[Victim], seed: int, count: int, whole: bool = True) -> None:
    failures = [
        f"seed {number}, {victim.path.name}: {problem}"
        for number, victim, damage in itertools.islice(rounds(victims, seed), count)
        if (problem := try_damage(victim, damage, whole=whole, traced=number % 10 == 0))
    ]
    assert failures == []


@pytest.mark.slow
def test_damaged_tiny_models(tiny: list[Victim]) -> None:
    fuzz(tiny, seed=0, count=4500)


@pytest.mark.slow
def test_a_damaged_real_header(real: Victim) -> None:
    fuzz([real], seed=100_000, count=2500)


@pytest.mark.slow
def test_damaged_models_of_all_families(families: list[Victim]) -> None:
    """Hyper-parameters of every kind: experts, sliding windows, scaled positions."""
    fuzz(families, seed=300_000, count=2000)


@pytest.mark.slow
def test_damaged_vocabularies(vocabularies: list[Victim]) -> None:
    fuzz(vocabularies, seed=200_000, count=200, whole=False)


@settings(max_examples=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_numbers_in_any_fields(tiny: list[Victim], data: st.DataObject) -> None:
    """Hypothesis looks for the smallest damage that does harm."""
    victim = data.draw(st.sampled_from(tiny))
    patches = []
    for _ in range(data.draw(st.integers(1, 3))):
        position, size = data.draw(st.sampled_from(data.draw(st.sampled_from(victim.records))))
        value = data.draw(st.one_of(st.sampled_from(INTERESTING), st.integers(0, 2 ** (8 * size) - 1)))
        patches.append((position, (value % (1 << 8 * size)).to_bytes(size, "little")))
    length = data.draw(st.one_of(st.just(victim.size), st.integers(0, victim.size)))
    assert try_damage(victim, Damage(tuple(patches), length)) == ""


def test_victims_are_sound_before_and_after(tiny: list[Victim], real: Victim) -> None:
    """Else everything would be refused, and the tests above would show nothing."""
    for victim in (*tiny, real):
        nothing = Damage((), victim.size)
        content = victim.damage(nothing)
        victim.mend(nothing)
        with GGUFFile.open(victim.path) as file:
            assert difference(file, content, victim.size) == ""
            assert len(file.tensors) > 10


@pytest.mark.parametrize("what", ["key", "value", "shape", "size"])
def test_a_wrong_load_is_found(tmp_path: Path, what: str) -> None:
    """The comparison can fail: here a sound file is compared with a header that differs."""
    path = write_tiny_model(tmp_path / "tiny.gguf")
    content = bytearray(path.read_bytes())
    plain = read_plainly(content)
    size = len(content)
    if what == "key":
        position = content.index(b"general.name")
        content[position : position + 3] = b"Gen"
    elif what == "value":
        position, length = plain.records[3][-1]
        content[position : position + length] = (3).to_bytes(length, "little")
    elif what == "shape":
        position, length = plain.records[-1][2]
        content[position : position + length] = (1).to_bytes(length, "little")
    else:
        size -= 1000
    with GGUFFile.open(path) as file:
        assert difference(file, path.read_bytes(), len(content)) == ""
        assert difference(file, content, size) != ""


def test_memory_and_time_are_watched(tiny: list[Victim], monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Damage((), tiny[0].size)
    monkeypatch.setattr("tools.fuzz_gguf.MEMORY_LIMIT", 1000)
    assert "bytes of memory" in try_damage(tiny[0], nothing, traced=True)
    monkeypatch.setattr("tools.fuzz_gguf.TIME_LIMIT", 0.0)
    assert "it took" in try_damage(tiny[0], nothing)


def test_other_exceptions_are_found(tiny: list[Victim], monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr("tools.fuzz_gguf._load", stumble)
    assert try_damage(tiny[0], Damage((), tiny[0].size)) == "IndexError: list index out of range"


def test_damage_is_mended(tiny: list[Victim]) -> None:
    victim = tiny[0]
    before = victim.path.read_bytes()
    for _, _, damage in itertools.islice(rounds([victim], 7), 200):
        try_damage(victim, damage, whole=False)
    assert victim.path.read_bytes() == before
    assert np.count_nonzero(np.frombuffer(before[len(victim.header) :], np.uint8)) == 0
