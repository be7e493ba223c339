"""The sandbox in which chat templates run: Jinja2's immutable one, without files, with a budget.

Beside what Jinja2 forbids (private attributes, changing our values), this one
- loads nothing: no include, import, extends, and no blocks;
- counts: every loop iteration, call, filter, test, operator and output passes `Budget`; for that the syntax
  tree is rewritten before it is compiled (`engine.templates.rewriting`), and nothing is computed meanwhile;
- keeps a list of filters and text methods that templates need, and lacks all others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import BuiltinMethodType
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context

from engine.templates import operations
from engine.templates.budget import MAX_DEPTH, Budget, BudgetExceeded
from engine.templates.filters import checked_filters, checked_tests
from engine.templates.rewriting import CountingTransformer, GenerationTag

_GLOBALS = ("range", "dict", "namespace")
_JINJA_KWARGS = ("_loop_vars", "_block_vars")


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Compiles and runs templates.  `budget` is set by whoever runs one, for each run anew."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
            # Or Jinja2 would compute constant expressions while compiling, without a budget.
            optimized=False,
            cache_size=0,
            extensions=["jinja2.ext.loopcontrols", GenerationTag],
            finalize=_write_out,
        )
        self._budget: ContextVar[Budget] = ContextVar("budget")
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        # Jinja2 annotates both as a dict of plain functions; anything callable will do.
        self.filters: dict[str, Any] = checked_filters(self.filters, lambda: self.budget)
        self.tests: dict[str, Any] = checked_tests(self.tests, lambda: self.budget)

    @property
    def budget(self) -> Budget:
        return self._budget.get()

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._budget.set(budget)

    # What rewritten templates call

    def count_step(self) -> None:
        self.budget.step()

    def weigh(self, value: Any) -> Any:
        return self.budget.weigh(value)

    def concatenate(self, *values: Any) -> str:
        return operations.join_texts(self.budget, "", values)

    # What Jinja2 calls

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        CountingTransformer().visit(tree)
        tree.set_environment(self)
        return tree

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        # Jinja2 would go on until the value is used, and print nothing.
        raise SecurityError(f"it asks for {attribute!r} of a {type(obj).__name__}")

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        budget = self.budget
        budget.step()
        if getattr(obj, "__self__", None) is self:
            return obj(*args)
        # Jinja2 adds its own variables for functions that ask for its context; built-in methods do not.
        own_kwargs = {key: value for key, value in kwargs.items() if key not in _JINJA_KWARGS}
        for value in (*args, *own_kwargs.values()):
            budget.weigh(value)
        if isinstance(obj, BuiltinMethodType):
            return budget.weigh(operations.call_built_in(budget, obj, args, own_kwargs))
        if budget.depth >= MAX_DEPTH:
            raise BudgetExceeded("its macros call each other too deeply")
        budget.depth += 1
        try:
            return budget.weigh(super().call(context, obj, *args, **kwargs))
        finally:
            budget.depth -= 1

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = self.budget
        budget.step()
        budget.weigh(left)
        budget.weigh(right)
        growing = operations.GROWING_OPERATORS.get(operator)
        if growing is not None:
            return budget.weigh(growing(budget, left, right))
        return budget.weigh(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def checked(*args: Any, **kwargs: Any) -> str:
            budget = self.budget
            operations.check_format(budget, value.__self__, "{", (*args, *kwargs.values()))
            return str(budget.weigh(wrapped(*args, **kwargs)))

        return checked


@pass_context
def _write_out(context: Context, value: Any) -> str:
    sandbox = context.environment
    assert isinstance(sandbox, TemplateSandbox)
    return sandbox.budget.write(operations.to_text(sandbox.budget.weigh(value)))
