"""Whether llama.cpp opens what our converter writes, and computes the same.

    python -m benchmarks.families [NAME …]

Each tiny model of tests/fixtures/families is converted in F32 and given to llama.cpp, whose logits are
compared with the truth beside the model.  ``llama_cpp.json`` there keeps, for docs/models.md, the largest
relative L2 at any position of each name (``difference``, null where llama.cpp does not open the file) and a
``note`` where it is not rounding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.llama_peer import PACKAGE, VERSION, peer_python
from engine.conversion import convert_checkpoint
from tests.helpers.family_fixtures import FOLDER, NAMES, truth_of
from tests.helpers.truth import relative_l2

RESULTS = FOLDER / "llama_cpp.json"
RUNNER = Path(__file__).with_name("run_family_in_llama.py")
ROUNDING = 5e-3
"""llama.cpp looks GELU up in a table of half precision.  The same rounding put into `transformers` gives just
these differences: 3.1e-3 for gemma3, 7.2e-4 for gemma2, 3.1e-4 for gpt2.  Without GELU they are near 1e-6."""
TIMEOUT = 120.0

EVERYTHING = "llama.cpp lets every layer see everything in this family"

NOTES = {
    "command-r-qk-norm": "llama.cpp expects norms of q and k in models of 64 layers or more only",
    "exaone4": "llama.cpp has sliding windows in the model of 64 layers only",
    "ministral": EVERYTHING,
    "mistral-sliding": EVERYTHING,
    "phi3-sliding": EVERYTHING,
    "starcoder2-sliding": EVERYTHING,
}
"""Why llama.cpp differs, where it does."""


def difference(python: Path, name: str, folder: Path) -> float | None:
    """None where llama.cpp does not open the file, or has another vocabulary."""
    truth = truth_of(name)
    model, ids, logits = (folder / f"{name}{suffix}" for suffix in (".gguf", ".ids.npy", ".logits.npy"))
    convert_checkpoint(FOLDER / name, model, "f32", vocabulary=False)
    np.save(ids, np.array(truth.ids, np.int32))
    command = [str(python), str(RUNNER), str(model), str(ids), str(logits), str(truth.context_size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        print(f"{name}: {done.stderr[-2000:]}", file=sys.stderr)
        return None
    return float(relative_l2(np.load(logits), truth.logits).max())


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares converted families with llama.cpp.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="fixtures; all of them if none is named")
    parser.add_argument("--python", type=Path, help="of an environment that has llama-cpp-python already")
    options = parser.parse_args()
    python = options.python or peer_python("native")
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["families"] if RESULTS.exists() else {}
    results = {name: known[name] for name in NAMES if name in known}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or NAMES:
            found = difference(python, name, Path(folder))
            results[name] = {
                "difference": None if found is None else float(f"{found:.1e}"),
                "note": NOTES.get(name, ""),
            }
            print(f"{name:24} {'not opened' if found is None else f'{found:.1e}'}  {NOTES.get(name, '')}")
    content = {"program": f"{PACKAGE} {VERSION}", "families": dict(sorted(results.items()))}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    unexplained = [
        name
        for name, result in results.items()
        if not result["note"] and (result["difference"] is None or result["difference"] > ROUNDING)
    ]
    if unexplained:
        print(f"no note says why these differ: {', '.join(unexplained)}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
