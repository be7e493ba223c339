"""Causerie as one side of a comparison: loads a model, then measures what it is told to, line by line.

Started by `benchmarks.sides`, which tells the protocol.
"""

from __future__ import annotations

import json
import sys
import time

import psutil

from app.commands.machine import kernel_facts, peak_memory
from app.measurements.speed import SpeedMeter
from engine.model import load_model
from engine.requests import LoadSettings


def main() -> None:
    task = json.loads(sys.argv[1])
    started = time.perf_counter()
    model = load_model(task["model"], LoadSettings(task["context"], task["threads"]))
    meter = SpeedMeter(model)
    meter.read(task["first_prompt"])
    seconds = time.perf_counter() - started
    _answer({"load_to_first_token": seconds, "version": f"kernels for {kernel_facts()['cpu_level']}"})
    meter.write(2)  # one batch of one token, so that no measurement pays for its plan
    for line in sys.stdin:
        order = json.loads(line)
        if order["what"] == "memory":
            _answer({"peak": peak_memory(), "now": psutil.Process().memory_info().rss})
        else:
            measure = {"read": meter.read, "write": meter.write}[order["what"]]
            _answer({"seconds": measure(order["tokens"], order["depth"])})


def _answer(content: dict[str, object]) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    main()
