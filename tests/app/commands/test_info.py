"""`info`: facts of files that can be run, that cannot, and that hold a vocabulary only; the graph."""

import time
from xml.etree import ElementTree

import pytest

from app.library.model_facts import read_facts
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf, write_gguf_parts
from engine.model import load_model
from engine.requests import LoadSettings
from engine.tokenizers import Tokenizer
from tests.helpers.tiny_model import CHAT_TEMPLATE, write_tiny_model

FAKE = ("--backend", "fake")


def test_more_memory_than_is_free_is_a_notice(call, call_json, tiny_path):
    asked = (tiny_path, "-c", str(2**31 - 1), "--backend", "cpu")
    assert any("of memory are free" in notice for notice in call_json("info", *asked)["notices"])
    assert "--context" in call("info", *asked)[1]


def test_facts_as_json(call_json, tiny_path):
    facts = call_json("info", tiny_path, *FAKE)
    assert facts["family"] == "llama" and facts["name"] == "Tiny llama"
    assert facts["file_bytes"] == tiny_path.stat().st_size
    assert sum(facts["types"].values()) == facts["parameters"] > 0
    assert facts["main_type"] == "F32" and facts["context_length"] == 512
    assert sum(facts["type_tensors"].values()) == 21 and facts["type_tensors"].keys() == facts["types"].keys()
    assert facts["tokenizer"] == {
        "kind": "gpt2",
        "rules": "gpt-2",
        "rule_in_use": "gpt-2",
        "reason": "The file names it.",
        "vocabulary_size": 300,
    }
    assert facts["has_template"] is True and facts["template"]["origin"] == "file"
    assert (facts["problem"], facts["advice"], facts["notices"]) == ("", "", [])
    assert "graph" not in facts and "source" not in facts["template"]
    assert facts["files"] == [str(tiny_path)]
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


def test_the_template_and_a_sample(call, call_json, tiny_path):
    status, out, _ = call("info", tiny_path, *FAKE, "--template")
    assert status == 0 and CHAT_TEMPLATE in out
    sample = out.partition("--- a sample\n")[2]
    assert sample.startswith("<|im_start|>system\n") and sample.endswith("<|im_start|>assistant\n\n")
    template = call_json("info", tiny_path, *FAKE, "--template")["template"]
    assert template["source"] == CHAT_TEMPLATE and template["sample"] + "\n" == sample


def test_a_file_without_a_template_gets_that_of_its_family_or_none(call, call_json, tmp_path):
    path = write_tiny_model(tmp_path / "x.gguf", metadata={"tokenizer.chat_template": None})
    facts = call_json("info", path, *FAKE, "--template")
    assert facts["template"]["origin"] == "family" and "<|im_start|>" in facts["template"]["reason"]
    assert "<|im_start|>" in facts["template"]["sample"]
    kinds = {"tokenizer.chat_template": None, "tokenizer.ggml.token_type": [1] * 300}
    path = write_tiny_model(tmp_path / "y.gguf", metadata=kinds)
    facts = call_json("info", path, *FAKE, "--template")
    assert facts["has_template"] is False and facts["template"]["origin"] == "none"
    assert facts["template"]["source"] == facts["template"]["sample"] == ""
    status, out, err = call("info", path, *FAKE, "--template")
    assert status == 1 and "chat template:" in out and "no chat template" in err


def test_another_template_by_name(call, call_json, tmp_path):
    metadata = {"tokenizer.chat_template.tool_use": "tools", "tokenizer.chat_templates": ["tool_use"]}
    path = write_tiny_model(tmp_path / "x.gguf", metadata=metadata)
    facts = call_json("info", path, *FAKE, "--template", "--chat-template", "tool_use")
    assert facts["template"]["in_file"] == ["default", "tool_use"]
    assert (facts["template"]["name"], facts["template"]["source"]) == ("tool_use", "tools")
    assert "default, tool_use" in call("info", path, *FAKE)[1]
    status, out, err = call("info", path, *FAKE, "--chat-template", "nosuch")
    assert (status, out) == (1, "") and "nosuch" in err


def test_a_hostile_template_is_shown_without_harm(call, tmp_path):
    source = "\x1b[2J{{ lipsum.__globals__['os'] }}{% include 'x' %}"
    path = write_tiny_model(tmp_path / "x.gguf", metadata={"tokenizer.chat_template": source})
    status, out, err = call("info", path, *FAKE, "--template")
    assert status == 1 and "\x1b" not in out + err and "__globals__" in out and "template" in err
    assert "notice:" in out and "not chat" in out


def test_every_notice_is_shown(call, call_json, tmp_path):
    metadata = {
        "tokenizer.ggml.pre": "no-such-rule",
        "tokenizer.ggml.eos_token_id": 300,
        "tokenizer.chat_template": "{% if %}",
    }
    path = write_tiny_model(tmp_path / "x.gguf", metadata=metadata)
    facts = call_json("info", path, *FAKE, "-c", "513")
    assert facts["tokenizer"]["rules"] == "no-such-rule" and facts["tokenizer"]["rule_in_use"] == "default"
    model = load_model(path, LoadSettings(513, backend="fake"))
    told = model.notices
    model.close()
    for part in ("no-such-rule", "eos_token_id", "error in line 1", "trained for 512"):
        assert any(part in notice for notice in facts["notices"]), part
        assert any(part in notice for notice in told), part
    assert call("info", path, *FAKE)[1].count("notice:") == 3


def test_a_damaged_vocabulary_is_the_problem(call_json, tmp_path):
    path = write_tiny_model(tmp_path / "x.gguf", metadata={"tokenizer.ggml.token_type": [1, 2]})
    facts = call_json("info", path, *FAKE)
    assert "tokenizer.ggml.token_type" in facts["problem"] and facts["advice"] and facts["memory"] is None


def test_a_model_in_parts(call, call_json, tiny_path, tmp_path):
    with GGUFFile.open(tiny_path) as file:
        paths = write_gguf_parts(tmp_path / "x.gguf", file.metadata, file.tensors.values(), 200_000)
    single, parts = call_json("info", tiny_path, *FAKE), call_json("info", paths[1], *FAKE)
    assert parts["files"] == [str(path) for path in paths] and len(paths) > 1
    assert parts["file_bytes"] == sum(path.stat().st_size for path in paths)
    for key in ("parameters", "types", "type_tensors", "memory", "tokenizer", "template"):
        left, right = ({**part[key], "free": 0} if key == "memory" else part[key] for part in (single, parts))
        assert left == right
    assert f"in {len(paths)} files" in call("info", paths[1], *FAKE)[1]


def test_a_large_vocabulary_is_described_without_building_its_tokenizer(tmp_path, monkeypatch):
    """The promise is 0.3 s; a busy machine gets ten times that."""
    n_tokens = 262_144
    texts = [f"token {number}" for number in range(n_tokens)]
    path = tmp_path / "large.gguf"
    metadata = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": [1] * n_tokens,
        "tokenizer.ggml.merges": [f"{text} x" for text in texts],
    }
    write_gguf(path, metadata)

    def build(*_, **__):
        raise AssertionError("the tokenizer was built")

    monkeypatch.setattr(Tokenizer, "__init__", build)
    started = time.process_time()
    facts, _ = read_facts(path, LoadSettings(backend="fake"))
    assert time.process_time() - started < 3
    assert facts.vocabulary_size == n_tokens and facts.tokenizer_rule == "llama-bpe"


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


def test_an_endless_name_is_cut(call, call_json, tmp_path):
    metadata = {"general.name": "x" * 10_000_000, "general.architecture": "y" * 10_000_000}
    path = write_tiny_model(tmp_path / "x.gguf", metadata=metadata)
    _, out, _ = call("info", path, *FAKE)
    assert "name:            xxx" in out and len(out) < 20_000
    assert call_json("info", path, *FAKE)["name"] == "x" * 500
