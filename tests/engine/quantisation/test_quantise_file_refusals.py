"""What is not quantised, why, and that nothing is left of a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from engine.errors import (
    Cancelled,
    CauserieError,
    ModelFileError,
    ModelWriteError,
    SettingsError,
    UnsupportedModelError,
)
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf, write_gguf_parts
from engine.quantisation.quantise import make_tensor, quantise
from engine.quantisation.quantise_file import quantise_file
from tests.helpers.quantised_files import only, values_of
from tests.helpers.tiny_model import write_tiny_model
from tools.plain_gguf import read_plainly


@pytest.mark.parametrize("quantised", ["Q4_0", "Q8_0", "Q6_K", "IQ4_NL"])
def test_a_quantised_source_needs_the_switch(tmp_path: Path, quantised: str) -> None:
    """Case Q-02."""
    source = write_tiny_model(tmp_path / "in.gguf", width=256, quant_type=quantised)
    with pytest.raises(UnsupportedModelError, match=rf"in\.gguf is quantised already.*{quantised}") as caught:
        quantise_file(source, tmp_path / "out.gguf", "Q4_K_M")
    assert "F16 or BF16" in caught.value.advice and "--requantize" in caught.value.advice
    assert only(tmp_path, "in.gguf")
    quantise_file(source, tmp_path / "out.gguf", "Q4_K_M", requantise=True)
    weights = values_of(source)
    with GGUFFile.open(tmp_path / "out.gguf") as file:
        tensor = file.tensors["blk.0.attn_q.weight"]
        assert tensor.data.tobytes() == quantise(weights[tensor.name], "Q4_K").tobytes()


@pytest.mark.parametrize("link", ["itself", "another spelling", "symbolic", "hard"])
def test_the_source_is_no_target(tmp_path: Path, link: str) -> None:
    source = write_tiny_model(tmp_path / "in.gguf")
    content = source.read_bytes()
    target = tmp_path / "out.gguf"
    if link == "symbolic":
        target.symlink_to(source)
    elif link == "hard":
        os.link(source, target)
    else:
        target = source if link == "itself" else tmp_path / "x" / ".." / "in.gguf"
        (tmp_path / "x").mkdir()
    for dry_run in (True, False):
        with pytest.raises(ModelWriteError, match="is the file that is read"):
            quantise_file(source, target, "Q8_0", dry_run=dry_run)
    assert source.read_bytes() == content


def test_no_part_of_the_source_is_a_target(source: Path, tmp_path: Path) -> None:
    with GGUFFile.open(source) as file:
        parts = write_gguf_parts(tmp_path / "p.gguf", file.metadata, file.tensors.values(), 1 << 20)
    assert len(parts) > 2
    with pytest.raises(ModelWriteError, match=r"p-00002-of-.* is the file that is read"):
        quantise_file(parts[0], parts[1], "Q8_0")


def test_a_target_is_replaced_if_allowed(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.gguf"
    target.write_bytes(b"precious")
    with pytest.raises(ModelWriteError, match="already there"):
        quantise_file(source, target, "Q8_0", replace=False)
    assert quantise_file(source, target, "Q8_0", replace=False, dry_run=True).file_bytes
    assert target.read_bytes() == b"precious"
    quantise_file(source, target, "Q8_0")
    assert target.read_bytes()[:4] == b"GGUF" and only(tmp_path, "out.gguf")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mixture", ["F32", "BF16", "Q8_0", "Q4_K_M", "IQ4_XS"])
@pytest.mark.parametrize("name", ["blk.1.ffn_down.weight", "blk.0.attn_norm.weight"])
def test_weights_that_are_no_numbers(tmp_path: Path, bad: float, mixture: str, name: str) -> None:
    """Case Q-03: tensor and index are told and no file is left; also of a norm, which is copied."""
    values = np.ones(256 if "norm" in name else (256, 512), np.float32)
    place = (17,) if "norm" in name else (17, 300)
    values[place] = bad
    source = write_tiny_model(
        tmp_path / "in.gguf", width=256, extra_tensors={name: make_tensor(name, values)}
    )
    (tmp_path / "out.gguf").write_bytes(b"precious")
    index = ", ".join(map(str, place))
    with pytest.raises(ModelFileError, match=rf"The weight \({index}\) of {name} is {bad}"):
        quantise_file(source, tmp_path / "out.gguf", mixture)
    assert (tmp_path / "out.gguf").read_bytes() == b"precious"
    assert only(tmp_path, "in.gguf", "out.gguf")


def test_overflow_from_bfloat16_to_half_precision(tmp_path: Path) -> None:
    """Case Q-07."""
    values = np.ones((256, 512), np.float32)
    values[3, 4] = 65536
    name = "blk.1.ffn_down.weight"
    source = write_tiny_model(
        tmp_path / "in.gguf", width=256, extra_tensors={name: make_tensor(name, values, "BF16")}
    )
    with pytest.raises(ModelFileError, match=rf"The weight \(3, 4\) of {name} is 65536, too large for F16"):
        quantise_file(source, tmp_path / "out.gguf", "F16")
    assert only(tmp_path, "in.gguf")


def test_cancelling_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out.gguf").write_bytes(b"precious")

    def stop(share: float) -> None:
        assert (tmp_path / "out.gguf").read_bytes() == b"precious", "it has its name when it is whole"
        if share > 0.5:
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        quantise_file(source, tmp_path / "out.gguf", "Q4_0", on_progress=stop)
    assert (tmp_path / "out.gguf").read_bytes() == b"precious" and only(tmp_path, "out.gguf")


def test_a_full_disk_is_told_before_it_starts(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = quantise_file(source, tmp_path / "out.gguf", "Q4_0", dry_run=True).file_bytes
    usage = shutil.disk_usage(tmp_path)

    def with_free(free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=free))

    with_free(size - 1)
    with pytest.raises(ModelWriteError, match="the disk has"):
        quantise_file(source, tmp_path / "out.gguf", "Q4_0", on_progress=lambda share: pytest.fail("started"))
    assert only(tmp_path)
    with_free(size)
    quantise_file(source, tmp_path / "out.gguf", "Q4_0")


def test_a_folder_that_is_missing(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelWriteError, match=r"out\.gguf cannot be written"):
        quantise_file(source, tmp_path / "no" / "out.gguf", "Q4_0")


def test_a_source_that_is_cut_short_meanwhile(tmp_path: Path) -> None:
    source = write_tiny_model(tmp_path / "in.gguf", width=256)
    size = source.stat().st_size

    def cut(share: float) -> None:
        os.truncate(source, size // 2)

    with pytest.raises(ModelFileError, match=r"in\.gguf has become shorter"):
        quantise_file(source, tmp_path / "out.gguf", "Q4_0", on_progress=cut)
    assert only(tmp_path, "in.gguf")


def damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that are no model to quantise, and words of what is said."""
    whole = write_tiny_model(folder / "whole.gguf")
    cut = folder / "cut.gguf"
    cut.write_bytes(whole.read_bytes()[:-1000])
    yield cut, "cut short"
    text = folder / "text.gguf"
    text.write_text("no model at all")
    yield text, "text.gguf"
    yield folder / "missing.gguf", "There is no file"
    yield folder, "is a folder"
    lacking = write_tiny_model(folder / "lacking.gguf", extra_tensors={"blk.1.ffn_up.weight": None})
    yield lacking, "blk.1.ffn_up.weight"
    stranger = write_tiny_model(folder / "stranger.gguf", metadata={"general.architecture": "mamba"})
    yield stranger, "mamba"
    with GGUFFile.open(whole) as file:
        write_gguf(folder / "vocabulary.gguf", file.metadata)
    yield folder / "vocabulary.gguf", "vocabulary only"


def test_damaged_and_unsupported_files_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    target = tmp_path / "out.gguf"
    (tmp_path / "in").mkdir()
    for path, words in damaged(tmp_path / "in"):
        for dry_run in (True, False):
            with pytest.raises(CauserieError, match=words):
                quantise_file(path, target, "Q4_0", dry_run=dry_run)
    assert only(tmp_path, "in")


@pytest.mark.parametrize("seed", range(4))
def test_headers_with_changed_bytes(tmp_path: Path, seed: int) -> None:
    """A typed error and nothing left, or a file of the size that was told."""
    whole = write_tiny_model(tmp_path / "in.gguf", quant_type="F16").read_bytes()
    header = read_plainly(whole)
    random = Random(seed)
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(random.choice((1, 1, 4))):
            content[random.randrange(header.end)] = random.choice((0, 1, 2, 0x7F, 0xFF))
        (tmp_path / "in.gguf").write_bytes(content)
        try:
            told = quantise_file(tmp_path / "in.gguf", tmp_path / "out.gguf", "Q4_K_M", requantise=True)
        except CauserieError:
            assert only(tmp_path, "in.gguf")
        else:
            assert (tmp_path / "out.gguf").stat().st_size == told.file_bytes
            (tmp_path / "out.gguf").unlink()


def test_names_and_numbers_out_of_range(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.gguf"
    with pytest.raises(SettingsError, match="no mixture of types 'Q4_K'") as caught:
        quantise_file(source, target, "Q4_K")
    assert "Q4_K_M" in caught.value.advice
    for types in ({"output_type": "Q9"}, {"embedding_type": "IQ1_S"}):
        with pytest.raises(SettingsError, match="cannot be written as"):
            quantise_file(source, target, "Q4_K_M", **types)
    with pytest.raises(SettingsError, match="threads"):
        quantise_file(source, target, "Q4_K_M", threads=0)
    assert only(tmp_path)
