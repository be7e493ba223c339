"""Upgrades of the settings file, one function for each version that went before.

To change the meaning or name of a setting: add 1 to VERSION and add the function that turns content of the
old version into the new one to UPGRADES.  The suite fails while an upgrade has no test of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VERSION = 1
"""The version that `app.settings` reads and writes."""

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: dict[int, Upgrade] = {}
"""Version found in the file -> the function that makes it one version newer."""


def upgrade(
    content: dict[str, Any], version: int, newest: int = VERSION, upgrades: dict[int, Upgrade] = UPGRADES
) -> dict[str, Any]:
    """Content of a file of a version, brought to the newest.  A newer file is returned as it is."""
    for step in range(version, newest):
        content = upgrades[step](content)
    return content
