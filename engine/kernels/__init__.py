"""Compiled operations behind checked wrappers.  Nothing outside this package calls a kernel directly.

Every operation has two forms: ``bind_<operation>(...)`` checks its arrays once and returns a function without
arguments that may be called again and again while the arrays' contents change; ``<operation>(...)`` checks and
runs at once.
"""
