"""What templates in use need; the expected texts are what transformers 5.24 renders."""

from __future__ import annotations

from datetime import datetime

import pytest

from engine.chat_template import ChatTemplate
from engine.errors import TemplateError

CONVERSATION = [
    {"role": "system", "content": 'Be "brief".'},
    {"role": "user", "content": " Hi there \n"},
    {"role": "assistant", "content": "<think>a</think>Hello!"},
    {"role": "user", "content": "Bye"},
]
VALUE = {"b": 1, "a": "é<b>&'/—안녕🤗"}


def render(source: str, **variables: object) -> str:
    # The probe finds the system text in what stands before the mark; the rest is the case.
    template = ChatTemplate("{{ messages[0].content }}¦\n" + source, now=lambda: datetime(2024, 7, 26, 9, 5))
    segments = template.render(CONVERSATION, variables=variables)
    return "".join(segment.text for segment in segments).split("¦\n", 1)[1]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% if true %}\nA\n{% endif %}\nB", "A\nB"),
        ("   {% if 1 %}\n  indented\n   {% endif %}\nend\n", "  indented\nend"),
        ("{% set tools = none %}{{ tools is none }}", "True"),
        (
            "{% for m in messages[1:] %}{{ loop.index0 }}{{ loop.last }}"
            "{{ loop.previtem.role if loop.previtem is defined }}"
            "{{ loop.nextitem.role if loop.nextitem is defined }}|{% endfor %}",
            "0Falseassistant|1Falseuseruser|2Trueassistant|",
        ),
        (
            "{% set ns = namespace(n=0, l=[]) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
            "{% set ns.l = ns.l + [m.role] %}{% endfor %}{{ ns.n }}{{ ns.l }}",
            "4['system', 'user', 'assistant', 'user']",
        ),
        (
            "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
            "{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "0134",
        ),
        ("a{% generation %} x{{ messages[0].role }}{% endgeneration %} b", "a xsystem b"),
        ("{% macro m(a, b='z') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}", "[1z][12]"),
        ("{{ 'a' is string }}{{ messages is iterable }}{{ messages[0] is mapping }}", "TrueTrueTrue"),
        ("{{ x is defined }}{{ strftime_now is defined }}", "TrueTrue"),
        ("{% for k, v in messages[3].items() %}{{ k }}={{ v }};{% endfor %}", "role=user;content=Bye;"),
        ("{% for k, v in messages[3]|items %}{{ k }}={{ v }};{% endfor %}", "role=user;content=Bye;"),
        ("{{ messages[2].content.split('</think>')|last }}", "Hello!"),
        ("{{ messages[1].content.strip('\\n').lstrip() }}|{{ 'abc'.startswith('a') }}", "Hi there |True"),
        (
            "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join(',') }}",
            " Hi there \n,Bye",
        ),
        ("{{ messages|rejectattr('role', 'equalto', 'user')|list|length }}", "2"),
        ("{{ nothing|default('d') }}{{ 'a' ~ 1 ~ 'b' }}{{ messages[1].content|trim }}", "da1bHi there"),
        ("a\n {{- ' x ' -}} y", "a x y"),
        ("{{ 'abc'[::-1] }}{{ 7 // 2 }}{{ 7 % 4 }}{{ 2 ** 5 }}{{ 'a' * 3 }}{{ 1 + 2.5 }}", "cba3332aaa3.5"),
        ("{{ '%s and %05d' % ('x', 3) }}{{ '{} {b:>5}'.format(1, b='q') }}", "x and 000031     q"),
        ("{% set x %}cap{{ 1 }}{% endset %}{{ x }}{% filter upper %}abc{% endfilter %}", "cap1ABC"),
        ("{% macro m() %}{{ caller('q') }}{% endmacro %}{% call(a) m() %}<{{ a }}>{% endcall %}", "<q>"),
        ("{% set a, b = (1, 2) %}{{ a }}{{ b }}{{ {'a': [1, (2,)]} }}", "12{'a': [1, (2,)]}"),
        ("{{ x|tojson }}", '{"b": 1, "a": "é<b>&\'/—안녕🤗"}'),
        ("{{ [1,2]|tojson }}{{ [1,2]|tojson(separators=(',', ':')) }}", "[1, 2][1,2]"),
        ("{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ {'a': [1]}|tojson(indent=2) }}", '{\n  "a": [\n    1\n  ]\n}'),
        ("{{ 'é'|tojson(ensure_ascii=true) }}", '"\\u00e9"'),
        ("{{ '<t>' + (x.a|tojson) + '</t>' }}", '<t>"é<b>&\'/—안녕🤗"</t>'),
        ('{{ strftime_now("%d %b %Y") }}', "26 Jul 2024"),
        ('{{ strftime_now("%Y-%m-%d %H:%M:%S") }}', "2024-07-26 09:05:00"),
        ('{{ strftime_now("%A, %-d %B %I:%M %p %j%%") }}', "Friday, 26 July 09:05 AM 208%"),
        ('[{{ strftime_now("") }}][{{ strftime_now("%") }}][{{ strftime_now("%Q") }}]', "[][%][%Q]"),
    ],
)
def test_renders(source: str, expected: str) -> None:
    assert render(source, x=VALUE) == expected


def test_names_of_tokens() -> None:
    template = ChatTemplate(
        "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", bos_text="<s>", eos_text="</s>"
    )
    assert "".join(s.text for s in template.render([{"role": "user", "content": "x"}])) == "<s>x</s>"


def test_an_error_in_a_template_names_its_line() -> None:
    with pytest.raises(TemplateError, match="line 2"):
        ChatTemplate("\n{% if %}")


def test_the_template_cannot_change_the_conversation_it_gets() -> None:
    messages = [{"role": "user", "content": "x", "list": [1]}]
    with pytest.raises(TemplateError):
        ChatTemplate(
            "{{ messages[0].content }}{% if messages[0].list %}{{ messages[0].list.append(2) }}{% endif %}"
        ).render(messages)
    assert messages == [{"role": "user", "content": "x", "list": [1]}]
