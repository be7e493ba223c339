"""The rules of the house: who may import what, and what no file may hold."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE_FOLDERS = ("app", "engine")
TEXT_ENDINGS = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".cmake", ".spec", ".cfg", ".sh", ""}
MOST_LINES = 400
MOST_BYTES = 4 << 20

NETWORK_LIBRARIES = (
    "ssl",
    "http",
    "urllib.request",
    "ftplib",
    "huggingface_hub",
    "httpx",
    "httpx2",
    "requests",
)
NETWORK = ("socket", "asyncio", *NETWORK_LIBRARIES)
QT = ("PySide6", "shiboken6", "PyQt6", "PyQt5", "qtpy")

ENGINE_MAY_IMPORT = {
    "": {"numpy", "psutil"},
    "engine/chat_template.py": {"jinja2"},
    "engine/templates/": {"jinja2", "markupsafe"},
    "engine/tokenizers/": {"regex"},
}
"""Start of a path -> packages that files there may import, beside the standard library and the engine."""

IMPORT_AND_TELL = """
import importlib, json, pkgutil, sys
for package in {packages!r}:
    module = importlib.import_module(package)
    for found in pkgutil.walk_packages(module.__path__, package + "."):
        if not found.name.startswith({skipped!r}):
            importlib.import_module(found.name)
print(json.dumps(sorted(sys.modules)))
"""


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def tracked_files() -> list[Path]:
    """What git tracks; every file below the source folders where there is no git (an unpacked archive)."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode == 0 and listing.stdout:
        names = [name.decode() for name in listing.stdout.split(b"\0") if name]
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    folders = ("app", "engine", "docs", "tests", "tools", "packaging", "resources")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


def imports_of(path: Path) -> set[str]:
    """Full names of all modules that a file imports, at whatever depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def roots(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def loaded_by(*packages: str) -> set[str]:
    """Modules in a fresh Python after importing these packages with everything below them."""
    code = IMPORT_AND_TELL.format(packages=packages, skipped=("engine.kernels.source", "app.ui"))
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def below(loaded: set[str], names: tuple[str, ...]) -> set[str]:
    return {
        module for module in loaded if any(module == name or module.startswith(name + ".") for name in names)
    }


def test_the_engine_loads_no_qt_no_network_and_no_app():
    loaded = loaded_by("engine")
    assert {"engine.model", "engine.worker", "engine.gguf.reader"} <= loaded, "the whole engine was imported"
    # psutil brings the module socket along, for its constants
    assert below(loaded, (*QT, *NETWORK_LIBRARIES, "app")) == set()


def test_the_command_line_loads_no_qt_and_no_network_library():
    loaded = loaded_by("app.commands", "app.library", "app.text", "app.chats")
    assert {"app.commands.chat", "app.library.download"} <= loaded
    assert below(loaded, (*QT, *NETWORK_LIBRARIES, "app.ui")) == set()


def test_only_the_window_imports_qt():
    importers = {relative(path) for path in python_files("app") if roots(imports_of(path)) & set(QT)}
    assert importers, "the window does import it"
    assert {path for path in importers if not path.startswith("app/ui/")} == set()


def test_the_engine_imports_only_what_it_may():
    wrong = {}
    for path in python_files("engine"):
        allowed = {"engine", *sys.stdlib_module_names} - roots(set(NETWORK) - {"urllib.request"})
        for start, packages in ENGINE_MAY_IMPORT.items():
            if relative(path).startswith(start):
                allowed |= packages
        names = imports_of(path)
        if found := (roots(names) - allowed) | (names & set(NETWORK)):
            wrong[relative(path)] = found
    assert wrong == {}


def test_everything_is_imported_by_the_name_it_is_installed_under():
    for path in python_files(*SOURCE_FOLDERS):
        assert not roots(imports_of(path)) & {"tests", "tools", "packaging", "resources", "dev"}, path


def test_the_folder_packaging_stays_no_package():
    assert not (ROOT / "packaging" / "__init__.py").exists(), "it would shadow the package of that name"


def test_no_file_grows_beyond_what_one_job_needs():
    files = [*python_files("app", "engine", "tools", "tests"), ROOT / "dev.py"]
    lines = {relative(path): path.read_text(encoding="utf-8").count("\n") for path in files}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}, "split by jobs"


RULES = {
    r"jinja2\.Template\(": "runs templates outside the sandbox; use engine/chat_template.py",
    r"(?<![\w./])/(root|home|work|Users)/[\w.-]+/": "the path of one machine",
    r"/tmp/models": "the path of one machine",
    r"(?i)\b(jfrog|artifactory|nexus)\.|/pypi/simple|--(extra-)?index-url": "the address of a registry",
    r"\b(np|numpy)\.random\.(seed|rand|randn)\(": "the global random state; make a Generator with a seed",
    r"\bpickle\.loads?\(|\beval\(|yaml\.load\(": "runs what a file says",
    r"-march=native": "a program for this machine only",
}
MAY_BREAK_RULES = {"tests/test_layers.py"}


def test_no_tracked_file_breaks_a_rule_of_the_house():
    broken = []
    for path in tracked_files():
        if path.suffix not in TEXT_ENDINGS or relative(path) in MAY_BREAK_RULES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for rule, why in RULES.items():
            if found := re.search(rule, text):
                line = text.count("\n", 0, found.start()) + 1
                broken.append(f"{relative(path)}:{line}: {found[0]!r}: {why}")
    assert broken == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("jinja2." + "Template('x')", True),
        ("path = '/ho" + "me/someone/models'", True),
        ("docs/home/page/", False),
        ("https://example.org/home/page/x", False),
        ("-march=" + "native", True),
    ],
)
def test_the_rules_see_what_they_are_for(text, broken):
    assert any(re.search(rule, text) for rule in RULES) == broken


def test_no_large_file_is_tracked():
    large = [relative(path) for path in tracked_files() if path.stat().st_size > MOST_BYTES]
    assert large == [], "models and builds do not belong into the repository"


def test_the_version_is_the_same_everywhere():
    import tomllib

    import app

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == app.__version__
