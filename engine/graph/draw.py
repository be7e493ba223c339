"""A plan for people: as a table of text, as DOT for Graphviz, and as an SVG picture."""

from __future__ import annotations

from html import escape

from engine.graph.operations import Node
from engine.graph.plan import NO_BYTES, Plan, Step

ROW_HEIGHT = 34
BOX_WIDTH = 520
BOX_HEIGHT = 24
LANE = 14


def plan_text(plan: Plan) -> str:
    """One line per step: number, operation, shape, arena offset, name, and the numbers of its inputs."""
    number = {step.node: index for index, step in enumerate(plan.steps)}
    lines = [f"{'step':>5}  {'operation':<10} {'shape':<18} {'offset':>10}  name  <- inputs"]
    for index, step in enumerate(plan.steps):
        node = step.node
        inputs = ", ".join(str(number[source]) for source in node.inputs)
        arrow = f"  <- {inputs}" if inputs else ""
        lines.append(
            f"{index:>5}  {node.operation:<10} {shape_text(node):<18} {_offset(step):>10}  {node.name}{arrow}"
        )
    lines.append(
        f"total: {len(plan.steps)} steps, arena {plan.arena_bytes} bytes "
        f"for {plan.n_tokens} tokens with {plan.n_outputs} outputs"
    )
    return "\n".join(lines)


def shape_text(node: Node) -> str:
    return " x ".join(map(str, node.shape)) if node.shape else "-"


def _offset(step: Step) -> str:
    return "-" if step.offset == NO_BYTES else str(step.offset)


def _label(step: Step) -> str:
    return f"{step.node.operation}  {step.node.name}  [{shape_text(step.node)}]  @{_offset(step)}"


def plan_dot(plan: Plan) -> str:
    """A digraph in the DOT language."""
    number = {step.node: index for index, step in enumerate(plan.steps)}
    lines = ["digraph plan {", '  node [shape=box, fontname="sans-serif", fontsize=10];']
    for index, step in enumerate(plan.steps):
        label = _label(step).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  n{index} [label="{label}"];')
        lines.extend(f"  n{number[source]} -> n{index};" for source in step.node.inputs)
    lines.append("}")
    return "\n".join(lines) + "\n"


def plan_svg(plan: Plan) -> str:
    """Steps from top to bottom; an input that is not the step just above is drawn in a lane to the right."""
    number = {step.node: index for index, step in enumerate(plan.steps)}
    edges = [
        (number[source], index)
        for index, step in enumerate(plan.steps)
        for source in step.node.inputs
        if number[source] != index - 1
    ]
    lanes = _assign_lanes(edges)
    width = BOX_WIDTH + 40 + LANE * (max(lanes.values(), default=-1) + 2)
    height = ROW_HEIGHT * len(plan.steps) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for index, step in enumerate(plan.steps):
        top = 10 + ROW_HEIGHT * index
        if any(number[source] == index - 1 for source in step.node.inputs):
            x = 20 + BOX_WIDTH // 2
            parts.append(_line(f"M {x} {top - ROW_HEIGHT + BOX_HEIGHT} V {top}"))
        parts.append(
            f'<rect x="20" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" '
            'fill="#eef3fb" stroke="#5b7db1"/>'
        )
        parts.append(f'<text x="28" y="{top + 16}">{escape(_label(step))}</text>')
    right = 20 + BOX_WIDTH
    for (start, end), lane in lanes.items():
        x = right + LANE * (lane + 1)
        y0 = 10 + ROW_HEIGHT * start + BOX_HEIGHT // 2
        y1 = 10 + ROW_HEIGHT * end + BOX_HEIGHT // 2
        parts.append(_line(f"M {right} {y0} H {x} V {y1} H {right}"))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _line(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="#8a8f98"/>'


def _assign_lanes(edges: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The leftmost lane in which an edge meets no other."""
    busy_until: list[int] = []
    lanes: dict[tuple[int, int], int] = {}
    for start, end in sorted(set(edges)):
        free = (lane for lane, until in enumerate(busy_until) if until <= start)
        lane = next(free, len(busy_until))
        if lane == len(busy_until):
            busy_until.append(0)
        busy_until[lane] = end
        lanes[start, end] = lane
    return lanes
