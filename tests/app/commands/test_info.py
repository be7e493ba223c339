"""`info`: facts of files that can be run, that cannot, and that hold a vocabulary only; the graph."""

from xml.etree import ElementTree

import pytest

from tests.helpers.tiny_model import write_tiny_model

FAKE = ("--backend", "fake")


def test_facts_as_json(call_json, tiny_path):
    facts = call_json("info", tiny_path, *FAKE)
    assert facts["family"] == "llama" and facts["name"] == "Tiny llama"
    assert facts["file_bytes"] == tiny_path.stat().st_size
    assert sum(facts["types"].values()) == facts["parameters"] > 0
    assert facts["main_type"] == "F32" and facts["context_length"] == 512
    assert facts["tokenizer"] == {"kind": "gpt2", "rules": "gpt-2", "vocabulary_size": 300}
    assert facts["has_template"] is True and facts["problem"] == "" and "graph" not in facts
    memory = facts["memory"]
    assert memory["total"] == memory["weights"] + memory["kv_cache"] + memory["arena"]
    assert memory["context_size"] == 512 and memory["free"] > 0


def test_facts_as_text(call, tiny_path):
    status, out, _ = call("info", tiny_path, *FAKE, "-c", "64")
    assert status == 0
    for part in ("Tiny llama", "llama", "F32", "512 tokens", "context of 64 tokens", "chat template:"):
        assert part in out


def test_a_cache_in_eight_bits_needs_less_memory(call_json, tiny_path):
    half, eight = (call_json("info", tiny_path, "--kv", kv)["memory"]["kv_cache"] for kv in ("f16", "q8"))
    # Heads of 16 numbers: two bytes each, or one and a scale of four bytes.
    assert eight == half * 20 // 32


def test_a_family_we_lack_is_described_all_the_same(call, call_json, tmp_path):
    path = write_tiny_model(tmp_path / "x.gguf", metadata={"general.architecture": "mamba9"})
    facts = call_json("info", path, *FAKE)
    assert facts["family"] == "mamba9" and facts["memory"] is None and "mamba9" in facts["problem"]
    status, out, _ = call("info", path, *FAKE)
    assert status == 0 and "cannot run" in out
    status, _, err = call("info", path, *FAKE, "--graph")
    assert status == 1 and "mamba9" in err


def test_the_graph_in_every_form(call, call_json, tiny_path, tmp_path):
    status, out, _ = call("info", tiny_path, *FAKE, "--graph")
    assert status == 0 and "arena" in out and "attention" in out
    graph = call_json("info", tiny_path, *FAKE, "--graph")["graph"]
    assert f"arena {graph['arena_bytes']} bytes" in out and f"{len(graph['steps'])} steps" in out
    offsets = [step["offset"] for step in graph["steps"] if step["offset"] is not None]
    assert offsets and all(0 <= offset < graph["arena_bytes"] and offset % 64 == 0 for offset in offsets)
    assert all(source < number for number, step in enumerate(graph["steps"]) for source in step["inputs"])

    assert call("info", tiny_path, *FAKE, "--graph-file", tmp_path / "g.svg")[0] == 0
    assert ElementTree.parse(tmp_path / "g.svg").getroot().tag.endswith("svg")
    assert call("info", tiny_path, *FAKE, "--graph-file", tmp_path / "g.DOT")[0] == 0
    assert (tmp_path / "g.DOT").read_text().startswith("digraph")


def test_a_graph_file_that_cannot_be_written(call, tiny_path, tmp_path):
    assert call("info", tiny_path, *FAKE, "--graph-file", tmp_path / "g.png")[0] == 2
    status, _, err = call("info", tiny_path, *FAKE, "--graph-file", tmp_path / "none" / "g.svg")
    assert status == 1 and "could not be written" in err


@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb", "\u202e"])
def test_a_hostile_name_does_not_reach_the_terminal(call, tmp_path, name):
    path = write_tiny_model(tmp_path / "x.gguf", metadata={"general.name": name + "end"})
    _, out, _ = call("info", path, *FAKE)
    assert "\x1b" not in out and "\nb" not in out and "end" in out
