"""Measures what a JSON Schema costs while writing, against writing the same tokens freely; into RESULTS.md.

python -m benchmarks.constrained [--file smollm2] [--repeat 7]
"""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.machine import machine_facts
from benchmarks.model_files import FILES, file_path
from benchmarks.results_page import table, write_section
from engine.generation import generate
from engine.grammar.expressions import Grammar
from engine.grammar.json_schema import schema_grammar
from engine.model import LoadedModel, load_model
from engine.requests import CompletionRequest, Finished, LoadSettings, SamplingSettings
from engine.session import Session

SECTION = "constrained"
PROMPT = "Describe the harbour, the people in it, and what each of them carries, as JSON:\n"
SCHEMAS: dict[str, dict[str, Any]] = {
    "any JSON object": {"type": "object"},
    "a list of people": {
        "type": "array",
        "minItems": 12,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "minimum": 1, "maximum": 99},
                "carries": {"type": "array", "items": {"enum": ["nets", "rope", "fish", "nothing"]}},
                "remark": {"type": ["string", "null"]},
            },
            "required": ["name", "age", "carries", "remark"],
        },
    },
    "texts of bounded length": {
        "type": "array",
        "minItems": 20,
        "items": {"type": "string", "minLength": 20, "maxLength": 60},
    },
}
EXPLANATION = """\
Each reply is written under the schema and then freely, in alternation, with the default sampling and other
seeds; a reply ends by itself or at the number of tokens named. The cost is the median over pairs of the time
for a token under the schema over that of a token of the free reply.
"""


def seconds_per_token(session: Session, grammar: Grammar | None, seed: int, n_tokens: int) -> float:
    prompt = tuple(session.model.tokenizer.encode(PROMPT, parse_special=False, add_special=True))
    request = CompletionRequest(prompt, SamplingSettings(seed=seed), n_tokens, grammar=grammar)
    started = perf_counter()
    *_, finished = generate(session, request, lambda: False)
    assert isinstance(finished, Finished)
    seconds = perf_counter() - started - finished.timings.prompt_seconds
    return seconds / max(1, len(finished.ids))


def measure(model: LoadedModel, repeat: int, n_tokens: int) -> list[list[str]]:
    rows = []
    with closing(Session(model)) as session:
        seconds_per_token(session, None, 0, n_tokens)
        for name, schema in SCHEMAS.items():
            grammar = schema_grammar(schema)
            pairs = [
                (
                    seconds_per_token(session, grammar, seed, n_tokens),
                    seconds_per_token(session, None, seed, n_tokens),
                )
                for seed in range(repeat)
            ]
            costs = [held / free - 1 for held, free in pairs]
            spread = f"{min(costs):+.0%} to {max(costs):+.0%}"
            rate = 1 / median(held for held, _ in pairs)
            rows.append([name, f"{rate:.0f}", f"{median(costs):+.1%}", spread])
    return rows


def main() -> None:
    options = _parse()
    settings = LoadSettings(context_size=1024, threads=options.threads)
    with closing(load_model(file_path(options.file), settings)) as model:
        model.weights.settle()
        rows = measure(model, options.repeat, options.tokens)
    result = table(["schema", "tokens/s", "cost", "spread"], rows)
    print(result)
    if options.keep:
        facts = machine_facts()
        title = FILES[options.file].title
        about = ", ".join((title, f"{options.tokens} tokens", facts["date"], facts["CPU"]))
        write_section(SECTION, f"## Writing under a schema\n\n{about}\n\n{result}\n\n{EXPLANATION}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", choices=list(FILES), default="smollm2")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("-t", "--threads", type=int)
    parser.add_argument("--keep", action="store_true", help="write the table into RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
