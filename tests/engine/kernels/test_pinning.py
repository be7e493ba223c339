"""Pinned threads, in processes of their own, since pinning lasts as long as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import SettingsError
from engine.kernels.loader import load_kernel
from engine.kernels.pinning import pin_threads
from tests.helpers.tiny_model import write_tiny_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

CORES_OF_THREADS = """
import json, os, sys, threading, time
from contextlib import closing
from pathlib import Path
from engine.memory import usable_cores
from engine.model import load_model
from engine.requests import LoadSettings
from engine.session import Session

def cores():
    for thread in threading.enumerate():
        if thread.name == "causerie-huge-pages":  # computes nothing
            thread.join()
    time.sleep(0.2)  # a thread that has ended stays in the list for a moment
    found = []
    for status in Path("/proc/self/task").glob("*/status"):
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        found.append([int(lines["Pid"]), lines["Cpus_allowed_list"].strip()])
    return sorted(found)

def work():
    settings = LoadSettings(threads=int(sys.argv[2]), pin_threads=sys.argv[3] == "pin")
    with closing(load_model(sys.argv[1], settings)) as model, closing(Session(model)) as session:
        before = cores()  # the kernels have run: weights are packed
        session.decode(5)
        with closing(load_model(sys.argv[1], settings)):  # asked for again: nothing to be done
            pass
        print(json.dumps([os.getpid(), threading.get_native_id(), before, cores(), usable_cores()]))

worker = threading.Thread(target=work)
worker.start()
worker.join()
"""


def cores_of_threads(path: Path, threads: int, pin: bool, allowed: set[int]) -> tuple[str, list[str], int]:
    """The cores that the main thread may use, those of the computing threads, and how many are usable."""
    environment = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    result = subprocess.run(
        [sys.executable, "-c", CORES_OF_THREADS, str(path), str(threads), "pin" if pin else "free"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    main, worker, before, after, usable = json.loads(result.stdout)
    # the library may replace a thread by another, on the same core
    assert [cores for _, cores in before] == [cores for _, cores in after]
    of_thread = dict(map(tuple, after))
    others = [cores for thread, cores in after if thread > worker]  # started by the worker's kernels
    return of_thread[main], sorted([of_thread[worker], *others]), usable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", quant_type="Q8_0")


@pytest.mark.skipif(len(CORES) < 2, reason="there is one core only")
def test_each_thread_gets_a_core_and_the_main_thread_is_left_alone(path: Path) -> None:
    main, threads, usable = cores_of_threads(path, 2, True, set(CORES[:2]))
    assert threads == sorted(str(core) for core in CORES[:2])
    assert "-" in main or "," in main
    assert usable == 2


@pytest.mark.skipif(len(CORES) < 2, reason="there is one core only")
def test_without_asking_no_thread_is_pinned(path: Path) -> None:
    main, threads, _ = cores_of_threads(path, 2, False, set(CORES[:2]))
    assert set(threads) == {main}


def test_only_cores_that_the_process_may_use(path: Path) -> None:
    last = CORES[-1]
    assert cores_of_threads(path, 2, True, {last}) == (str(last), [str(last)] * 2, 1)


def test_too_late_is_told() -> None:
    pin_threads.cache_clear()
    load_kernel("rms_norm")
    with pytest.raises(SettingsError, match="before the first model") as caught:
        pin_threads()
    assert "Start the program again" in caught.value.advice


def test_a_system_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    pin_threads.cache_clear()
    with pytest.raises(SettingsError, match="macOS"):
        pin_threads()
