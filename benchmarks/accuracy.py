"""How far the next token of each program is from a float64 computation of the same file; into RESULTS.md.

    python -m benchmarks.accuracy [--files gemma]

For 200 positions of running text, the distribution of the next token is compared with that of the tests' slow
reference (tests/helpers/slow_reference.py).  The reference takes a minute per model, once: its answers are
kept in work/.  RESULTS.md is written when all files are compared.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.arguments import names_of
from benchmarks.llama_peer import PACKAGE, VERSION, WORK, peer_python
from benchmarks.machine import machine_facts
from benchmarks.model_files import FILES, file_path
from benchmarks.results_page import table, write_section
from benchmarks.sides import Program, Side, causerie, llama
from engine.gguf.reader import GGUFFile
from engine.kernels.loader import current_level
from engine.memory import usable_cores
from engine.tokenizers import load_tokenizer
from tests.helpers.slow_reference import log_softmax, reference_logits
from tests.helpers.truth import N_TEXT, RUNNING_TEXT, mean_divergence

REAL_FILES = [name for name, file in FILES.items() if not file.is_large]
CONTEXT = 512
SURE = 0.05
"""Apart in log-probability: where the reference's best two are closer, either may be taken."""
WAYS = {"together": N_TEXT, "one by one": 1}
"""How the text is read -> tokens per batch at most; programs compute one token differently from many."""
EXPLANATION = f"""\
The first {N_TEXT} tokens of a text (`tests/data/text/harbour.txt`), and after each of them the distribution
of the next, compared with a computation in float64 of the same file (`tests/helpers/slow_reference.py`).

- **divergence**: the mean Kullback-Leibler divergence from the float64 distribution, in nats; 0 is perfect.
- **same choice**: at how many positions the likeliest token is the same, of those where the best two of the
  float64 computation are more than {SURE} apart in log-probability.
- Keys and values lie in half precision (llama.cpp too) but where 8 bits are named.
- **together**, **one by one**: in batches, as a program reads a prompt, or each alone, as in writing.
"""


@dataclass(frozen=True)
class Accuracy:
    """divergence in nats; n_same of the n_sure positions where the reference is sure."""

    divergence: float
    n_same: int
    n_sure: int


def judge(wanted: NDArray[np.float32], given: NDArray[np.float32]) -> Accuracy:
    """Both float32[positions, vocabulary] logits."""
    second, first = np.sort(np.partition(log_softmax(wanted.astype(np.float64)), -2, axis=-1)[:, -2:]).T
    sure = first - second > SURE
    same = (wanted.argmax(axis=-1) == given.argmax(axis=-1)) & sure
    return Accuracy(mean_divergence(wanted, given), int(same.sum()), int(sure.sum()))


def reference(file: str, path: Path, ids: list[int]) -> NDArray[np.float32]:
    """float32[ids, vocabulary]: the reference's logits, out of work/ where they lie there."""
    kept = WORK / f"reference-{file}.npz"
    if kept.exists():
        with np.load(kept) as content:
            if content["ids"].tolist() == ids:
                return np.asarray(content["logits"], np.float32)
    print(f"{FILES[file].title}: computing in float64 …", file=sys.stderr, flush=True)
    logits = reference_logits(path, ids).astype(np.float32)
    WORK.mkdir(exist_ok=True)
    np.savez(kept, ids=np.array(ids), logits=logits)
    return logits


def variants() -> dict[str, Program]:
    """Name in the table -> what to run."""
    return {
        "Causerie": causerie(),
        "Causerie, KV cache in 8 bits": causerie(kv="q8"),
        "llama.cpp": llama(peer_python("native")),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares both programs with a float64 computation.")
    add = parser.add_argument
    add("--files", type=names_of(REAL_FILES), default=REAL_FILES, help=f"of {','.join(REAL_FILES)}")
    options = parser.parse_args()
    rows = []
    try:
        for file in options.files:
            rows += _rows(file)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    result = table(["file", "program", "divergence", "same choice", "tokens read"], rows)
    print(result)
    if set(options.files) == set(REAL_FILES):
        facts = machine_facts() | {"kernels": current_level(), "llama.cpp": f"{PACKAGE} {VERSION}"}
        lines = "\n".join(f"- {label}: {text}" for label, text in facts.items())
        write_section("accuracy", f"## Accuracy\n\n{lines}\n\n{result}\n\n{EXPLANATION}")
    return 0


def _rows(file: str) -> list[list[str]]:
    path = file_path(file)
    with GGUFFile.open(path) as gguf:
        tokenizer = load_tokenizer(gguf.metadata)
        ids = tokenizer.encode(RUNNING_TEXT, parse_special=False, add_special=True)[:N_TEXT]
    wanted = reference(file, path, ids)
    rows = []
    for name, program in variants().items():
        with Side(program, path, CONTEXT, usable_cores()) as side:
            for way, chunk in WAYS.items():
                found = judge(wanted, side.logits(ids, chunk))
                same = f"{found.n_same} of {found.n_sure}"
                rows.append([FILES[file].title, name, f"{found.divergence:.1e}", same, way])
    return rows


if __name__ == "__main__":
    sys.exit(main())
