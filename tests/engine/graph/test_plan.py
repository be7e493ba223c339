"""The planner: order, lifetimes and the arena, on graphs drawn at random and executed both ways."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.operations import BatchShape, Graph, Node
from engine.graph.plan import ALIGNMENT, NO_BYTES, Plan, is_view, make_plan

BATCH = BatchShape(3, 1)
WIDTH = 64


@st.composite
def random_graphs(draw: st.DrawFn) -> Node:
    """A chain of random operations over earlier results, as families build them, of one token or three."""
    n_tokens = draw(st.sampled_from([1, 3]))
    graph = Graph({}, BatchShape(n_tokens, 1))
    nodes: list[Node] = [graph.soft_cap(graph.hidden(WIDTH), 1e9)]
    for index in range(draw(st.integers(1, 25))):
        a = draw(st.sampled_from(nodes))
        kind = draw(st.sampled_from(["add", "cap", "view", "columns"]))
        if kind == "columns":
            a = draw(st.sampled_from([node for node in nodes if len(node.shape) == 2 and node.shape[1] > 1]))
            start = draw(st.integers(0, a.shape[1] - 1))
            node = graph.columns(a, start, draw(st.integers(start + 1, a.shape[1])))
        elif kind == "view":
            width = a.nbytes // 4 // n_tokens
            shapes = [(n_tokens, width), (n_tokens * width,), (n_tokens, 1, width)]
            node = graph.view(a, *draw(st.sampled_from(shapes)))
        elif kind == "cap":
            node = graph.soft_cap(a, 0.5 + index)
        else:
            b = draw(st.sampled_from([other for other in nodes if other.shape == a.shape]))
            node = graph.add(a, b, f"add {index}")
        nodes.append(node)
    return nodes[-1]


def compute(node: Node, inputs: list[np.ndarray]) -> np.ndarray:
    if node.operation == "add":
        return inputs[0] + inputs[1]
    if node.operation == "view":
        return inputs[0].reshape(node.shape)
    if node.operation == "columns":
        start = int(node.attributes["start"])
        return inputs[0][:, start : start + node.shape[1]]
    cap = node.attributes["cap"]
    return cap * np.tanh(inputs[0] / cap)


def run_apart(plan: Plan, hidden: np.ndarray) -> np.ndarray:
    """Every result in memory of its own: the truth."""
    results: dict[Node, np.ndarray] = {}
    for step in plan.steps:
        node = step.node
        results[node] = (
            hidden
            if node.operation == "hidden"
            else compute(node, [results[source] for source in node.inputs])
        )
    return results[plan.result]


def run_in_arena(plan: Plan, hidden: np.ndarray) -> np.ndarray:
    """Every result at its offset of one arena, so that a wrong lifetime spoils the outcome."""
    arena = np.full(max(1, plan.arena_bytes), 0xAB, np.uint8)
    places: dict[Node, np.ndarray] = {}
    for step in plan.steps:
        node = step.node
        if node.operation == "hidden":
            places[node] = hidden.copy()
            continue
        bytes_of = arena[step.offset : step.offset + node.nbytes]
        places[node] = (
            bytes_of.view(np.float32).reshape(node.shape)
            if step.offset != NO_BYTES
            else places[node.inputs[0]].reshape(node.shape)
        )
        if not is_view(node):
            places[node][...] = compute(node, [places[source] for source in node.inputs])
    return places[plan.result]


@given(random_graphs(), st.integers(0, 2**32 - 1))
def test_arena_gives_the_same_result_as_memory_of_its_own(result: Node, seed: int) -> None:
    plan = make_plan(result, BATCH)
    shape = next(step.node.shape for step in plan.steps if step.node.operation == "hidden")
    hidden = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    apart = run_apart(plan, hidden)
    shared = run_in_arena(plan, hidden)
    np.testing.assert_array_equal(apart.astype(np.float32), shared)


@given(random_graphs())
def test_inputs_come_before_users_and_every_node_once(result: Node) -> None:
    plan = make_plan(result, BATCH)
    seen: set[Node] = set()
    for step in plan.steps:
        assert all(source in seen for source in step.node.inputs)
        assert step.node not in seen
        seen.add(step.node)
    assert plan.steps[-1].node is result


@given(random_graphs())
def test_offsets_are_aligned_and_inside_the_arena(result: Node) -> None:
    plan = make_plan(result, BATCH)
    for step in plan.steps:
        if step.offset != NO_BYTES:
            assert step.offset % (4 if "columns" in plan.operations else ALIGNMENT) == 0
            assert step.offset + step.node.nbytes <= plan.arena_bytes


def test_a_long_chain_runs_in_the_memory_of_one_result() -> None:
    graph = Graph({}, BATCH)
    node = graph.soft_cap(graph.hidden(4), 1.0)
    for _ in range(5000):
        node = graph.soft_cap(node, 1.0)
    plan = make_plan(node, BATCH)
    assert len(plan.steps) == 5002
    assert plan.arena_bytes == ALIGNMENT
