"""Changes to Jinja2's syntax tree: the sandbox is to see what compiled templates would do by themselves."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer


class GenerationTag(Extension):
    """{% generation %}...{% endgeneration %} marks replies for training; here it does nothing."""

    tags = {"generation"}  # noqa: RUF012 - declared so by Jinja2

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class CountingTransformer(NodeTransformer):
    """Sends loops, lists, joins and output through `TemplateSandbox`; refuses what loads other files."""

    def _refuse(self, node: nodes.Node) -> nodes.Node:
        raise SecurityError(f"it uses {type(node).__name__.lower()}")

    visit_Block = visit_Extends = visit_Include = visit_Import = visit_FromImport = _refuse

    def _count_body(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_call("count_step"), lineno=node.lineno))
        return node

    visit_For = visit_Macro = visit_CallBlock = visit_FilterBlock = visit_AssignBlock = _count_body

    def _weigh(self, node: Any) -> Any:
        self.generic_visit(node)
        is_target = getattr(node, "ctx", "load") != "load"
        return node if is_target else _call("weigh", node)

    visit_List = visit_Dict = visit_Tuple = _weigh

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("concatenate", *node.nodes)

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        # A constant passes `finalize` on its way out; template data would not.
        return nodes.Const(node.data, lineno=node.lineno)


def _call(method: str, *arguments: nodes.Expr) -> nodes.Call:
    sandbox_method = nodes.EnvironmentAttribute(method, lineno=1)
    return nodes.Call(sandbox_method, list(arguments), [], None, None, lineno=1)
