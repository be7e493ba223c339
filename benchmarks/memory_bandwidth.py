"""Measures how fast this machine reads memory, with one thread and with one per core; into RESULTS.md.

python -m benchmarks.memory_bandwidth
"""

from __future__ import annotations

from app.measurements.memory_bandwidth import ARRAY_BYTES, PASSES, memory_bandwidth
from benchmarks.machine import machine_facts
from benchmarks.results_page import table, write_section
from engine.memory import readable_bytes, usable_cores

EXPLANATION = f"""\
The best of {PASSES} passes over an array of {readable_bytes(ARRAY_BYTES)}, each thread looking for the
largest number of its part. Writing a token reads all weights once, so this is the limit of writing.
"""


def main() -> None:
    rows = [
        [str(threads), f"{memory_bandwidth(threads) / 1e9:.1f}"] for threads in sorted({1, usable_cores()})
    ]
    result = table(["threads", "GB/s"], rows)
    print(result)
    facts = machine_facts()
    about = ", ".join(facts[label] for label in ("date", "CPU", "memory"))
    write_section("memory bandwidth", f"## Memory bandwidth\n\n{about}\n\n{result}\n\n{EXPLANATION}")


if __name__ == "__main__":
    main()
