"""What files with experts may contradict is told by name, before anything is loaded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.conversion import convert_checkpoint
from engine.errors import CauserieError, ModelFileError
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf
from engine.graph.expert_operations import ExpertTensors
from engine.graph.operations import BatchShape, Node
from engine.graph.plan import Plan
from engine.inspection import outline
from engine.models.description import describe
from engine.models.registry import plan_layers
from engine.quantisation.quantise import make_tensor
from engine.requests import LoadSettings
from engine.tensor import Tensor
from tests.helpers.family_fixtures import FOLDER, load_without_vocabulary
from tests.helpers.tiny_experts import N_EXPERTS, N_USED, write_tiny_gpt_oss, write_tiny_mixtral
from tests.helpers.truth import read_logits


def plan_of(path: Path, n_tokens: int = 3) -> Plan:
    with GGUFFile.open(path) as file:
        return plan_layers(describe(file.metadata, 300), dict(file.tensors), BatchShape(n_tokens, 1))


def expert_nodes(plan: Plan) -> list[Node]:
    return [step.node for step in plan.steps if step.node.operation == "experts"]


def zeros(name: str, *shape: int) -> Tensor:
    return make_tensor(name, np.zeros(shape))


def test_the_nodes_of_a_layer(tmp_path: Path) -> None:
    experts = expert_nodes(plan_of(write_tiny_mixtral(tmp_path / "tiny.gguf")))[1]
    assert experts.shape == (3, 64)
    x, chosen, weights = experts.inputs
    assert (x.operation, chosen.operation, weights.operation) == (
        "rms_norm",
        "choose_experts",
        "weigh_experts",
    )
    assert (chosen.shape, chosen.dtype, weights.shape) == ((3, N_USED), "int32", (3, N_USED))
    assert ExpertTensors.of(experts) == ExpertTensors(
        ("blk.1.ffn_gate_exps.weight",), ("blk.1.ffn_up_exps.weight",), ("blk.1.ffn_down_exps.weight",)
    )


def test_one_tensor_for_each_expert(tmp_path: Path) -> None:
    path = write_tiny_mixtral(tmp_path / "tiny.gguf", one_tensor_for_each=True)
    tensors = ExpertTensors.of(expert_nodes(plan_of(path))[0])
    assert tensors.down == tuple(f"blk.0.ffn_down.{expert}.weight" for expert in range(N_EXPERTS))
    assert tensors.biases == ()


def test_biases_of_experts(tmp_path: Path) -> None:
    tensors = ExpertTensors.of(expert_nodes(plan_of(write_tiny_gpt_oss(tmp_path / "tiny.gguf", "F32")))[0])
    assert tensors.biases == tuple(f"blk.0.ffn_{kind}_exps.bias" for kind in ("gate", "up", "down"))


ROUTER = "blk.1.ffn_gate_inp.weight"
GATE, UP, DOWN = (f"blk.1.ffn_{kind}_exps.weight" for kind in ("gate", "up", "down"))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({DOWN: None}, DOWN),
        ({ROUTER: None}, ROUTER),
        ({ROUTER: zeros(ROUTER, N_EXPERTS + 1, 64)}, ROUTER),
        ({GATE: zeros(GATE, N_EXPERTS, 128)}, GATE),
        ({GATE: zeros(GATE, N_EXPERTS, 128, 32)}, GATE),
        ({GATE: zeros(GATE, N_EXPERTS - 1, 128, 64)}, GATE),
        ({UP: zeros(UP, N_EXPERTS, 127, 64)}, UP),
        ({DOWN: zeros(DOWN, N_EXPERTS, 64, 127)}, DOWN),
        ({DOWN: zeros(DOWN, 1, N_EXPERTS, 64, 128)}, DOWN),
        ({"blk.1.ffn_up_exps.bias": zeros("blk.1.ffn_up_exps.bias", N_EXPERTS, 128)}, "ffn_gate_exps.bias"),
    ],
)
def test_tensors_that_do_not_fit_are_named(
    changes: dict[str, Tensor | None], told: str, tmp_path: Path
) -> None:
    path = write_tiny_mixtral(tmp_path / "tiny.gguf", extra_tensors=changes)
    with pytest.raises(ModelFileError, match=told.replace(".", r"\.")), GGUFFile.open(path) as file:
        outline(file, LoadSettings())


@pytest.mark.parametrize(
    "changed",
    [
        zeros("blk.0.ffn_up.3.weight", 128, 63),
        make_tensor("blk.0.ffn_up.3.weight", np.zeros((128, 64)), "F16"),
        None,
    ],
)
def test_experts_of_a_layer_must_be_alike(changed: Tensor | None, tmp_path: Path) -> None:
    path = write_tiny_mixtral(
        tmp_path / "tiny.gguf", one_tensor_for_each=True, extra_tensors={"blk.0.ffn_up.3.weight": changed}
    )
    with pytest.raises(ModelFileError, match=r"blk\.0\.ffn_up\."):
        plan_of(path)


@pytest.mark.parametrize(("n_experts", "n_used"), [(6, 0), (6, 7), (6, -1), (1 << 31, 2), (-1, 2)])
def test_counts_out_of_range(n_experts: int, n_used: int, tmp_path: Path) -> None:
    counts: dict[str, object | None] = {"llama.expert_count": n_experts, "llama.expert_used_count": n_used}
    path = write_tiny_mixtral(tmp_path / "tiny.gguf", metadata=counts)
    with pytest.raises(CauserieError, match="expert"):
        plan_of(path)


def test_a_layer_without_experts_misses_them_by_name(tmp_path: Path) -> None:
    """As a file that says it has experts and is a plain llama."""
    layer = {f"blk.0.ffn_{kind}_exps.weight": None for kind in ("gate", "up", "down")}
    path = write_tiny_mixtral(
        tmp_path / "tiny.gguf", extra_tensors=layer | {"blk.0.ffn_gate_inp.weight": None}
    )
    with pytest.raises(ModelFileError, match="ffn_gate_inp"):
        plan_of(path)


def test_sinks_must_have_one_number_for_each_head(tmp_path: Path) -> None:
    path = write_tiny_gpt_oss(tmp_path / "tiny.gguf", "F32")
    with GGUFFile.open(path) as file:
        tensors = dict(file.tensors) | {"blk.2.attn_sinks.weight": zeros("blk.2.attn_sinks.weight", 5)}
        with pytest.raises(ModelFileError, match=r"blk\.2\.attn_sinks"):
            plan_layers(describe(file.metadata, 300), tensors, BatchShape(3, 1))


def test_the_gate_of_a_shared_expert_may_be_a_matrix_of_one_row(tmp_path: Path) -> None:
    """As converters before 2025 wrote it."""
    name = "blk.{}.ffn_gate_inp_shexp.weight"
    path, other = tmp_path / "vector.gguf", tmp_path / "row.gguf"
    convert_checkpoint(FOLDER / "qwen2moe", path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        tensors = {tensor.name: tensor.in_memory() for tensor in file.tensors.values()}
        for layer in range(2):
            gate = tensors[name.format(layer)]
            assert gate.shape == (32,)
            tensors[gate.name] = Tensor.contiguous(gate.name, gate.type, (1, 32), gate.data)
        write_gguf(other, file.metadata, tensors.values())
    logits = []
    for each in (path, other):
        with (
            closing(load_without_vocabulary(each, LoadSettings(context_size=64))) as model,
            closing(model.new_context()) as context,
        ):
            logits.append(read_logits(model, context, list(range(3, 40)), 64))
    np.testing.assert_array_equal(*logits)
