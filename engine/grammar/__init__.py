"""Constrained output: grammars in GBNF or made from a JSON Schema, and which tokens may come next."""

from engine.grammar.constraint import Constraint
from engine.grammar.expressions import Grammar
from engine.grammar.gbnf import read_gbnf
from engine.grammar.json_schema import read_json_schema

__all__ = ["Constraint", "Grammar", "read_gbnf", "read_json_schema"]
