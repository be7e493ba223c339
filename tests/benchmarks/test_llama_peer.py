"""The peer is compiled as its flavour says, once, and checked before it is compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import llama_peer
from benchmarks.llama_peer import check_flavour, peer_python

WIDE = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | AVX512 = 1 | AVX512_VNNI = 1 | "
NARROW = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | LLAMAFILE = 1 | "
OLD = "CPU : SSE3 = 1 | "


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """What would be run; the question for the instructions is answered with NARROW."""
    done: list[tuple[list[str], dict[str, str]]] = []

    def run(command: list[str], **variables: str) -> str:
        done.append((command, variables))
        return NARROW

    monkeypatch.setattr(llama_peer, "_run", run)
    monkeypatch.setattr(llama_peer, "_cpu_flags", lambda: "avx avx2 fma")
    monkeypatch.setattr(llama_peer, "WORK", tmp_path)
    return done


def test_a_missing_peer_is_compiled_with_the_options_of_its_flavour(
    commands: list[tuple[list[str], dict[str, str]]],
) -> None:
    python = peer_python("avx2")
    (make, _), (install, variables), (ask, _) = commands
    assert make[1:3] == ["-m", "venv"]
    assert install[0] == ask[0] == str(python)
    assert "--no-cache-dir" in install, "a cached wheel may be of the other flavour"
    assert f"{llama_peer.PACKAGE}=={llama_peer.VERSION}" in install
    assert "-DGGML_NATIVE=OFF" in variables["CMAKE_ARGS"] and "AVX512=OFF" in variables["CMAKE_ARGS"]


def test_a_peer_that_is_there_is_only_asked(commands: list[tuple[list[str], dict[str, str]]]) -> None:
    python = llama_peer.WORK / "llama-native" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert peer_python("native") == python
    assert [command[0] for command, _ in commands] == [str(python)]


@pytest.mark.parametrize(
    ("flavour", "info", "flags", "fits"),
    [
        ("native", WIDE, "avx2 avx512f", True),
        ("native", NARROW, "avx2", True),
        ("native", NARROW, "avx2 avx512f", False),
        ("avx2", NARROW, "avx2 avx512f", True),
        ("avx2", WIDE, "avx2 avx512f", False),
        ("avx2", OLD, "avx2", False),
    ],
)
def test_the_instructions_must_fit_the_flavour(
    monkeypatch: pytest.MonkeyPatch, flavour: str, info: str, flags: str, fits: bool
) -> None:
    monkeypatch.setattr(llama_peer, "_cpu_flags", lambda: flags)
    if fits:
        check_flavour(flavour, info)
    else:
        with pytest.raises(RuntimeError, match=r"this llama\.cpp"):
            check_flavour(flavour, info)


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        llama_peer._run(["sh", "-c", "echo no such thing >&2; exit 4"])
