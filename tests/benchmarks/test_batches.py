"""The measurement of conversations written together writes what it counts."""

from contextlib import closing

import pytest

from benchmarks import batches
from benchmarks.results_page import SECTIONS
from engine.model import load_model
from engine.requests import LoadSettings
from engine.session_group import SessionGroup
from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture
def model(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with closing(load_model(path, LoadSettings(context_size=100, backend="fake"))) as model:
        yield model


def test_groups_of_all_sizes_are_measured_in_alternation(model, monkeypatch):
    steps = []
    decode = SessionGroup.decode

    def counted(group, tokens):
        steps.append((len(group.sessions), len(tokens)))
        return decode(group, tokens)

    monkeypatch.setattr(SessionGroup, "decode", counted)
    rates = batches.measure(model, [1, 3], n_steps=5, repeat=2)
    assert [len(rates[size]) for size in (1, 3)] == [2, 2]
    assert all(rate > 0 for measured in rates.values() for rate in measured)
    # Two steps before, then five that count, of each size in turn.
    assert steps == 2 * ([(1, 1)] * 7 + [(3, 3)] * 7)


def test_its_section_has_a_place_in_the_results():
    assert batches.SECTION in SECTIONS
