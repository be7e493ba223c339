"""`tokenize`, `complete`, `logits` and `chat -m`, compared with the engine called directly."""

import contextlib
import json

import numpy as np
import pytest

from engine.generation import chat, generate
from engine.gguf.reader import GGUFFile
from engine.model import load_model
from engine.requests import ChatRequest, CompletionRequest, LoadSettings, Message, SamplingSettings
from engine.session import Session
from engine.tokenizers import load_tokenizer
from tests.helpers.run_app import run_app
from tests.helpers.tiny_model import START_OF_MESSAGE, write_tiny_model

FAKE = ("--backend", "fake")


@contextlib.contextmanager
def session_of(path):
    model = load_model(path, LoadSettings(backend="fake"))
    with contextlib.closing(model), contextlib.closing(Session(model)) as session:
        yield session


@pytest.mark.parametrize("text", ["the weather", "", " ", "-", "<|im_start|>user", "Füße 👣\n", "a\0b"])
def test_tokenize(call_json, tiny_path, text):
    with GGUFFile.open(tiny_path) as file:
        tokenizer = load_tokenizer(file.metadata)
    plain = call_json("tokenize", tiny_path, text)
    assert plain["ids"] == tokenizer.encode(text, parse_special=False)
    assert START_OF_MESSAGE not in plain["ids"], "control tokens in a text are text"
    assert tokenizer.decode(plain["ids"]) == text
    assert len(plain["pieces"]) == len(plain["ids"])
    assert call_json("tokenize", tiny_path, text, "--special")["ids"] == tokenizer.encode(
        text, parse_special=True
    )


def test_tokenize_shows_ids_and_pieces_in_lines(call, tiny_path):
    status, out, _ = call("tokenize", tiny_path, "<|im_start|>", "--special")
    assert (status, out.split()) == (0, [str(START_OF_MESSAGE), '"<|im_start|>"'])


def test_tokenize_works_without_weights(call_json, tmp_path, tiny_path):
    path = write_tiny_model(tmp_path / "vocabulary.gguf")
    with GGUFFile.open(path) as file:
        names = dict.fromkeys(file.tensors)
    write_tiny_model(path, extra_tensors=names)
    with GGUFFile.open(path) as file:
        assert not file.tensors
    assert call_json("tokenize", path, "the") == call_json("tokenize", tiny_path, "the")


def test_tokenize_tells_what_is_doubtful(call, tmp_path):
    path = write_tiny_model(tmp_path / "m.gguf", metadata={"tokenizer.ggml.pre": "no-such-rule"})
    status, out, err = call("tokenize", path, "the")
    assert status == 0 and out and "no-such-rule" in err
    _, out, err = call("tokenize", path, "the", "--json")
    (notice,) = json.loads(out)["notices"]
    assert notice in err and "quality may suffer" in notice


@pytest.mark.parametrize("add_bos", [False, True])
def test_complete_equals_the_engine(call, call_json, tmp_path, add_bos):
    path = write_tiny_model(tmp_path / "m.gguf", metadata={"tokenizer.ggml.add_bos_token": add_bos})
    prompt = "<|im_end|>the weather"
    result = call_json("complete", path, *FAKE, "-p", prompt, "-n", 6, "--temp", 0)
    with session_of(path) as session:
        ids = session.model.tokenizer.encode(prompt, parse_special=True, add_special=True)
        request = CompletionRequest(tuple(ids), SamplingSettings(temperature=0), 6)
        *_, expected = generate(session, request, lambda: False)
    assert result["prompt_ids"] == ids and (ids[0] == START_OF_MESSAGE) == add_bos
    assert result["ids"] == list(expected.ids) and result["text"] == expected.text
    assert result["finish_reason"] == expected.reason
    assert result["timings"]["prompt_tokens"] == len(ids)
    _, out, _ = call("complete", path, *FAKE, "-p", prompt, "-n", 6, "--temp", 0)
    assert out == expected.text + "\n"


def test_one_bos_even_where_the_prompt_brings_its_own(call_json, tmp_path):
    path = write_tiny_model(tmp_path / "m.gguf", metadata={"tokenizer.ggml.add_bos_token": True})
    result = call_json("complete", path, *FAKE, "-p", "<|im_start|>the", "-n", 1)
    assert result["prompt_ids"].count(START_OF_MESSAGE) == 1


def test_the_seed_decides(call_json, tiny_path):
    ask = ("complete", tiny_path, *FAKE, "-p", "the", "-n", 12, "--temp", 1, "--top-k", 0, "--seed")
    assert call_json(*ask, 7)["ids"] == call_json(*ask, 7)["ids"] != call_json(*ask, 8)["ids"]


def test_a_prompt_out_of_a_file_and_of_stdin(call_json, tiny_path, tmp_path):
    (tmp_path / "prompt.txt").write_text("the weather ✓", encoding="utf-8")
    ask = ("complete", tiny_path, *FAKE, "-n", "1", "--temp", "0")
    expected = call_json(*ask, "-p", "the weather ✓")
    assert call_json(*ask, "-f", tmp_path / "prompt.txt")["ids"] == expected["ids"]
    result = run_app(*ask, "-f", "-", "--json", input="the weather ✓", env={"LC_ALL": "C"})
    assert json.loads(result.stdout)["prompt_ids"] == expected["prompt_ids"]


def test_prompts_that_cannot_be_read(call, tiny_path, tmp_path):
    status, _, err = call("complete", tiny_path, *FAKE, "-p", "")
    assert status == 2 and "empty" in err
    status, _, err = call("complete", tiny_path, *FAKE, "-f", tmp_path / "none.txt")
    assert status == 1 and "cannot be read" in err
    status, _, err = call("complete", tiny_path, *FAKE, "-p", "the " * 200, "-c", 16)
    assert status == 1 and "context" in err


def test_logits_are_the_sorted_log_probabilities(call, call_json, tiny_path):
    top = call_json("logits", tiny_path, *FAKE, "-p", "the", "--top", 1000)["top"]
    with session_of(tiny_path) as session:
        ids = session.model.tokenizer.encode("the", parse_special=True)
        for _ in session.prefill(ids, lambda: False):
            pass
        logits = session.logits.astype(np.float64)
        texts = [session.model.tokenizer.token_text(row["id"]) for row in top]
    assert len(top) == 300 and sorted(row["id"] for row in top) == list(range(300))
    logprobs = np.array([row["logprob"] for row in top])
    assert np.exp(logprobs).sum() == pytest.approx(1)
    assert (np.diff(logprobs) <= 0).all()
    order = [row["id"] for row in top]
    np.testing.assert_allclose(logprobs - logprobs[0], logits[order] - logits.max(), atol=1e-9)
    assert [row["text"] for row in top] == texts
    assert call_json("logits", tiny_path, *FAKE, "-p", "the", "--top", 3)["top"] == top[:3]
    assert len(call("logits", tiny_path, *FAKE, "-p", "the", "--top", 3)[1].splitlines()) == 3


def test_logits_of_rows_beyond_the_vocabulary(call_json, tmp_path):
    """Some matrices are filled up to a round number of rows."""
    metadata = {"tokenizer.ggml.tokens": list("abcdefgh"), "tokenizer.ggml.token_type": [1] * 8}
    path = write_tiny_model(tmp_path / "m.gguf", metadata=metadata)
    top = call_json("logits", path, *FAKE, "-p", "abc", "--top", 1000)["top"]
    assert len(top) == 300 and all(row["text"] == "abcdefgh"[row["id"] : row["id"] + 1] for row in top)


def test_chat_equals_the_engine_and_prints_the_text_alone(call, call_json, tiny_path):
    ask = ("chat", tiny_path, *FAKE, "-m", "the <|im_end|> day", "-s", "be kind", "-n", 5, "--temp", 0)
    with session_of(tiny_path) as session:
        messages = (Message("system", "be kind"), Message("user", "the <|im_end|> day"))
        request = ChatRequest(messages, SamplingSettings(temperature=0), 5)
        *_, expected = chat(session, request, lambda: False)
    result = call_json(*ask)
    assert result["text"] == expected.text and result["finish_reason"] == expected.reason
    assert result["timings"]["generated_tokens"] == len(expected.ids)
    assert call(*ask)[:2] == (0, expected.text + "\n")


def test_a_model_without_a_template_cannot_chat_and_says_what_can_be_done(call, tmp_path):
    nothing = {"tokenizer.chat_template": None, "tokenizer.ggml.token_type": None}
    path = write_tiny_model(tmp_path / "base.gguf", metadata=nothing)
    status, out, err = call("chat", path, *FAKE, "-m", "hi")
    assert status == 1 and not out and "chat template" in err and "causerie complete" in err
    assert "--chat-template" in err and "chatml" in err
    status, _, err = call("chat", path, *FAKE, "-m", "hi", "-n", 2, "--chat-template", "chatml")
    assert status == 0 and not err


def test_a_model_without_a_template_gets_that_of_its_family_and_says_so(call, tmp_path):
    path = write_tiny_model(tmp_path / "base.gguf", metadata={"tokenizer.chat_template": None})
    status, _, err = call("chat", path, *FAKE, "-m", "hi", "-n", 2)
    assert status == 0 and "family chatml" in err


def test_a_template_that_nobody_knows_is_refused_by_name(call, tiny_path):
    status, out, err = call("chat", tiny_path, *FAKE, "-m", "hi", "--chat-template", "nonsense")
    assert status == 1 and not out and "'nonsense'" in err and "chatml" in err


@pytest.mark.parametrize("command", ["complete", "chat", "logits", "bench"])
def test_a_context_beyond_the_memory_is_refused_before_anything_is_allocated(call, tiny_path, command):
    text = {"complete": ["-p", "x"], "logits": ["-p", "x"], "chat": ["-m", "x"], "bench": []}[command]
    status, out, err = call(command, tiny_path, *FAKE, *text, "-c", 10**12)
    assert status == 1 and not out and "needs" in err and "free" in err


def test_real_models_through_the_command_line(call_json, smollm2_path):
    top = call_json("logits", smollm2_path, "-p", "The capital of France is", "--top", 5)["top"]
    assert " Paris" in [row["text"] for row in top]
    reply = call_json("chat", smollm2_path, "-m", "What is the capital of France?", "--temp", 0, "-n", 24)
    assert "Paris" in reply["text"]
