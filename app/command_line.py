"""The command line: which command it is; the command's own module does the rest.

Only the module of the command asked for is imported, so that `causerie --version` is quick, and none of them
imports Qt.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Protocol, cast

import app
from app.library.known_models import model_path
from app.terminal import argument_text, tell_error
from engine.errors import SettingsError

COMMANDS = {
    "chat": "talk with a model in the terminal",
    "info": "what a model file is and the memory it needs",
    "tokenize": "the token ids of a text",
    "complete": "continue a raw prompt, without a chat template",
    "logits": "the likeliest next tokens of a prompt",
    "bench": "how fast a model reads and writes here",
    "convert": "make a model file of a checkpoint (safetensors)",
    "quantize": "make a smaller model file: weights in fewer bits",
    "models": "the models on this disk and those that can be fetched",
    "get": "fetch a model, such as the starter",
}

USAGE = """\
usage: causerie [FILE]
       causerie COMMAND ...
       causerie --selftest [FILE]
       causerie --version | --help

Without a command the window opens, with FILE (a .gguf model) loaded if given.

commands:
{commands}

`causerie COMMAND --help` tells the rest.
"""


class Command(Protocol):
    """What a module of `app.commands` offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int: ...


def run(arguments: list[str]) -> int:
    """Runs what the arguments (without the program's name) ask for; returns the exit status.

    Raises `CauserieError`; `SystemExit` with 2 for wrong usage and 0 for help.
    """
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return _run_command(first, arguments[1:])
    if first == "--selftest":
        return _run_command("selftest", arguments[1:])
    if first in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if first in ("-V", "--version"):
        print(f"causerie {app.__version__}")
        return 0
    if len(arguments) > 1 or first.startswith("-"):
        _wrong_usage(f"unknown option {first}" if first.startswith("-") else f"unknown command {first}")
    if not first:
        return _open_window(None)
    path = model_path(Path(first))
    if not path.suffix and not os.path.exists(path):
        _wrong_usage(f"unknown command {first}")
    return _open_window(path)


def usage() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {about}" for name, about in COMMANDS.items())
    return USAGE.format(commands=commands)


def _run_command(name: str, arguments: list[str]) -> int:
    module = importlib.import_module(f"app.commands.{name}")
    title = f"causerie --{name}" if name == "selftest" else f"causerie {name}"
    parser = argparse.ArgumentParser(prog=title, description=module.__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    command = cast(Command, module)
    command.add_arguments(parser)
    options = parser.parse_args(arguments)
    for key, value in vars(options).items():
        if isinstance(value, str):
            setattr(options, key, argument_text(value))
    try:
        return command.run(options)
    except SettingsError as error:  # a number out of its range is wrong usage
        tell_error(error)
        return 2


def _wrong_usage(what: str) -> None:
    print(f"{usage()}\ncauserie: {what}", file=sys.stderr)
    raise SystemExit(2)


def _open_window(model: Path | None) -> int:
    from app.commands.window import open_window

    return open_window(model)
