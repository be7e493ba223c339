"""Arguments that several scripts take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def names_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """An argparse type: names with commas between them, each of the known ones."""
    choice = list(known)

    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := sorted(set(names) - set(choice)):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not of {', '.join(choice)}")
        return names

    return parse
