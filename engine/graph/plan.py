"""From a graph to a plan: order of execution, lifetimes, and one arena for every intermediate.

Each intermediate gets an offset in one 64-byte-aligned arena, so that nothing is allocated while running.
Two intermediates share bytes only if their lifetimes do not meet.  Offsets are chosen greedily, the largest
first, each at the lowest place free during its life: "greedy by size" of Pisarchyk and Lee, "Efficient Memory
Management for Deep Neural Net Inference" (2020).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.graph.operations import IN_PLACE, BatchShape, Node

ALIGNMENT = 64
NO_BYTES = -1
"""Offset of a node that has no bytes of its own in the arena (batch inputs, store_kv)."""

BATCH_INPUTS = frozenset({"tokens", "hidden"})


@dataclass(frozen=True, slots=True)
class Step:
    """A node to run and the arena offset of its result, in bytes: of a view, that of what it shows."""

    node: Node
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps in order; the last one is the result.  Compared by identity: it is made once and kept."""

    batch: BatchShape
    steps: tuple[Step, ...]
    arena_bytes: int

    @property
    def n_tokens(self) -> int:
        return self.batch.n_tokens

    @property
    def n_outputs(self) -> int:
        return self.batch.n_outputs

    @property
    def result(self) -> Node:
        return self.steps[-1].node

    @property
    def n_vocabulary(self) -> int:
        """Width of the result: the vocabulary, or the width of the hidden states of a split model."""
        return self.result.shape[-1]

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the tensors needed, each once, in order of use."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.node.weights))

    @property
    def operations(self) -> frozenset[str]:
        return frozenset(step.node.operation for step in self.steps)


def make_plan(result: Node, batch: BatchShape) -> Plan:
    """Sorts the nodes that ``result`` needs and places them in an arena."""
    order = _topological(result)
    owner, last_use = _lifetimes(order)
    offsets, arena_bytes = _place(order, owner, last_use)
    within = _offsets_within(order, owner)
    steps = tuple(
        Step(node, offsets[owner[node]] + within[node] if owner[node] in offsets else NO_BYTES)
        for node in order
    )
    return Plan(batch, steps, arena_bytes)


def is_view(node: Node) -> bool:
    """Whether a node shows bytes of its input, and nothing has to run: columns of several rows are copied."""
    return node.operation == "view" or (node.operation == "columns" and node.shape[0] == 1)


def _topological(result: Node) -> list[Node]:
    """Inputs before users, by a depth-first walk without recursion (graphs are thousands of nodes deep)."""
    order: list[Node] = []
    done: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(result, False)]
    while stack:
        node, inputs_done = stack.pop()
        if node in done:
            continue
        if inputs_done:
            done.add(node)
            order.append(node)
        else:
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(node.inputs) if source not in done)
    return order


def _lifetimes(order: list[Node]) -> tuple[dict[Node, Node], dict[Node, int]]:
    """Who owns the bytes of each node (itself, what it views, or what it overwrites), and the last step
    that reads or writes the bytes of each owner."""
    final_read: dict[Node, int] = {}
    readers: dict[Node, int] = {}
    for index, node in enumerate(order):
        for source in node.inputs:
            final_read[source] = index
            readers[source] = readers.get(source, 0) + 1
    owner: dict[Node, Node] = {}
    last_use: dict[Node, int] = {}
    for index, node in enumerate(order):
        owner[node] = node
        if is_view(node):
            owner[node] = owner[node.inputs[0]]
        elif node.operation in IN_PLACE:
            target = owner[node.inputs[0]]
            if target.operation not in BATCH_INPUTS and last_use[target] <= index:
                owner[node] = target
        reach = final_read.get(node, len(order))
        last_use[owner[node]] = max(last_use.get(owner[node], index), reach)
    return owner, last_use


def _offsets_within(order: list[Node], owner: dict[Node, Node]) -> dict[Node, int]:
    """Where each node begins, in bytes from the begin of its owner: views of columns lie behind it."""
    within: dict[Node, int] = {}
    for node in order:
        shares = owner[node] is not node
        within[node] = within[node.inputs[0]] if shares else 0
        if shares and node.operation == "columns":
            within[node] += 4 * int(node.attributes["start"])
    return within


def _place(
    order: list[Node], owner: dict[Node, Node], last_use: dict[Node, int]
) -> tuple[dict[Node, int], int]:
    """Arena offset of each owner, and the arena's size."""
    first_use = {node: index for index, node in enumerate(order)}
    buffers = [
        node for node in order if owner[node] is node and node.nbytes and node.operation not in BATCH_INPUTS
    ]
    offsets: dict[Node, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first use, last use
    arena_bytes = 0
    for node in sorted(buffers, key=lambda node: -node.nbytes):
        size = -(-node.nbytes // ALIGNMENT) * ALIGNMENT
        first, last = first_use[node], last_use[node]
        offset = 0
        for start, end, other_first, other_last in sorted(placed):
            if other_first <= last and first <= other_last:
                if offset + size <= start:
                    break
                offset = max(offset, end)
        offsets[node] = offset
        placed.append((offset, offset + size, first, last))
        arena_bytes = max(arena_bytes, offset + size)
    return offsets, arena_bytes
