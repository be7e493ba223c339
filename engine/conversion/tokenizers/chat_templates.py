"""The chat templates of a checkpoint: in a file of their own, or inside ``tokenizer_config.json``."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from engine.conversion.config import Config, read_json
from engine.errors import ModelFileError

MAX_BYTES = 1 << 20
PLAIN = frozenset(string.ascii_letters + string.digits)
KEY = "tokenizer.chat_template"


def chat_templates(folder: Path, tokenizer: Config) -> dict[str, object]:
    """Metadata: the default template, and further ones by name (``tools``, ``rag``).

    ``chat_template.jinja`` counts before the configuration, whose copy is older.  Raises `ModelFileError`
    for a file that is no text.
    """
    templates: dict[str, str] = _named(tokenizer.get("chat_template"))
    if (folder / "chat_template.json").is_file():
        templates |= _named(read_json(folder / "chat_template.json").get("chat_template"))
    if (folder / "chat_template.jinja").is_file():
        templates["default"] = _read(folder / "chat_template.jinja")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        templates[path.stem] = _read(path)
    metadata: dict[str, object] = {}
    if "default" in templates:
        metadata[KEY] = templates.pop("default")
    named = {"".join(c if c in PLAIN else "_" for c in name): text for name, text in templates.items()}
    metadata |= {f"{KEY}.{name}": text for name, text in named.items()}
    if named:
        metadata["tokenizer.chat_templates"] = list(named)
    return metadata


def _named(value: Any) -> dict[str, str]:
    """One text is the default; a list holds objects with name and template."""
    if isinstance(value, str):
        return {"default": value}
    entries = value if isinstance(value, list) else []
    return {
        entry["name"]: entry["template"]
        for entry in entries
        if isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("template"), str)
    }


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ModelFileError(f"{path.name} has more than {MAX_BYTES:,} bytes, too many for a template.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelFileError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path.name} is no text.") from error
