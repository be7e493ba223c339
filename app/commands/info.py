"""What a model file is: family, parameters, types, context, tokenizer, template, memory needed, notices."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands.common import add_json, add_loading, add_model, load_settings, print_json
from app.commands.facts import as_json, print_facts
from app.errors import FolderError
from app.library.known_models import model_path
from app.library.model_facts import TemplateText, read_facts, read_template
from app.terminal import tell, visible
from engine.errors import SettingsError, TemplateError, UnsupportedModelError
from engine.graph.draw import plan_dot, plan_svg, plan_text
from engine.graph.plan import Plan

DRAWINGS = {".svg": plan_svg, ".dot": plan_dot}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_loading(parser)
    add_json(parser)
    parser.add_argument(
        "--template", action="store_true", help="print the chat template in use and what it makes of a sample"
    )
    parser.add_argument(
        "--chat-template", default="", metavar="NAME", help="this one of the file's templates, or a family's"
    )
    parser.add_argument(
        "--graph", action="store_true", help="print the steps of the computation and their memory"
    )
    parser.add_argument("--graph-file", type=Path, metavar="X.svg|X.dot", help="draw the steps into a file")


def run(options: argparse.Namespace) -> int:
    if options.graph_file and options.graph_file.suffix.lower() not in DRAWINGS:
        raise SettingsError(
            f"A graph cannot be drawn into {options.graph_file.name}.",
            "Choose a name ending in .svg or .dot.",
        )
    path = model_path(options.file)
    facts, plan = read_facts(path, load_settings(options))
    template = read_template(path, options.chat_template) if options.template else None
    if options.json:
        content = as_json(facts, plan if options.graph else None)
        if template is not None and isinstance(content["template"], dict):
            content["template"] |= {"source": template.source, "sample": template.sample}
        print_json(content)
    else:
        print_facts(facts)
        if template is not None:
            _print_template(template)
    if (options.graph or options.graph_file) and plan is None:
        raise UnsupportedModelError(facts.problem, facts.advice)
    if options.graph and plan is not None and not options.json:
        print("\n" + plan_text(plan))
    if options.graph_file and plan is not None:
        _draw(plan, options.graph_file)
    return 0


def _print_template(template: TemplateText) -> None:
    """The template, then what it makes of a short conversation.  Raises what kept it from that."""
    if template.source:
        print(f"\n--- template\n{visible(template.source)}")
    if template.problem is not None:
        raise TemplateError(template.problem.title, template.problem.advice) from template.problem
    print(f"--- a sample\n{visible(template.sample)}")


def _draw(plan: Plan, path: Path) -> None:
    try:
        path.write_text(DRAWINGS[path.suffix.lower()](plan), encoding="utf-8")
    except OSError as error:
        raise FolderError(f"The graph could not be written to {path}: {error.strerror}.") from error
    tell(f"graph drawn into {path}")
