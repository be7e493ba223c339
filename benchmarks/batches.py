"""Measures how much faster conversations are written together than one alone; into RESULTS.md.

python -m benchmarks.batches [--file q4_0] [--sizes 1,2,4,8]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing, suppress
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.machine import machine_facts
from benchmarks.model_files import FILES, file_path
from benchmarks.results_page import table, write_section
from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from engine.session_group import SessionGroup

SECTION = "batches"
N_PROMPT = 64
EXPLANATION = """\
So many conversations advance by one token in one run (`engine/session_group.py`): the weights are read once
for all of them. Each begins with a prompt of 64 tokens; the figures are medians of runs in alternation, of
tokens of all conversations together.
"""


def write_steps(group: SessionGroup, n_steps: int, rng: np.random.Generator) -> float:
    """Tokens per second of n_steps steps of all members, with any tokens."""
    n_vocabulary = group.model.description.n_vocabulary
    steps = rng.integers(0, n_vocabulary, (n_steps, len(group.sessions)))
    started = perf_counter()
    for tokens in steps.tolist():
        group.decode(dict(enumerate(tokens)))
    return steps.size / (perf_counter() - started)


def measure(model: LoadedModel, sizes: Sequence[int], n_steps: int, repeat: int) -> dict[int, list[float]]:
    """Tokens per second of groups of these sizes, in alternation."""
    rng = np.random.default_rng(1)
    rates: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(repeat):
        for size in sizes:
            with closing(SessionGroup(model, size)) as group:
                for session in group.sessions:
                    prompt = rng.integers(0, model.description.n_vocabulary, N_PROMPT).tolist()
                    for _progress in session.prefill(prompt, lambda: False):
                        pass
                write_steps(group, 2, rng)  # binds the plan
                rates[size].append(write_steps(group, n_steps, rng))
    return rates


def main() -> None:
    options = _parse()
    sizes = [int(size) for size in options.sizes.split(",")]
    settings = LoadSettings(context_size=N_PROMPT + options.steps + 8, threads=options.threads)
    with closing(load_model(file_path(options.file), settings)) as model:
        rates = measure(model, sizes, options.steps, options.repeat)
    alone = median(rates[sizes[0]])
    rows = [[str(size), f"{median(rates[size]):.1f}", f"{median(rates[size]) / alone:.2f}"] for size in sizes]
    result = table(["conversations", "tokens/s together", f"times {sizes[0]}"], rows)
    print(result)
    if options.keep:
        facts = machine_facts()
        about = ", ".join((FILES[options.file].title, facts["date"], facts["CPU"]))
        write_section(SECTION, f"## Conversations written together\n\n{about}\n\n{result}\n\n{EXPLANATION}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", choices=list(FILES), default="q4_0")
    parser.add_argument("--sizes", default="1,2,4,8", help="conversations, with commas between them")
    parser.add_argument("--steps", type=int, default=32, help="tokens that each writes")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int)
    parser.add_argument("--keep", action="store_true", help="write the table into RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
