"""The list of models on the disk: found in place, damaged ones told, quick the second time."""

import os
import time

import pytest

from app import paths
from app.library import local_models
from app.library.local_models import list_models
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf_parts
from engine.memory import free_memory
from engine.requests import LoadSettings
from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture
def folder():
    paths.models_folder().mkdir(parents=True)
    return paths.models_folder()


def test_no_folder_is_no_error():
    assert list_models() == []


def test_models_of_the_model_folder_and_of_added_folders(folder, tmp_path):
    write_tiny_model(folder / "one.gguf", metadata={"general.name": "B model"})
    (tmp_path / "deep" / "er").mkdir(parents=True)
    write_tiny_model(tmp_path / "deep" / "er" / "TWO.GGUF", "gemma3", quant_type="Q8_0")
    (tmp_path / "notes.txt").write_text("no model")
    first, second = list_models([tmp_path, tmp_path / "deep", tmp_path / "nowhere"])
    assert (first.name, first.family, first.main_type, first.problem) == ("B model", "llama", "F32", "")
    assert first.path == folder / "one.gguf"
    assert (second.family, second.main_type) == ("gemma3", "Q8_0")
    assert first.file_bytes == first.path.stat().st_size
    assert first.memory is not None and first.memory.context_size == 512
    assert first.file_bytes / 2 < first.memory.total < free_memory()
    assert first.has_template and first.vocabulary_size == 300 and first.n_parameters > 0


def split_in_three(folder, name="big", **options):
    whole = write_tiny_model(folder / "whole.gguf", **options)
    with GGUFFile.open(whole) as file:
        limit = sum(tensor.nbytes for tensor in file.tensors.values()) * 2 // 5
        paths = write_gguf_parts(folder / f"{name}.gguf", file.metadata, file.tensors.values(), limit)
    whole.unlink()
    assert len(paths) == 3
    return paths


def test_a_model_in_several_files_stands_there_once_with_its_whole_size(folder):
    paths = split_in_three(folder)
    write_tiny_model(folder / "small.gguf")
    big, small = sorted(list_models(), key=lambda facts: facts.path.name)
    assert (big.path, big.problem) == (paths[0], "")
    assert big.files == tuple(path.name for path in paths) and small.files == ("small.gguf",)
    assert big.file_bytes == sum(path.stat().st_size for path in paths)
    assert big.n_parameters == small.n_parameters
    assert list_models() == list_models([folder])


def test_parts_that_lack_others_stand_there_once_with_the_problem(folder):
    first, second, third = split_in_three(folder)
    assert list_models()[0].problem == ""
    first.unlink()
    (facts,) = list_models()
    assert facts.path == second and f"{first.name} is missing" in facts.problem
    assert facts.file_bytes == second.stat().st_size + third.stat().st_size


def test_two_sets_and_models_that_are_only_called_like_parts(folder):
    split_in_three(folder, "a")
    split_in_three(folder, "b")
    for number in (1, 2, 3):
        write_tiny_model(folder / f"c-0000{number}-of-00003.gguf")
    write_tiny_model(folder / "d-00001-of-00001.gguf")
    names = sorted(facts.path.name[:9] for facts in list_models())
    assert names == ["a-00001-o", "b-00001-o", "c-00001-o", "c-00002-o", "c-00003-o", "d-00001-o"]
    assert [facts.problem for facts in list_models()] == [""] * 6


def test_a_larger_context_needs_more_memory(folder):
    write_tiny_model(folder / "one.gguf")
    settings = LoadSettings(64), LoadSettings(4096), LoadSettings(4096, kv="q8")
    small, large, eight_bit = (list_models(settings=each)[0].memory for each in settings)
    assert small is not None and large is not None and eight_bit is not None
    assert large.kv_cache == 64 * small.kv_cache and large.weights == small.weights
    # Heads of 16 numbers: two bytes each, or one and a scale of four bytes.
    assert eight_bit.kv_cache == large.kv_cache * 20 // 32


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 64, b"PK\x03\x04 a zip", None]
)
def test_a_damaged_file_is_listed_with_its_problem(folder, content):
    path = folder / "bad.gguf"
    if content is None:  # a sound file cut short
        content = write_tiny_model(path).read_bytes()[:-1000]
    path.write_bytes(content)
    write_tiny_model(folder / "good.gguf")
    bad, good = sorted(list_models(), key=lambda facts: facts.path.name)
    assert bad.problem and bad.advice and bad.memory is None
    assert good.problem == ""


@pytest.mark.parametrize(
    ("said", "shown"), [(15, "Q4_K_M"), (9999, "Q8_0"), ("nonsense", "Q8_0"), (None, "Q8_0")]
)
def test_the_type_is_what_the_file_says_of_itself_or_that_of_its_layers(folder, said, shown):
    write_tiny_model(folder / "one.gguf", quant_type="Q8_0", metadata={"general.file_type": said})
    assert [facts.main_type for facts in list_models()] == [shown]


def test_an_unsupported_family_is_listed_by_name_with_its_problem(folder):
    metadata = {"general.architecture": "mamba9"}
    write_tiny_model(folder / "other.gguf", metadata=metadata)
    (facts,) = list_models()
    assert facts.family == "mamba9" and "mamba9" in facts.problem and facts.memory is None


def test_hostile_names_in_a_file_do_no_harm(folder):
    write_tiny_model(folder / "x.gguf", metadata={"general.name": "\x1b[2J<b>\n" * 1000})
    (facts,) = list_models()
    assert facts.problem == ""


def test_circles_links_and_folders_named_like_models(folder):
    write_tiny_model(folder / "one.gguf")
    (folder / "folder.gguf").mkdir()
    (folder / "loop.gguf").symlink_to("loop.gguf")
    (folder / "round").symlink_to(folder)
    (folder / "same.gguf").symlink_to("one.gguf")
    (folder / "gone.gguf").symlink_to("nothing-here")
    (folder / ".partial").mkdir()
    write_tiny_model(folder / ".partial" / "half.gguf")
    assert [facts.path.name for facts in list_models()] == ["one.gguf"]


def test_fifty_models_are_listed_within_a_second_once_they_are_known(folder, monkeypatch):
    write_tiny_model(folder / "0.gguf")
    content = (folder / "0.gguf").read_bytes()
    for number in range(1, 50):
        (folder / f"{number}.gguf").write_bytes(content)
    first = list_models()

    def no_reading(*_):
        raise AssertionError("a known file was read again")

    monkeypatch.setattr(local_models, "read_facts", no_reading)
    started = time.monotonic()
    assert list_models() == first and len(first) == 50
    assert time.monotonic() - started < 1


def test_a_changed_file_is_read_again(folder):
    path = write_tiny_model(folder / "one.gguf", metadata={"general.name": "Old"})
    assert [facts.name for facts in list_models()] == ["Old"]
    write_tiny_model(path, metadata={"general.name": "New"})
    os.utime(path, ns=(1, 1))
    assert [facts.name for facts in list_models()] == ["New"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 0, "models": {}}', '{"models": 3}'])
def test_a_damaged_memory_of_the_list_is_no_harm(folder, content):
    write_tiny_model(folder / "one.gguf")
    expected = list_models()
    cache = paths.cache_folder() / "models.json"
    cache.write_text(content)
    assert list_models() == expected
    entries = cache.read_text().replace('"family": "llama"', '"kind": 7')
    cache.write_text(entries)
    assert list_models() == expected
