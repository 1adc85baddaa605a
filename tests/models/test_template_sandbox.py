"""What a chat template may not do to the machine, and that it is left alone otherwise."""

import jinja2
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from models.errors import TokenizerError
from models.tokenizers import ChatTemplate
from models.tokenizers.template_budget import Budget, current_budget, spending
from models.tokenizers.template_environment import (
    compile_template,
    find_variables,
    render_template,
)

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": " <think>é</think>\nHi \n"},
    {"role": "assistant", "content": "a\nb"},
    {"role": "user", "content": "x" * 3000},
]
TOO_MUCH = "loops for longer, or makes longer texts"
MILLION = "{% set s = 'x' * 1000000 %}"
OFTEN = "{% for i in range(99999) %}"
FOLDED = (
    "{% set ns = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}"
    "{% set ns.a = (ns.a, ns.a) %}{% set ns.b = (ns.b, ns.b) %}{% endfor %}"
)
DOUBLED = "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = "


def render(source: str) -> str:
    n_characters = sum(len(message["content"]) for message in MESSAGES)
    return render_template(compile_template(source), {"messages": MESSAGES}, n_characters)


@pytest.mark.parametrize(
    "source",
    [
        MILLION + "{% for a in s %}{% for b in s %}{% endfor %}{% endfor %}",
        MILLION + OFTEN + "{% for j in s if false %}{% endfor %}{% endfor %}",
        "{% for i in [1] %}" * 15 + OFTEN + OFTEN + "{% endfor %}" * 17,
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
        "{{ f(60) }}",
        "{% macro f() %}" + "{% set a = 1 %}" * 2000 + "{% endmacro %}"
        "{% for i in range(9999) %}{{ f() }}{% endfor %}",
        "{% block a %}" + OFTEN + "{{ self.b() }}{% endfor %}{% endblock %}"
        "{% block b %}" + OFTEN + "{% endfor %}{% endblock %}",
        "{% set t %}" + OFTEN + "x" * 50_000 + "{% endfor %}{% endset %}",
    ],
)  # fmt: skip
def test_loops_of_all_kinds_end(source: str) -> None:
    with pytest.raises(jinja2.TemplateError, match=TOO_MUCH):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 10000000 }}",
        "{% set t = [1] * 1000000 %}",
        "{% set t = 1000000 * (1,) %}",
        DOUBLED + "ns.s ~ ns.s %}{% endfor %}",
        DOUBLED + "ns.s + ns.s %}{% endfor %}",
        DOUBLED + "[ns.s, ns.s] | join %}{% endfor %}",
        DOUBLED + "ns.s.replace('a', 'ab') %}{% set ns.s = ns.s.replace('b', 'ba') %}{% endfor %}",
        DOUBLED + "'%s%s' % (ns.s, ns.s) %}{% endfor %}",
        DOUBLED + "'%(a)s%(a)s' | format(a=ns.s) %}{% endfor %}",
        DOUBLED + "[ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
        DOUBLED + "dict(a=ns.s, b=ns.s) %}{% endfor %}{{ ns.s | tojson }}",
        "{% set t = 'ab' %}" + "{% set t %}{{ t }}{{ t }}{% endset %}" * 60,
        "{% set ns = namespace(s=[1]) %}" + OFTEN + "{% set ns.s = ns.s * 2 %}{% endfor %}",
        "{{ 'a' | indent(1000000000, true) }}",
        "{{ ('x' * 50000) | list | join('y' * 50000) }}",
        "{{ ('y' * 50000).join('x' * 50000) }}",
        "{{ (('y' * 50000) | safe).join('x' * 50000) }}",
        "{{ ('x' * 50000) | replace('x', 'y' * 50000) }}",
        "{{ ('x' * 50000).replace('x', 'y' * 50000) }}",
        "{% set ns = namespace(s=['x' * 1000000]) %}{% for i in range(900) %}"
        "{% set ns.s = [ns.s, 1] %}{% endfor %}{{ (ns.s, ns.s) | tojson(indent=20) }}",
    ],
)
def test_texts_and_lists_do_not_grow_without_end(source: str) -> None:
    with pytest.raises(jinja2.TemplateError, match=TOO_MUCH):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        FOLDED + "{{ ns.a == ns.b }}",
        FOLDED + "{{ ns.a in [ns.b] }}",
        FOLDED + "{{ ns.a is eq(ns.b) }}",
        FOLDED + "{{ ns.a in {} }}",
        FOLDED + "{{ {ns.a: 1} }}",
        FOLDED + "{{ {}[ns.a] }}",
        FOLDED + "{{ [ns.a, ns.b] | unique }}",
        MILLION + "{% set t = s + 'y' %}" + OFTEN + "{% if s in t %}{% endif %}{% endfor %}",
        MILLION + "{{ s.rfind('b' + 'x' * 500000) }}",
        MILLION + "{{ s.strip('b' * 500000 + 'x') }}",
        MILLION + "{{ s | trim('b' * 500000 + 'x') }}",
        MILLION + "{% for i in range(99) %}{% set t = s[::-1] %}{% endfor %}",
        MILLION + OFTEN + "{% set t = s.upper() %}{% endfor %}",
        "{{ ('x' * 1000) | list | map(attribute='" + "0." * 30_000 + "0') | list | length }}",
        "{% set ns = namespace(g='x' * 50000) %}{% for i in range(200) %}"
        "{% set ns.g = ns.g | select %}{% endfor %}{{ ns.g | list | length }}",
        "{{ ('%(' * 400000) % 1 }}",
        "{{ [-1000000000] | map('<step>') | list }}{{ 'x' * 10000000 }}",
    ],
)
def test_one_operation_cannot_take_for_ever(source: str) -> None:
    with pytest.raises(jinja2.TemplateError, match=TOO_MUCH):
        render(source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ 'a' | center(1000000) }}", "No filter named 'center'"),
        ("{{ [1] | batch(1000000, 1) | list }}", "No filter named 'batch'"),
        ("{{ 'a'.center(1000000) }}", "'center' of 'str' object is unsafe"),
        ("{{ 'a'.ljust(1000000) }}", "unsafe"),
        ("{{ 'a'.zfill(1000000) }}", "unsafe"),
        ("{{ '{:>1000000}'.format('a') }}", "unsafe"),
        ("{{ ('a' | attr('zfill'))(1000000) }}", "unsafe"),
        ("{{ (1).to_bytes(1000000, 'big') }}", "unsafe"),
        ("{{ dict.fromkeys(range(9)) }}", "unsafe"),
        ("{{ '%01000000d' % 1 }}", "pads a text"),
        ("{{ '%*d' % (1000000, 1) }}", "pads a text"),
        ("{{ '%.1000000f' | format(1) }}", "pads a text"),
        ("{{ 10 ** 10000000 % 7 }}", "thousands of digits"),
        ("{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}"
         "{% endfor %}", "thousands of digits"),
        ("{{ 1.5 | round(1000000, 'ceil') }}", "decimals"),
        ("{{ lipsum(n=20000) }}", "'lipsum' is undefined"),
        ("{{ [1] | tojson(indent=1000000) }}", "indents by more"),
        ("{{ strftime_now('%c' * 1000) }}", "a date in more than"),
        ("x" * 100_001, "more than 100,000 characters"),
        ("{{ x + 1 }}" * 9_000, "more than 20,000 parts"),
    ],
)  # fmt: skip
def test_what_makes_much_of_a_number_is_refused(source: str, words: str) -> None:
    with pytest.raises((jinja2.TemplateError, OverflowError), match=words):
        render(source)


def test_finding_variables_does_not_run_a_template_without_end() -> None:
    assert find_variables("{{ 'x' * 10000000 }}{{ 'a' ~ mode }}") == {"mode"}
    with pytest.raises(jinja2.TemplateError, match="center"):
        find_variables("{{ 'a' | center(1000000000) }}")


def test_an_error_of_a_template_is_shown_in_part() -> None:
    class NoTokens:
        bos_id = eos_id = pad_id = None

    chat = ChatTemplate("{{ raise_exception('x' * 1000000) }}", NoTokens())  # type: ignore[arg-type]
    with pytest.raises(TokenizerError) as caught:
        chat.render(MESSAGES)
    assert len(caught.value.message) < 2_000


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role ~ ': ' ~ m['content'] | trim }}"
        "{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% set ns = namespace(last=-1, all=[]) %}{% for m in messages %}{% if m.role == 'user' "
        "and m.content is string and not m.content.startswith('<x>') %}{% set ns.last = "
        "loop.index0 %}{% endif %}{% set ns.all = ns.all + [m.role] %}{% endfor %}"
        "{{ ns.last }}{{ ns.all }}{{ ns.all | unique | sort | join('|') }}",
        "{% for m in messages %}{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1]"
        ".lstrip('\n') }}{% elif loop.first %}{% continue %}{% else %}{% break %}{% endif %}"
        "{% endfor %}",
        "{% for m in messages if m.role != 'system' %}{{ loop.length }}{{ loop.previtem }}"
        "{{ loop.cycle('a', 'b') }}{% else %}none{% endfor %}",
        "{% macro show(m, mark='-') %}{{ mark }}{{ m.content | upper }}{{ caller() if caller }}"
        "{% endmacro %}{{ show(messages[0]) }}{% call show(messages[2], mark='+') %}!{% endcall %}",
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}",
        "{{ messages | rejectattr('role', 'in', ['user']) | list | length }}",
        "{% for key, value in messages[0].items() %}{{ key }}={{ value | replace('e', '3') }}"
        "{% endfor %}{{ messages[0] | dictsort }}{{ messages[0].get('tool_calls') is none }}",
        "{% for role, group in messages | groupby('role') %}{{ role }}{{ group | length }}"
        "{% endfor %}{{ (messages | groupby('role'))[0].grouper }}"
        "{{ [3, 1, 2] | sort(reverse=true) | first }}{{ [1, 2] | max }}",
        "{{ '%s: %5.1f' % ('a', 2.25) }}{{ '%02d' | format(7) }}{{ 7 // 2 ** 2 - 3 % 2 }}"
        "{{ 2.567 | round(2) }}{{ 'a\nb' | indent(2, true) }}{{ '=' * 20 }}"
        "{{ -(messages | length) }}",
        "{% set t %}{{ messages[2].content }}{% endset %}{{ t.splitlines() }}{{ t[:1] }}"
        "{{ (none or 'x') if messages else y }}{{ undefined_name }}"
        "{{ undefined_name | default(3) }}",
        "{% filter upper %}{% block b %}{{ messages[0].content }}{% endblock %}{% endfilter %}"
        "{% with a = 1 %}{{ a }}{% endwith %}"
        "{% autoescape true %}{{ '<' ~ '&' }}{% endautoescape %}",
        "{% set next = joiner(', ') %}{% for n in [[1, [2]], [3]] recursive %}{{ next() }}"
        "{{ loop(n) if n is iterable else n }}{% endfor %}{{ {'a': (1, 2)}['a'][1] }}",
        "{{ messages | map('length') | list }}{{ messages[3].content | length }}{{ 2 < 3 <= 3 }}",
    ],
)  # fmt: skip
def test_other_templates_print_what_jinja_prints(source: str) -> None:
    plain = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    assert render(source) == plain.from_string(source).render(messages=MESSAGES)


def test_a_long_chat_is_not_too_much() -> None:
    source = (
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('no turns') }}{% endif %}{{ '<' + m.role + '>' + m.content | trim }}"
        "{% if messages[loop.index0:] | selectattr('role', 'eq', 'x') | list %}!{% endif %}"
        "{% endfor %}"
    )
    chat = [{"role": ["user", "assistant"][i % 2], "content": "x" * 500} for i in range(100)]
    printed = render_template(compile_template(source), {"messages": chat}, 500 * 100)
    assert printed == "".join(f"<{message['role']}>{message['content']}" for message in chat)


@pytest.mark.slow
def test_each_rendering_has_a_budget_of_its_own() -> None:
    template = compile_template("{% for i in range(9999) %}{{ i }}{% endfor %}")
    for _ in range(50):
        render_template(template, {}, 0)
    outer, inner = Budget(), Budget()
    with spending(outer):
        with spending(inner):
            assert current_budget() is inner
        assert current_budget() is outer
