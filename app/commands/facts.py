"""The facts of a model file, printed for a person or as the object that `--json` documents."""

from __future__ import annotations

from app.library.model_facts import Memory, ModelFacts, TemplateFacts
from app.terminal import one_line
from engine.graph.plan import Plan
from engine.memory import free_memory, readable_bytes


def print_facts(facts: ModelFacts) -> None:
    rows = [
        ("file", f"{facts.path} ({readable_bytes(facts.file_bytes)}{_in_files(facts)})"),
        ("name", facts.name),
        ("family", facts.family),
        ("licence", facts.licence),
        ("parameters", f"{facts.n_parameters / 1e6:,.1f} million" if facts.n_parameters else ""),
        ("types", _types(facts)),
        ("trained context", f"{facts.context_length:,} tokens" if facts.context_length else ""),
        ("tokenizer", _tokenizer(facts)),
        ("chat template", _template(facts.template) if facts.template else ""),
        ("memory needed", _memory(facts.memory) if facts.memory else ""),
        ("read in place", _in_place(facts.memory) if facts.memory and facts.memory.mapped else ""),
        ("cannot run", f"{facts.problem} {facts.advice}".strip()),
        *(("notice", notice) for notice in _notices(facts)),
    ]
    for label, value in rows:
        if value:
            print(f"{label + ':':<17}{one_line(value)}")


def _in_files(facts: ModelFacts) -> str:
    return f" in {len(facts.files)} files" if len(facts.files) > 1 else ""


def _types(facts: ModelFacts) -> str:
    """Such as "Q4_1 80% (209 tensors), F32 20% (61)"."""
    tensors = facts.type_tensors or {}
    shares = []
    for name, count in (facts.types or {}).items():
        n = tensors.get(name, 0)
        shares.append(f"{name} {count / facts.n_parameters:.0%} ({n} tensor{'' if n == 1 else 's'})")
    return ", ".join(shares)


def _tokenizer(facts: ModelFacts) -> str:
    if not facts.tokenizer_kind:
        return ""
    text = f"{facts.tokenizer_kind}, {facts.vocabulary_size:,} tokens"
    if facts.tokenizer_rule:
        text += f", split by the rule {facts.tokenizer_rule}"
    return f"{text}. {facts.tokenizer_reason}" if facts.tokenizer_reason else text


def _template(template: TemplateFacts) -> str:
    """What is in use, why, and what else the file has."""
    if template.origin == "none":
        return f"none. {template.reason}"
    text = f"{template.name}, of the {template.origin}. {template.reason}"
    if len(template.names) > 1:
        text += f" All in the file: {', '.join(template.names)}."
    return text


def _memory(memory: Memory) -> str:
    return (
        f"{readable_bytes(memory.peak)} at most, with a context of {memory.context_size:,} tokens "
        f"({readable_bytes(memory.weights)} weights, {readable_bytes(memory.kv_cache)} KV cache, "
        f"{readable_bytes(memory.arena)} arena, {readable_bytes(memory.program)} program and "
        f"vocabulary); {readable_bytes(free_memory())} are free"
    )


def _notices(facts: ModelFacts) -> list[str]:
    """Those of the file, and what is true at the moment: that it needs more memory than is free."""
    memory = facts.memory
    if memory is None or memory.total <= (free := free_memory()):
        return list(facts.notices)
    lack = f"It needs {readable_bytes(memory.total)}, and {readable_bytes(free)} of memory are free."
    return [*facts.notices, f"{lack} A smaller context (--context), or --kv q8, needs less."]


def _in_place(memory: Memory) -> str:
    return f"{readable_bytes(memory.mapped)} of the file, as memory allows"


def as_json(facts: ModelFacts, plan: Plan | None = None) -> dict[str, object]:
    """The keys of `--json`, as docs/commands.md documents them."""
    memory, template = facts.memory, facts.template
    content: dict[str, object] = {
        "file": str(facts.path),
        "files": [str(facts.path.with_name(name)) for name in facts.files],
        "file_bytes": facts.file_bytes,
        "name": facts.name,
        "family": facts.family,
        "licence": facts.licence,
        "parameters": facts.n_parameters,
        "types": facts.types or {},
        "type_tensors": facts.type_tensors or {},
        "main_type": facts.main_type,
        "context_length": facts.context_length,
        "tokenizer": {
            "kind": facts.tokenizer_kind,
            "rules": facts.tokenizer_rules,
            "rule_in_use": facts.tokenizer_rule,
            "reason": facts.tokenizer_reason,
            "vocabulary_size": facts.vocabulary_size,
        },
        "has_template": facts.has_template,
        "template": template
        and {
            "name": template.name,
            "origin": template.origin,
            "reason": template.reason,
            "in_file": list(template.names),
        },
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
        "advice": facts.advice,
        "notices": _notices(facts),
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
