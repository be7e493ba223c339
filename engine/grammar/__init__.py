"""Constrained output: grammars in GBNF or made from a JSON Schema, and which tokens may come next."""
