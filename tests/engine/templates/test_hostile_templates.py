"""Templates out of a hostile file: refused or stopped, and without access to anything."""

from __future__ import annotations

import contextlib
import copy
import re
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.chat_template import MAX_SOURCE, ChatTemplate
from engine.errors import TemplateError

CONVERSATION = [{"role": "user", "content": "Hi"}]


def render(source: str) -> str:
    return "".join(segment.text for segment in ChatTemplate(source).render(CONVERSATION))


@pytest.mark.parametrize(
    "source",
    [
        '{{ lipsum.__globals__["os"] }}',
        "{{ cycler.__init__.__globals__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ messages|map(attribute='__class__')|list }}",
        "{{ self.__init__.__globals__ }}",
        "{{ namespace.__init__ }}",
        "{{ dict.mro() }}",
        "{{ dict.fromkeys([1]) }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages.clear() }}",
        "{{ messages[0].pop('role') }}",
        "{{ messages[0].update(role='x') }}",
        "{% include '/etc/passwd' %}",
        "{% import 'x' as y %}",
        "{% from 'x' import y %}",
        "{% extends 'x' %}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{{ 'a'.encode() }}",
        "{{ (1).to_bytes(8, 'little') }}",
        "{{ 'abc'.translate({97: 'x'}) }}",
        '{{ ("{0.__class__.__init__.__globals__}"|attr("format"))(messages) }}',
        '{% set f = "{0.__class__}".format %}{{ [messages]|map(f)|list }}',
        '{{ "{0.__class__}".format(messages) }}',
        '{{ "{a.__class__}".format_map({"a": 1}) }}',
    ],
)
def test_what_reaches_outside_is_refused(source: str) -> None:
    before = copy.deepcopy(CONVERSATION)
    with pytest.raises(TemplateError) as caught:
        render(source)
    assert caught.value.advice
    assert before == CONVERSATION


CALLED = "{% macro called() %}CALLED{{ messages.clear() }}{% endmacro %}"


@pytest.mark.parametrize(
    "expression",
    [
        "strftime_now(called)",
        "strftime_now(namespace)",
        "raise_exception(called)",
        "[called]|tojson",
        "[1]|tojson(indent=called)",
        "[1]|tojson(default=called)",
        "[1]|tojson(cls=called)",
        "[1]|tojson(separators=(called, called))",
        "'%s'|format(called)",
        "[1]|map(called)|list",
        "[1]|sort(attribute=called)",
        "[1]|join(called)",
        "'a'|replace('a', called)",
        "'a'.replace('a', called)",
    ],
)
def test_nothing_of_ours_calls_what_a_template_passes(expression: str) -> None:
    """Given a macro where a value belongs, it is refused or printed, and never run."""
    template = ChatTemplate(CALLED + "{{ messages[0].content }}")
    assert template.render(CONVERSATION)
    try:
        printed = render(CALLED + "{{ " + expression + " }}")
    except TemplateError as error:
        printed = error.title
    assert "CALLED" not in printed and "clear" not in printed


@pytest.mark.parametrize("unit", ["a~", "1<", "1,", "()"])
def test_compiling_is_bounded_by_the_length_of_the_source(unit: str) -> None:
    """What compiles longest of all that was tried takes a second."""
    source = "{{ [a" + ("," if unit == "1," else "")
    source += unit * ((MAX_SOURCE - 20) // len(unit)) + ("1" if unit != "()" else "") + "] }}"
    start = time.thread_time()
    with contextlib.suppress(TemplateError):
        ChatTemplate(source)
    assert time.thread_time() - start < 15


# Each of these doubles (or worse) the value of ns.s sixty times.
GROWING = [
    "ns.s ~ ns.s",
    "ns.s + ns.s",
    "[ns.s, ns.s]",
    "(ns.s, ns.s)",
    "{'a': ns.s, 'b': ns.s}",
    "dict(a=ns.s, b=ns.s)",
    "namespace(a=ns.s, b=ns.s)",
    "ns.s * 2",
    "2 * ns.s",
    "ns.s|replace('a', 'aa')",
    "ns.s.replace('a', 'aa')",
    "'%s%s'|format(ns.s, ns.s)",
    "'%s%s' % (ns.s, ns.s)",
    "'%(a)s%(a)s' % {'a': ns.s}",
    "'{0}{0}'.format(ns.s)",
    "[ns.s, ns.s]|join",
    "''.join([ns.s, ns.s])",
    "ns.s.join('aaa')",
    "[ns.s, ns.s]|string",
    "[ns.s, ns.s]|tojson",
]


@pytest.mark.parametrize("expression", GROWING)
def test_values_that_double_are_stopped(expression: str) -> None:
    source = (
        "{% set ns = namespace(s='a') %}{% for i in range(60) %}{% set ns.s = "
        + expression
        + " %}{% endfor %}{{ ns.s }}"
    )
    with pytest.raises(TemplateError, match="refused"):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'A' * 10**9 }}",
        "{{ [0] * 10**9 }}",
        "{{ 10**9 * [0] }}",
        "{{ 9**(9**9) }}",
        "{{ 9**9**9**9**9 }}",
        "{% set ns = namespace(s=2) %}{% for i in range(60) %}{% set ns.s = ns.s * ns.s %}{% endfor %}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (10**9, 1) }}",
        "{{ '%.1000000000f' % 1.5 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 999999999) }}",
        "{{ 'a'.ljust(10**9) }}",
        "{{ 'a'.zfill(10**9) }}",
        "{{ 'a'.expandtabs(10**9) }}",
        "{{ 'a'|indent(10**9, true) }}",
        "{{ ('\n' * 9999)|indent('x' * 9999, true) }}",
        "{{ 1|round(10**9) }}",
        "{{ messages|batch(10**9, 'x')|list }}",
        "{{ messages|slice(10**9)|list }}",
        "{{ messages|tojson(indent=10**9) }}",
        "{{ messages|tojson(separators=('x' * 9999, ':')) }}",
        "{{ range(10**9) }}",
        "{{ ('a' * 1000000).join('b' * 1000000) }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
        "{% set ns = namespace(s='a') %}{% for i in range(60) %}{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}"
        "{% set ns.s = x %}{% endfor %}",
        "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
        "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
        "{{ " + "[" * 20_000 + "]" * 20_000 + " }}",
        "{{ 1" + "+1" * 20_000 + " }}",
        "{{ 1" + "|abs" * 10_000 + " }}",
        "{% if 1 %}" * 4_000,
        "{% for a in b %}" * 25 + "{% endfor %}" * 25,
        "x" * (MAX_SOURCE + 1),
        "{{",
        "{% if %}",
    ],
)
def test_what_asks_for_too_much_is_refused(source: str) -> None:
    with pytest.raises(TemplateError):
        render(source)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(25000) %}{% for j in range(25000) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) if j < 0 %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{{ range(99999)|map('string')|list|length }}{% endfor %}",
        "{% macro m() %}{% set x = 1 %}{% endmacro %}"
        "{% for i in range(99999) %}{% for j in range(99999) %}{{ m() }}{% endfor %}{% endfor %}",
        "{% set b = 'a' * 4000000 %}{% set c = 'a' * 1999999 ~ 'b' ~ 'a' * 1999999 %}"
        "{% for i in range(99999) %}{% if c in b %}{% endif %}{% endfor %}",
    ],
)
def test_loops_without_end_are_stopped_by_the_clock(source: str) -> None:
    """While loading already, where the template is only probed."""
    start = time.thread_time()
    with pytest.raises(TemplateError, match="too long"):
        ChatTemplate(source)
    assert time.thread_time() - start < 5


def test_jinja_is_new_enough_and_only_used_in_the_sandbox() -> None:
    assert tuple(map(int, version("jinja2").split(".")[:3])) >= (3, 1, 6)
    plain = re.compile(r"jinja2\.Template\(|\bTemplate\(|(?<![A-Za-z])(Sandboxed)?Environment\(")
    root = Path(__file__).parents[3]
    files = [*(root / "engine").rglob("*.py"), *(root / "app").rglob("*.py")]
    assert files
    assert [file.name for file in files if plain.search(file.read_text(encoding="utf-8"))] == []
