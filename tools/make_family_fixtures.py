"""Writes tests/fixtures/families: a tiny random model of each family, and the logits `transformers` computes.

It needs torch and transformers, which stay out of the project's own environment:

    python3 -m venv fixtures-environment
    fixtures-environment/bin/pip install torch transformers
    fixtures-environment/bin/python tools/make_family_fixtures.py [NAME ...]

Each folder gets ``config.json`` and ``model.safetensors`` (F32) as `transformers` saves them, and
``truth.npz``:

    ids           int32[n], a random prompt longer than every sliding window
    logits        float32[n, vocabulary]: after each of the ids, computed in float64 with plain attention
    context_size  what an engine is to be loaded with, in tokens

The truth is computed from the files after they are written, so that a mistake in writing them shows here.
Every parameter is random, norms and biases too: one that a converter or a graph forgets changes the logits.
"""

from __future__ import annotations

import argparse
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from family_fixtures import FIXTURES, FamilyFixture

FOLDER = Path(__file__).parents[1] / "tests/fixtures/families"
N_PROMPT = 44
MAX_BYTES = 300_000
MAX_NOISE = 2e-5
"""Relative L2 between float32 and float64 at any position: where it is more, experts are chosen by a hair."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help="those to make; all of them, and only them, if none is named"
    )
    wanted = parser.parse_args().names
    known = {fixture.name: fixture for fixture in FIXTURES}
    if unknown := set(wanted) - set(known):
        parser.error(f"no such fixture: {', '.join(sorted(unknown))}")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in wanted or known:
        make_fixture(known[name], FOLDER / name)
    if not wanted:
        for folder in FOLDER.iterdir():
            if (folder / "truth.npz").exists() and folder.name not in known:
                shutil.rmtree(folder)


def make_fixture(fixture: FamilyFixture, folder: Path) -> None:
    """Writes one folder, anew.  Raises AssertionError where the result would be no good test."""
    seed = zlib.crc32(fixture.name.encode())
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(fixture.model_type, **json.loads(json.dumps(fixture.settings)))
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(random_parameter(name, parameter.shape))
            if fixture.model_type == "gpt_oss" and "gate_up_proj" in name:
                parameter *= 5  # so that some pass the limit of its activation
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    write_config(folder / "config.json", fixture.classic)

    ids = np.random.default_rng(seed).integers(3, config.vocab_size, N_PROMPT).astype(np.int32)
    logits = compute_logits(folder, ids, torch.float64)
    assert np.isfinite(logits).all()
    single = compute_logits(folder, ids, torch.float32)
    noise = (np.linalg.norm(single - logits, axis=1) / np.linalg.norm(logits, axis=1)).max()
    assert noise <= MAX_NOISE, f"{fixture.name}: float32 differs by {noise:.1e}"
    np.savez(
        folder / "truth.npz", ids=ids, logits=logits.astype(np.float32), context_size=fixture.context_size
    )
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size <= MAX_BYTES, f"{fixture.name} takes {size} bytes"
    print(f"{fixture.name:24} {size:8,} bytes, logits of {logits.std():.2f}, noise of float32 {noise:.0e}")


def random_parameter(name: str, shape: torch.Size) -> torch.Tensor:
    """Norms around 1, biases around 0, and matrices that keep the size of what goes through them."""
    if "norm" in name or ".ln_" in name or "layernorm" in name:
        return torch.randn(shape) * 0.3 + (0.0 if name.endswith("bias") else 1.0)
    if len(shape) == 1 or name.endswith("bias") or "sinks" in name:
        return torch.randn(shape) * 0.5
    if "embed" in name or "wte" in name or "wpe" in name:
        return torch.randn(shape) * 0.4
    if "router" in name or "mlp.gate.weight" in name:
        return torch.randn(shape) * 2 / shape[-1] ** 0.5
    return torch.randn(shape) / shape[-1] ** 0.5


def write_config(path: Path, classic: bool) -> None:
    """Leaves out what tells nothing about a model, and puts rope settings where older releases had them."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("transformers_version", None)
    if classic:
        config["torch_dtype"] = config.pop("dtype", "float32")
        move_rope_settings(config)
        if config["model_type"] == "qwen3_moe":
            config["num_experts"] = config.pop("num_local_experts")
    path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def move_rope_settings(config: dict[str, Any]) -> None:
    rope = config.pop("rope_parameters", None)
    if rope is None:
        return
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    rope = dict(rope)
    neox = config["model_type"] == "gpt_neox"
    config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["rotary_pct" if neox else "partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if rope.get("rope_type", "default") != "default":
        if config["model_type"] == "phi3":
            rope["type"] = rope.pop("rope_type")
            config["original_max_position_embeddings"] = rope.pop("original_max_position_embeddings")
        config["rope_scaling"] = rope


def compute_logits(folder: Path, ids: np.ndarray[Any, Any], dtype: torch.dtype) -> np.ndarray[Any, Any]:
    """float64[n, vocabulary], computed in dtype."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager"
    )
    with torch.no_grad():
        logits = model(torch.from_numpy(ids.astype(np.int64))[None], use_cache=False).logits[0]
    return logits.to(torch.float64).numpy()


if __name__ == "__main__":
    main()
