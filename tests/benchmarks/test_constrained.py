"""The measurement of writing under a schema holds what it writes to the schema, and has its place."""

from contextlib import closing

import pytest

from benchmarks import constrained
from benchmarks.results_page import SECTIONS
from engine.model import load_model
from engine.requests import LoadSettings
from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture
def model(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with closing(load_model(path, LoadSettings(context_size=600, backend="fake"))) as model:
        yield model


def test_each_schema_is_measured_in_pairs(model, monkeypatch):
    asked = []
    generate = constrained.generate

    def watched(session, request, should_stop):
        asked.append((request.sampling.seed, request.grammar is not None))
        return generate(session, request, should_stop)

    monkeypatch.setattr(constrained, "generate", watched)
    rows = constrained.measure(model, repeat=2, n_tokens=10)
    assert [row[0] for row in rows] == list(constrained.SCHEMAS)
    pairs = [(0, True), (0, False), (1, True), (1, False)]
    assert asked == [(0, False), *pairs * len(rows)]


def test_its_section_has_a_place_in_the_results():
    assert constrained.SECTION in SECTIONS
