"""The pages for people: links lead somewhere, commands and decisions are all there, notices are complete."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from app import command_line

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_pages_link_only_to_what_is_there():
    dead = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


def test_every_decision_is_in_the_index():
    index = text_of("docs/decisions/README.md")
    assert [page.name for page in (ROOT / "docs/decisions").glob("0*.md") if page.name not in index] == []


def test_every_command_is_documented():
    page = text_of("docs/commands.md")
    assert [name for name in command_line.COMMANDS if f"causerie {name} " not in page] == []
    headings = re.findall(r"^\*\*(\w+)\*\*", page, re.MULTILINE)
    assert set(command_line.COMMANDS) <= set(headings), "the keys of --json"


def test_the_readme_fits_one_screen():
    assert text_of("README.md").count("\n") <= 50


def installed_with(name: str, seen: set[str]) -> set[str]:
    """Names of a distribution and of everything it needs here."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name not in seen:
        seen.add(name)
        for line in metadata.requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                installed_with(requirement.name, seen)
    return seen


def test_every_library_that_ships_is_named_in_the_notices():
    needed: set[str] = set()

    for line in tomllib.loads(text_of("pyproject.toml"))["project"]["dependencies"]:
        installed_with(Requirement(line).name, needed)
    assert {"numpy", "markupsafe", "h11"} <= needed, "what libraries need counts too"
    notices = re.sub(r"[-_.]+", "-", text_of("THIRD_PARTY_NOTICES.md")).lower()
    assert [name for name in sorted(needed) if name not in notices] == []
