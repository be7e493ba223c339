"""Which chat template to talk by: named on the command line, or asked for where the file has none."""

from __future__ import annotations

import argparse

from app.terminal import tell
from engine.chat_template import ChatTemplate
from engine.errors import TemplateError
from engine.model import LoadedModel
from engine.templates.choice import family_template
from engine.templates.families import FAMILIES


def add_template(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chat-template",
        default="",
        metavar="NAME",
        help="a template of the file, such as tool_use, or that of a family, such as chatml",
    )
    parser.add_argument(
        "--thinking",
        action=argparse.BooleanOptionalAction,
        help="whether a model that can do either thinks before it answers",
    )


def require_template(model: LoadedModel, may_ask: bool) -> None:
    """Gives the model a chat template where it has none, by asking for a family.

    Raises `TemplateError` where nobody can be asked, or the name is not known.
    """
    if model.template is not None:
        return
    names = ", ".join(family.name for family in FAMILIES)
    if not may_ask:
        raise TemplateError(
            f"{model.path.name} has no chat template, so it cannot chat.",
            f"Name one with --chat-template ({names}), or use `causerie complete` with a raw prompt.",
        )
    tell(f"{model.path.name} has no chat template that can be used. Which family's was it trained with?")
    tell(names)
    try:
        name = input("family: ").strip()
    except EOFError:
        name = ""
    model.template = ChatTemplate.from_tokenizer(model.tokenizer, family_template(name).source)
