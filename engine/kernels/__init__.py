"""Compiled operations behind checked wrappers.  Nothing outside this package calls a kernel directly.

Every operation has ``bind_<operation>(...)``, which checks its arrays once and returns a function without
arguments that may be called again and again while the arrays' contents change.  Most also have
``<operation>(...)``, which allocates, checks and runs at once.
"""
