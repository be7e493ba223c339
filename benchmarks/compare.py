"""Measures Causerie and llama.cpp in alternation, prints how they compare, and keeps the table in RESULTS.md.

    python -m benchmarks.compare                                        everything
    python -m benchmarks.compare --files q4_0 --only write --pairs 3    one number, in a minute

The first run compiles llama.cpp (llama_peer.py) and makes or fetches the files (model_files.py).  RESULTS.md
is written by a run of everything, or where --keep asks for it.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

from benchmarks.arguments import names_of
from benchmarks.llama_peer import PACKAGE, VERSION, peer_python, system_info
from benchmarks.machine import machine_facts
from benchmarks.model_files import FILES
from benchmarks.pairs import Pair, compare
from benchmarks.parts import LOADING, Match, measure_at_depth, measure_loading, measure_speed
from benchmarks.results_page import table, write_section
from benchmarks.sides import causerie, llama
from engine.kernels.loader import current_level
from engine.memory import usable_cores

PARTS = ("write", "read", "depth", "avx2", "load")
AVX2 = "x86-64-v3"
EXPLANATION = """\
Both programs run the same file with the same threads, one after the other, again and again. A pair is one
run of each, in processes of their own (at a depth, of two processes that stay, since filling the cache takes
long). The ratio is the median of the pairs' ratios, above 1 where Causerie is better; behind it are the
lowest and the highest. The two figures before it are medians over all runs.

- **write 128**: 128 tokens, one after the other, each the likeliest: evaluation and the choice.
- **read 512**: a prompt of 512 tokens, in batches as the program likes, until the logits after the last.
- **at 4,096**: the same behind 4,096 tokens that are in the KV cache already.
- **AVX2**: Causerie with `CAUSERIE_CPU_LEVEL=x86-64-v3`, llama.cpp compiled for AVX2, FMA and F16C only.
- **load to first token**: from opening the file, which the system has in memory, to the logits after a
  prompt of 8 tokens. Then the same from the start of the process, Python included, and the most memory until
  then, mapped file included.

Causerie is called as its own chat calls it (`Session.prefill` and `decode`), without text and sampling;
llama.cpp by `llama_decode` through ctypes, at its defaults but for the threads and batches of 512
(`run_llama.py`). Both keep keys and values in half precision.
"""


def main() -> int:
    options = _parse()
    try:
        pairs = _measure(options)
        machine = machine_facts() | {
            "threads, pairs": f"{options.threads}, {options.pairs}",
            "kernels": current_level(),
            "llama.cpp": f"{PACKAGE} {VERSION}; {system_info(peer_python('native'))}",
        }
        if "avx2" in options.only:
            machine["llama.cpp for AVX2"] = system_info(peer_python("avx2"))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    speed = _speed_table(pairs)
    print(speed)
    if options.keep or (set(options.files), set(options.only)) == (set(FILES), set(PARTS)):
        facts = "\n".join(f"- {label}: {text}" for label, text in machine.items())
        write_section("speed", f"## Speed beside llama.cpp\n\n{facts}\n\n{speed}\n\n{EXPLANATION}")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares the speed of Causerie and llama.cpp.")
    add = parser.add_argument
    add("--files", type=names_of(FILES), default=list(FILES), help=f"of {','.join(FILES)}")
    add("--only", type=names_of(PARTS), default=list(PARTS), help=f"of {','.join(PARTS)}")
    add("--pairs", type=int, default=5, metavar="N", help="pairs of runs (default 5)")
    add("--threads", type=int, default=usable_cores(), metavar="N", help="of both (default: the cores)")
    add("--keep", action="store_true", help="write RESULTS.md though not everything is measured")
    options = parser.parse_args()
    if options.pairs < 1 or options.threads < 1:
        parser.error("--pairs and --threads must be at least 1")
    return options


def _measure(options: argparse.Namespace) -> dict[tuple[str, str], list[Pair]]:
    """(title of a file, measure) -> pairs, in the order of the table.

    Raises RuntimeError where a program fails.
    """
    pairs: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    whats = [what for what in ("write", "read") if what in options.only]
    native = llama(peer_python("native"))
    for file in options.files:
        best = Match(file, causerie(), native, options.threads, options.pairs)
        runs = []
        if whats:
            runs.append(("", measure_speed(best, whats)))
        if "depth" in options.only and FILES[file].is_large:
            runs.append(("", measure_at_depth(best, ["write", "read"])))
        if "avx2" in options.only and FILES[file].is_large:
            narrow = Match(file, causerie(AVX2), llama(peer_python("avx2")), options.threads, options.pairs)
            runs.append((", AVX2", measure_speed(narrow, ["write", "read"])))
        if "load" in options.only:
            runs.append(("", measure_loading(best)))
        for note, run in runs:
            for name, pair in run:
                pairs[best.title, name + note].append(pair)
    return pairs


def _speed_table(pairs: dict[tuple[str, str], list[Pair]]) -> str:
    rows = []
    for (title, name), measured in pairs.items():
        result = compare(measured, less_is_better=name in LOADING)
        rows.append(
            [
                title,
                name,
                _three_digits(result.ours),
                _three_digits(result.theirs),
                f"**{result.ratio:.2f}**",
                f"{result.lowest:.2f} to {result.highest:.2f}",
            ]
        )
    return table(["file", "measure", "Causerie", "llama.cpp", "ratio", "lowest to highest"], rows)


def _three_digits(number: float) -> str:
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
