"""Checks this installation part by part: version, kernels, backends, Qt; with FILE, a short reply."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import app
from app import paths
from app.commands.common import add_json, print_json
from app.commands.machine import kernel_facts
from app.errors import WindowError
from app.library.known_models import known_models, model_path
from app.terminal import one_line
from engine.backends.registry import probe_all
from engine.errors import BackendError, CauserieError, KernelsError
from engine.generation import generate
from engine.model import load_model
from engine.requests import CompletionRequest, Finished, LoadSettings, SamplingSettings
from engine.session import Session

QT_SECONDS = 60
SELFTEST_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, whether it is well, and what was found."""

    name: str
    ok: bool
    details: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="write a few tokens with this model"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    parts: dict[str, Callable[[], str]] = {
        "version": _version,
        "resources": _resources,
        "kernels": _kernels,
        "backends": _backends,
        "window": _window,
    }
    if options.file:
        parts["model"] = lambda: _model(model_path(options.file))
    checks = []
    for name, look in parts.items():
        checks.append(_check(name, look))
        if not options.json:
            found = checks[-1]
            print(
                f"{'ok' if found.ok else 'FAILED':<7} {name + ':':<11} {one_line(found.details)}", flush=True
            )
    ok = all(check.ok for check in checks)
    if options.json:
        rows = [{"name": check.name, "ok": check.ok, "details": check.details} for check in checks]
        print_json({"ok": ok, "checks": rows})
    else:
        print("all is well" if ok else "something is wrong, see above")
    return 0 if ok else 1


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except CauserieError as error:
        return Check(name, False, str(error))
    except Exception as error:  # a self-test tells of any fault instead of dying of the first
        return Check(name, False, f"{type(error).__name__}: {error}")


def _version() -> str:
    form = "single file" if paths.is_frozen() else "from source"
    python = platform.python_version()
    return f"Causerie {app.__version__} ({form}), Python {python}, {platform.system()} {platform.machine()}"


def _resources() -> str:
    return f"{len(known_models())} known model(s)"


def _kernels() -> str:
    facts = kernel_facts()
    if not facts["kernels_compiled"]:
        raise KernelsError("The kernels are not compiled.")
    return f"compiled, level {facts['cpu_level']}"


def _backends() -> str:
    probes = probe_all()
    if not probes["cpu"].available:
        raise BackendError(f"The cpu backend does not work: {probes['cpu'].reason}")
    found = [
        f"{name} ({probe.device})" if probe.available else f"{name} (not here: {probe.reason})"
        for name, probe in probes.items()
    ]
    return ", ".join(found)


def _window() -> str:
    """Starts Qt in a process of its own, which it ends where it finds no platform to draw on."""
    context = multiprocessing.get_context("spawn")
    answers, sender = context.Pipe(duplex=False)
    process = context.Process(target=_start_qt, args=(sender,), daemon=True)
    process.start()
    sender.close()
    try:
        if answers.poll(QT_SECONDS):
            return str(answers.recv())
    except EOFError:
        process.join(QT_SECONDS)
    finally:
        process.kill()
        process.join()
    raise WindowError(f"Qt ended with the status {process.exitcode} when it was started.")


def _start_qt(answers: multiprocessing.connection.Connection) -> None:
    """The child: sends a sentence about Qt.  Without a display it draws into memory."""
    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    try:
        from app.ui.qt_facts import qt_facts
    except ImportError as error:
        answers.send(f"no window here: {error}")
    else:
        answers.send(qt_facts())


def _model(path: Path) -> str:
    with contextlib.closing(load_model(path, LoadSettings(context_size=128))) as model:
        ids = tuple(model.tokenizer.encode("Once upon a time", parse_special=False, add_special=True))
        request = CompletionRequest(ids, SamplingSettings(temperature=0), SELFTEST_TOKENS)
        with contextlib.closing(Session(model)) as session:
            *_, last = generate(session, request, lambda: False)
    assert isinstance(last, Finished), "generation always ends with Finished"
    speed = last.timings.write_tokens_per_second
    return f"{path.name} wrote {len(last.ids)} tokens ({speed:.1f} per second): {last.text!r}"
