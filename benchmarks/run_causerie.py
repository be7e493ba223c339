"""Causerie as one side of a comparison: loads a model, then does what it is told to, line by line.

Started by `benchmarks.sides`, which tells the protocol.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from typing import Any

import numpy as np

from app.commands.machine import kernel_facts, peak_memory
from app.measurements.speed import SpeedMeter
from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings


def main() -> None:
    task = json.loads(sys.argv[1])
    started = time.perf_counter()
    model = load_model(task["model"], LoadSettings(task["context"], task["threads"], **task["settings"]))
    meter = SpeedMeter(model)
    meter.read(task["first_prompt"])
    seconds = time.perf_counter() - started
    _answer({"load_to_first_token": seconds, "version": f"kernels for {kernel_facts()['cpu_level']}"})
    meter.warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        match order["what"]:
            case "read":
                _answer({"seconds": meter.read(order["tokens"], order["depth"])})
            case "write":
                _answer({"seconds": meter.write(order["tokens"], order["depth"])})
            case "memory":
                _answer({"peak": peak_memory()})
            case "logits":
                _save_logits(model, order)
                _answer({})


def _save_logits(model: LoadedModel, order: dict[str, Any]) -> None:
    # Only here, so that no measurement of time or memory carries what the tests need.
    from tests.helpers.truth import read_logits

    chunk = min(order["chunk"], model.cache_spec.max_batch)
    with closing(model.new_context()) as context:
        np.save(order["file"], read_logits(model, context, order["ids"], chunk))


def _answer(content: dict[str, object]) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    main()
