"""Folders: all below CAUSERIE_HOME, else where the system keeps such things; resources exist."""

from pathlib import Path

import platformdirs
import pytest

from app import paths

FOLDERS = (paths.config_folder, paths.data_folder, paths.cache_folder, paths.log_folder, paths.models_folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_lies_below_the_home_named_by_the_environment(folder, causerie_home):
    assert causerie_home in folder().parents
    assert not folder().exists(), "asking for a folder does not create it"


@pytest.mark.parametrize("folder", FOLDERS)
def test_without_it_the_folders_are_the_persons_own(folder, monkeypatch, causerie_home):
    monkeypatch.delenv("CAUSERIE_HOME")
    assert causerie_home not in folder().parents
    assert any("Causerie" in part for part in folder().parts)
    assert paths.data_folder() == Path(platformdirs.user_data_dir("Causerie", appauthor=False))


def test_resources_of_a_checkout_and_of_the_single_file(monkeypatch, tmp_path):
    assert (paths.resources_folder() / "catalogue.json").is_file()
    monkeypatch.setattr("sys._MEIPASS", str(tmp_path), raising=False)
    assert paths.resources_folder() == tmp_path / "resources"
