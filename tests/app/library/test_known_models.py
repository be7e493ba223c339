"""The catalogue that ships is sound, and a damaged one is told."""

import json

import pytest

from app.errors import CatalogueError
from app.library.known_models import HubSource, WheelSource, known_model, known_models
from tests.helpers.models import SMOLLM2


def test_the_starter_is_known_with_both_sources_and_the_checksum_of_the_tests():
    starter = known_model("starter")
    assert (starter.sha256, starter.size, starter.file_name) == (
        SMOLLM2.sha256,
        SMOLLM2.size,
        SMOLLM2.file_name,
    )
    assert {type(source) for source in starter.sources} == {WheelSource, HubSource}


def test_every_entry_names_licence_checksum_and_a_fixed_version():
    for model in known_models():
        assert model.licence and model.size > 0 and model.sources
        assert len(model.sha256) == 64 and int(model.sha256, 16)
        for source in model.sources:
            if isinstance(source, HubSource):
                assert len(source.revision) == 40, "a branch may move; pin the commit"


def test_an_unknown_name_is_answered_with_the_names():
    with pytest.raises(CatalogueError, match="'strater'") as caught:
        known_model("strater")
    assert "starter" in caught.value.advice


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"models": [{}]}', '{"models": 3}', '{"models": [{"sources": [{"kind": "ftp"}]}]}'],
)
def test_a_damaged_catalogue_is_told(tmp_path, text):
    (tmp_path / "catalogue.json").write_text(text)
    with pytest.raises(CatalogueError, match="damaged"):
        known_models(tmp_path / "catalogue.json")


@pytest.mark.parametrize("name", ["../../evil.gguf", "/etc/evil.gguf", "no-model.txt", "sub/x.gguf"])
def test_a_file_name_that_leads_elsewhere_is_refused(tmp_path, name):
    entry = dict.fromkeys(
        ("name", "title", "description", "family", "quantisation", "licence", "author"), "x"
    )
    entry |= {"file_name": name, "size": 1, "sha256": "0" * 64, "sources": []}
    (tmp_path / "catalogue.json").write_text(json.dumps({"models": [entry]}))
    with pytest.raises(CatalogueError, match="file name"):
        known_models(tmp_path / "catalogue.json")
