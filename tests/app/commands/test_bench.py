"""`bench`: what it reports, and what it refuses before measuring anything."""

import re
from pathlib import Path

import pytest

FAKE = ("--backend", "fake")
DOCUMENTATION = Path(__file__).parents[3] / "docs/commands.md"


def test_what_it_reports(call_json, tiny_path):
    result = call_json("bench", tiny_path, *FAKE, "-p", 20, "-n", 4, "--repeat", 2)
    for name in ("read_tokens_per_second", "write_tokens_per_second", "first_token_seconds", "load_seconds"):
        assert result[name] > 0, name
    assert result["peak_memory_bytes"] > 1 << 20
    assert result["context_size"] == 20
    share = result["weight_bytes_per_token"] * result["write_tokens_per_second"] / result["memory_bandwidth"]
    assert result["share_of_bandwidth"] == pytest.approx(share)
    assert result["kernels"] == [] or result["cpu_level"] != "python"


def test_every_key_is_documented_and_the_other_way_round(call_json, tiny_path):
    result = call_json("bench", tiny_path, *FAKE, "-p", 2, "-n", 2, "--repeat", 1)
    paragraph = DOCUMENTATION.read_text(encoding="utf-8").split("**bench**: ")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", paragraph)) == set(result)


def test_for_a_person(call, tiny_path):
    status, out, _ = call("bench", tiny_path, *FAKE, "-p", 20, "-n", 4, "--repeat", 1, "-t", 3, "--depth", 7)
    assert status == 0
    assert "reading:" in out and "(20 behind 7 others)" in out and "3 threads" in out


def test_the_kernels_that_ran_are_named(call_json, smollm2_path):
    result = call_json("bench", smollm2_path, "-p", 20, "-n", 2, "--repeat", 1)
    assert {"matvec_q4_1", "attention", "rms_norm"} <= set(result["kernels"])
    assert result["kernels_compiled"]


@pytest.mark.parametrize(
    ("sizes", "needed"),
    [
        (["-p", 20, "-n", 4], 20),
        (["-p", 2, "-n", 19], 20),
        (["-p", 1, "-n", 1], 16),
        (["-p", 20, "-n", 30, "--depth", 50], 80),
    ],
)
def test_the_context_holds_what_is_measured(call, call_json, tiny_path, sizes, needed):
    assert call_json("bench", tiny_path, *FAKE, *sizes, "--repeat", 1, "-c", needed)["context_size"] == needed
    status, out, err = call("bench", tiny_path, *FAKE, *sizes, "-c", needed - 1)
    assert (status, out) == (2, "")
    assert f"cannot hold {needed}" in err


@pytest.mark.parametrize("wrong", [["-p", 0], ["-n", 0], ["--repeat", 0], ["--depth", -1]])
def test_impossible_numbers_are_refused(call, tiny_path, wrong):
    status, out, err = call("bench", tiny_path, *FAKE, *wrong)
    assert (status, out) == (2, "")
    assert "must be at least" in err
