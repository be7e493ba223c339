"""The filters and tests that templates have, each measuring what it is given and what it gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from jinja2.runtime import Context, Undefined
from jinja2.utils import pass_context

from engine.templates import operations
from engine.templates.budget import Budget

Function = Callable[..., Any]
GetBudget = Callable[[], Budget]

_FROM_JINJA = frozenset(
    """
    abs attr batch capitalize count d default dictsort e escape first float groupby indent int
    items last length list lower map max min reject rejectattr reverse round select selectattr
    slice sort string title trim unique upper
    """.split()  # noqa: SIM905 - a list of quoted words would hide them
)
_WITH_WIDTH = frozenset({"batch", "indent", "round", "slice"})
"""Their numbers multiply text or digits."""


def checked_tests(tests: Mapping[str, Function], budget: GetBudget) -> dict[str, Function]:
    return {name: _checked(name, test, budget) for name, test in tests.items()}


def checked_filters(filters: Mapping[str, Function], budget: GetBudget) -> dict[str, Function]:
    """Jinja2's own where they cannot grow out of hand, ours for the others."""

    @pass_context
    def join(context: Context, value: Any, d: Any = "", attribute: Any = None) -> str:
        if attribute is not None:
            arguments = {"attribute": attribute}
            value = context.environment.call_filter("map", value, kwargs=arguments, context=context)
        return operations.join_texts(budget(), operations.to_text(d), value)

    def replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
        text, old, new = (operations.to_text(budget().weigh(item)) for item in (value, old, new))
        return operations.replace_text(budget(), text, old, new, -1 if count is None else count)

    def format_text(value: Any, *args: Any, **kwargs: Any) -> str:
        if args and kwargs:
            raise TypeError("format takes values by place or by name, not both")
        for item in (*args, *kwargs.values()):
            budget().weigh(item)
        return str(budget().weigh(operations.modulo(budget(), operations.to_text(value), kwargs or args)))

    def to_json(value: Any, *args: Any, **kwargs: Any) -> str:
        if isinstance(value, Undefined):
            raise TypeError("there is no value to write as JSON")
        return operations.to_json(budget(), budget().weigh(value), *args, **kwargs)

    def safe(value: Any) -> str:
        return operations.to_text(budget().weigh(value))

    kept = {name: _checked(name, filters[name], budget) for name in _FROM_JINJA}
    return kept | {"join": join, "replace": replace, "format": format_text, "tojson": to_json, "safe": safe}


def _checked(name: str, function: Function, budget: GetBudget) -> Function:
    # Jinja2 gives its own context or environment to functions marked so, as the first argument.
    n_internal = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        budget().step()
        values = (*args[n_internal:], *kwargs.values())
        for value in values:
            budget().weigh(value)
        if name in _WITH_WIDTH:
            operations.check_widths(values[1:])
        return _plain(budget().weigh(function(*args, **kwargs)))

    return checked


def _plain(value: Any) -> Any:
    """Without Jinja2's mark for escaped text, which would escape whatever it is joined to."""
    return str(value) if isinstance(value, str) and type(value) is not str else value
