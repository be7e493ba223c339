"""What a model file is: family, parameters, types, context, tokenizer, template, memory needed."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands.common import add_json, add_loading, add_model, load_settings, print_json
from app.errors import FolderError
from app.library.known_models import model_path
from app.library.model_facts import ModelFacts, read_facts
from app.terminal import one_line, tell
from engine.errors import SettingsError, UnsupportedModelError
from engine.graph.draw import plan_dot, plan_svg, plan_text
from engine.graph.plan import Plan
from engine.memory import free_memory, readable_bytes

DRAWINGS = {".svg": plan_svg, ".dot": plan_dot}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_loading(parser)
    add_json(parser)
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
    facts, plan = read_facts(model_path(options.file), load_settings(options))
    if options.json:
        print_json(as_json(facts, plan if options.graph else None))
    else:
        print_facts(facts)
    if (options.graph or options.graph_file) and plan is None:
        raise UnsupportedModelError(facts.problem, facts.advice)
    if options.graph and plan is not None and not options.json:
        print("\n" + plan_text(plan))
    if options.graph_file and plan is not None:
        _draw(plan, options.graph_file)
    return 0


def _draw(plan: Plan, path: Path) -> None:
    try:
        path.write_text(DRAWINGS[path.suffix.lower()](plan), encoding="utf-8")
    except OSError as error:
        raise FolderError(f"The graph could not be written to {path}: {error.strerror}.") from error
    tell(f"graph drawn into {path}")


def print_facts(facts: ModelFacts) -> None:
    memory = facts.memory
    types = ", ".join(
        f"{name} {count / facts.n_parameters:.0%}" for name, count in (facts.types or {}).items()
    )
    rows = {
        "file": f"{facts.path} ({readable_bytes(facts.file_bytes)})",
        "name": facts.name,
        "family": facts.family,
        "licence": facts.licence,
        "parameters": f"{facts.n_parameters / 1e6:,.1f} million" if facts.n_parameters else "",
        "types": types,
        "trained context": f"{facts.context_length:,} tokens" if facts.context_length else "",
        "tokenizer": f"{facts.tokenizer_kind} {facts.tokenizer_rules}, {facts.vocabulary_size:,} tokens",
        "chat template": "yes" if facts.has_template else "no",
    }
    if memory:
        rows["memory needed"] = (
            f"{readable_bytes(memory.peak)} at most, with a context of {memory.context_size:,} tokens "
            f"({readable_bytes(memory.weights)} weights, {readable_bytes(memory.kv_cache)} KV cache, "
            f"{readable_bytes(memory.arena)} arena, {readable_bytes(memory.program)} program and "
            f"vocabulary); {readable_bytes(free_memory())} are free"
        )
        if memory.mapped:
            rows["read in place"] = f"{readable_bytes(memory.mapped)} of the file, as memory allows"
    for label, value in rows.items():
        if value:
            print(f"{label + ':':<17}{one_line(value)}")
    if facts.problem:
        print(f"{'cannot run:':<17}{one_line(facts.problem)} {one_line(facts.advice)}")


def as_json(facts: ModelFacts, plan: Plan | None = None) -> dict[str, object]:
    """The keys of `--json`, as docs/commands.md documents them."""
    memory = facts.memory
    content: dict[str, object] = {
        "file": str(facts.path),
        "file_bytes": facts.file_bytes,
        "name": facts.name,
        "family": facts.family,
        "licence": facts.licence,
        "parameters": facts.n_parameters,
        "types": facts.types or {},
        "main_type": facts.main_type,
        "context_length": facts.context_length,
        "tokenizer": {
            "kind": facts.tokenizer_kind,
            "rules": facts.tokenizer_rules,
            "vocabulary_size": facts.vocabulary_size,
        },
        "has_template": facts.has_template,
        "memory": memory
        and {
            "context_size": memory.context_size,
            "weights": memory.weights,
            "kv_cache": memory.kv_cache,
            "arena": memory.arena,
            "total": memory.total,
            "program": memory.program,
            "peak": memory.peak,
            "mapped": memory.mapped,
            "free": free_memory(),
        },
        "problem": facts.problem,
    }
    if plan is not None:
        content["graph"] = plan_json(plan)
    return content


def plan_json(plan: Plan) -> dict[str, object]:
    """Steps of the computation in order; offset in bytes, null where a step needs no memory of the arena."""
    number = {step.node: index for index, step in enumerate(plan.steps)}
    return {
        "tokens": plan.n_tokens,
        "outputs": plan.n_outputs,
        "arena_bytes": plan.arena_bytes,
        "steps": [
            {
                "operation": step.node.operation,
                "name": step.node.name,
                "shape": list(step.node.shape),
                "offset": step.offset if step.offset >= 0 else None,
                "inputs": [number[source] for source in step.node.inputs],
            }
            for step in plan.steps
        ],
    }
