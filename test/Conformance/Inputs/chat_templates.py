"""Chat templates rendered by dsopt and by jinja2, set up as transformers does it: equal, or both refuse.

usage: chat_templates.py BIN SCRATCH [FOLDER]. Templates of styles that models have, small ones for each part of the language, and those of
a folder (*.jinja). The last line says how many were equal.
"""
import datetime
import json
import pathlib
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

CHATML = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}"""
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}{% else %}{% set content = m['content'] %}{% endif %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif m['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system's message first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- "Today: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}"""
PHI = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}"""
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate: " ~ message.role) }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}
"""
REASONING = """{%- macro render(message, last=false) -%}
    {%- set text = message.content if message.content is string else '' -%}
    {%- if '</think>' in text and not last -%}
        {%- set text = text.split('</think>')[-1].lstrip('\n') -%}
    {%- endif -%}
    <{{ message.role | upper }}>{{ text }}
{%- endmacro -%}
{%- set ns = namespace(last=-1, tools=[]) -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages[::-1] -%}
    {%- if loop.index0 > 3 -%}{% break %}{%- endif -%}
    {%- if message.role == 'system' -%}{% continue %}{%- endif -%}
    {{ render(message, last=(loop.revindex0 == ns.last)) }}
{% endfor %}
{{ strftime_now("%d %B %Y") }}"""

TOOLS = [{"type": "function", "function": {"name": "weather", "description": "It's \"today\" & <more>", "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Zürich", "東京"]}, "days": {"type": "integer", "default": 3}}, "required": ["city"]}, "return": {}}}]
CONVERSATIONS = [
    {"messages": [{"role": "user", "content": "Hello, \n world "}]},
    {"messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi 'you'"}, {"role": "assistant", "content": "<think>hm</think>\n\nSo: ünïcödé 👍"}, {"role": "user", "content": "More?"}]},
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}, {"role": "user", "content": "e"}], "add_generation_prompt": False},
    {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "What weather?"}, {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 2, "x": [1.5, True, None]}}}]}, {"role": "tool", "content": {"t": 3.0}}], "tools": TOOLS, "date_string": "1 Jan 2026"},
    {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}], "tools": TOOLS},
]
DATA = '{% set d = {"a": 1, "b": [3, 1, 2], "c": {"x": "Y", "n": none}} %}{% set l = [{"n": "b", "k": 2}, {"n": "A", "k": 1}, {"n": "c"}] %}{% set s = "  Hello, Wörld\\n" %}'
# Each is rendered behind DATA.
EXPRESSIONS = """
1 + 2 * 3 - 4 / 2
7 // 2 ~ "," ~ -7 // 2 ~ "," ~ 7 % 3 ~ "," ~ -7 % 3 ~ "," ~ 2 ** 10 ~ "," ~ 2 ** -1 ~ "," ~ 7.5 // 2 ~ "," ~ -7.5 % 2
1.0 ~ " " ~ 0.1 ~ " " ~ 1e20 ~ " " ~ 1e-7 ~ " " ~ 123456789.125 ~ " " ~ 1e15 ~ " " ~ 1e16 ~ " " ~ 0.00012 ~ " " ~ 100.0
"a" * 3 + "b"
[1, 2] + [3]
[1, "two", 3.0, none, true, {"k": 'v"w'}, "it's", "a\\nb"]
(1, 2)[1] if d else "none"
d.a, d["b"], d.c.x, d.missing is defined, d.c.n is none
not d.a == 1 or d.b and "yes"
1 < 2 < 3, 1 < 3 < 2, "a" < "b", 1 == 1.0, "1" == 1, true == 1, [1] == [1]
"ell" in s, "x" not in s, 3 in d.b, "a" in d, "z" in d
s.strip() ~ "|" ~ s.lstrip() ~ "|" ~ s.rstrip() ~ "|" ~ "xxabcxx".strip("x") ~ "|" ~ s | trim
s.upper() ~ s.lower() ~ "hello world-foo".title() ~ "hELLO".capitalize() ~ "straße" | upper
"a,b,,c".split(","), " a  b c ".split(), "a,b,c".split(",", 1), "abc".split("x"), "a\\nb\\r\\nc".splitlines()
"abc".startswith("ab"), "abc".endswith(("x", "c")), "aXbX".replace("X", "-"), "aXbX".replace("X", "-", 1), "abab".count("ab"), "héllo".find("l")
"-".join(["a", "b"]), ["a", 1, none] | join(","), l | join("/", attribute="n"), [1, 2] | join
s[2:5], s[-3:], s[::-1], "héllo"[1], "abc"[-1], [1, 2, 3, 4, 5][1:4:2], [1, 2, 3][::-1], [1, 2, 3][:-1], [1][5:], "abc"[10:], [1, 2, 3, 4][-2::-1]
l | map(attribute="n") | list, l | map(attribute="k", default=0) | list, ["a", "b"] | map("upper") | list, [" a "] | map("trim") | first
l | selectattr("k") | list | length, l | rejectattr("k", "defined") | map(attribute="n") | list, l | selectattr("k", "gt", 1) | list, [1, 2, 3] | select("odd") | list, [0, 1] | reject | list
d.b | sort, d.b | sort(reverse=true), l | sort(attribute="n") | map(attribute="n") | list, ["b", "A", "a"] | sort, ["b", "A"] | sort(case_sensitive=true), d.b | reverse | list
d | dictsort, d | length, d | list, d.items() | list, d.keys() | list, d | items | list, d.get("a"), d.get("z"), d.get("z", 5)
d | tojson, d | tojson(indent=2), "é\\"\\\\\\n\\u0001/<&>'" | tojson, [] | tojson(indent=4), {} | tojson, [1.0, 1e100, -0.5] | tojson, {"b": 1, "a": {"d": 2, "c": 3}} | tojson(sort_keys=true)
d | tojson(separators=(",", ":"))
missing | default("x"), none | default("x"), "" | default("x", true), missing | d("y"), d.a | default("z")
d.b | first, d.b | last, [] | first is defined, d.b | min, d.b | max, d.b | sum, l | sum(attribute="k", start=0) if false else 0
["a", "A", "b", "a"] | unique | list, [1, 1, 2] | unique | list
"3" | int + 1, "x" | int, "x" | int(7), 3.9 | int, "2.5" | float, "x" | float, 2.567 | round(2), 2.5 | round, 3 | abs, -2.5 | abs, 2.1 | round(method="ceil")
"a\\nb\\n\\nc" | indent, "a\\nb" | indent(2, true), "a\\n\\nb\\n" | indent(3, blank=true)
"abc" | length, "héé" | count, "abc" | list, "abc" | reverse, "abc" | replace("b", "-"), "ab" | string, 12 | string | length, "hello wORLD" | title, "hELLO" | capitalize
s is string, 1 is number, 1.5 is float, 1 is integer, true is boolean, true is integer, d is mapping, l is iterable, s is iterable, 1 is iterable, l is sequence, d is sequence, none is none, x is undefined
1 is odd, 2 is even, 6 is divisibleby 3, 3 is eq 3, 3 is ne(4), 3 is gt 2, 3 is in [1, 3], "A" is upper, "a" is lower, true is true, false is false, x is not defined, 1 is sameas 1
range(3) | list, range(1, 6, 2) | list, range(3, 0, -1) | list
namespace(a=1).a, dict(a=1, b=2)
"yes" if d.a == 1 else "no", "only" if false, ("x" if true) ~ "y"
true and false or true, not true, none or "fallback", "" or none or 0, 1 and 2
-d.a, - 2 | abs, +3, 1_000, 5 % 3 * 2, "%" ~ 5
"\\x41\\u00e9\\t|\\'\\q"
'single "double"' ~ "double 'single'"
"con" "cat"
d["c"]["x"].lower().upper()
loop is defined, self_ is defined
("<" | safe) + "<'", "&" + ("<" | safe), ("<" | safe) ~ "<", "<" | safe | length, ("a" | safe) == "a", (d | tojson | safe) ~ "\"", ["<" | safe]
"a" ~ 1 ~ 2.0 ~ none ~ true ~ [1] ~ missing
{"a": 1}.items() | list, [[1, 2], [3, 4]] | map("first") | list, [["x", 1]] | map(attribute=1) | list, [{"a": {"b": 7}}] | map(attribute="a.b") | list
""".strip().splitlines()
STATEMENTS = [
    "{% for i in [1,2,3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for i in [] %}x{% else %}empty{% endfor %}{% for i in missing %}x{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for a, (b) in [[1,2]] if false %}{% endfor %}" if False else "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for i in [1,2,3,4] if i is even %}{{ i }}{{ loop.index }}{{ loop.last }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0) %}{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{% if i == 1 %}{% continue %}{% endif %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
    "{% for i in [1,2] %}{% for j in [1,2] %}{{ i }}{{ j }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for i in 'abc' %}{{ loop.cycle('x', 'y') }}{{ loop.changed(i == 'b') }}{% endfor %}",
    "{% macro m(a, b='B', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(a=4, c=5) }}{{ m() }}{% set r = m('q') %}{{ r | upper }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% set t %}a {{ 1 + 1 }} b{% endset %}[{{ t }}]{% set u | upper %}x{% endset %}{{ u }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (p, q) = [3, 4] %}{{ p }}{{ q }}",
    "{% with x = 5, y = 6 %}{{ x + y }}{% endwith %}{{ x is defined }}",
    "{% filter upper %}abc{{ 'd' }}{% endfilter %}{% filter replace('a', 'b') | upper %}aa{% endfilter %}",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%- if true -%}\n  b\n  {%- endif %}\n  c\n\n",
    "  {%+ if true %}x{% endif +%}\n y",
    "{# one #}\n a {# two #} b\n  {#- three -#}  \n c",
    "x {{- ' y ' -}} z\n{{ 1 }}\n{{ 2 }}\n",
    "{% raw %}{{ not }} {% this %}{% endraw %} end",
    "  {% raw -%}  a  {%- endraw %}  b",
    "{{ '{{' }} {{ \"%}\" }} { { } } {x}",
    "\r\na\r\n{% if 1 %}\r\nb{% endif %}\r\n",
    "{% if false %}1{% elif none %}2{% elif 'x' %}3{% else %}4{% endif %}",
    "{{ messages | length }} {{ messages[0].role }} {{ tools is none }} {{ documents is none }} {{ bos_token }} {{ unk_token is defined }}",
    "line\n{% for x in [1, 2] %}\n  - {{ x }}\n{% endfor %}\nend",
    "{% for x in [1, 2] -%}\n  - {{ x }}\n{%- endfor %}\nend",
    "\t{% set x = 1 %}\n\t{{ x }}\n \t {# c #}\nz",
    "{{ x }}{{ d.zzz }}{{ d['zzz'] }}{{ l[10] }}",
    "{% set items = d.items %}{{ d.items() | list | length }}",
    "",
    "\n",
    "\n\n",
]
# What is refused by both, or by dsopt alone because it does not have it: what its message says.
REFUSED = {
    "{{ x.y }}": "is undefined",
    "{{ 1 + 'a' }}": "'+' is not supported between int and str",
    "{{ x() }}": "is undefined",
    "{{ raise_exception('no way') }}": "no way",
    "{{ 1 / 0 }}": "division by zero",
    "{% if %}": "expected an expression",
    "{% for x in %}": "expected an expression",
    "{% for x in [1] %}": "endfor",
    "{{ 'a }}": "a text without its end",
    "{{ 1 ": "expected }}",
    "{# open": "a comment without its end",
    "{% endif %}": "ends nothing",
    "{{ [1, 2 }}": "expected }}",
    "{{ x | nofilter }}": "the filter nofilter is not supported",
    "{{ x is notest }}": "the test notest is not supported",
    "{% import 'x' as y %}": "the statement import is not supported",
    "{% include 'x' %}": "the statement include is not supported",
    "{{ [3] | first | sort }}": "is not iterable",
    "{% set x.y = 1 %}": "no namespace",
    "{{ range(10000000) }}": "range is larger",
    "{% break %}": "outside of a loop",
    "{{ [1].append(2) }}": "the method list.append is not supported",
    "{{ 'a'.format(1) }}": "the method str.format is not supported",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "in each other",
    "{{ " + "(" * 400 + "1" + ")" * 400 + " }}": "in each other",
    "{{ 'a' * 1000000000 }}": "too large",
    "{{ 9223372036854775807 + 1 }}": "too large",
    "{{ ('a' | safe).upper() }}": "of a text that is safe is not supported",
    "{{ 'a' | safe | trim }}": "the filter trim of a text that is safe is not supported",
    "a\nb\n{{ 1 | batch(2) }}": "line 3",
}


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda text: datetime.datetime.now().strftime(text)
    return env


class Tokenizers:
    """Folders whose ids are bytes, so that what is rendered can be read off."""

    def __init__(self, binary, scratch):
        self.binary, self.scratch, self.env = binary, scratch, environment()
        letters = [chr(i) for i in range(256)]
        shown = [i for i in range(256) if 33 <= i <= 126 or 161 <= i <= 172 or i >= 174]
        for place, byte in enumerate(i for i in range(256) if i not in shown):
            letters[byte] = chr(256 + place)
        self.vocabulary = {letter: byte for byte, letter in enumerate(letters)}

    def render(self, template, lines):
        """Texts, and what is said on standard error."""
        folder = self.scratch / "bytes"
        folder.mkdir(parents=True, exist_ok=True)
        model = {"type": "BPE", "vocab": self.vocabulary, "merges": []}
        bytes_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
        (folder / "tokenizer.json").write_text(json.dumps({"model": model, "pre_tokenizer": bytes_level, "decoder": bytes_level}))
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "bos_token": "<s>", "eos_token": {"content": "</s>"}}))
        prompts = self.scratch / "conversations.jsonl"
        prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = subprocess.run([self.binary, "tokenize", folder, f"-prompts={prompts}"], capture_output=True, text=True)
        return [bytes(map(int, line.split())).decode() for line in done.stdout.split("\n")[:-1]], done.stderr

    def expected(self, template, line):
        try:
            return self.env.from_string(template).render(**({"documents": None, "tools": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"} | line))
        except (jinja2.exceptions.TemplateError, TypeError, ZeroDivisionError, OverflowError, RecursionError, MemoryError, SyntaxError):
            return None


def main(binary, scratch, folder=None):
    tokenizers = Tokenizers(pathlib.Path(binary) / "dsopt", pathlib.Path(scratch))
    equal = failed = 0

    def compare(name, template, lines):
        nonlocal equal, failed
        for line in lines:
            right = tokenizers.expected(template, line)
            texts, said = tokenizers.render(template, [line])
            mine = texts[0] if texts else None
            if mine == right and (mine is not None or said.count("\n") == 1):
                equal += 1
                continue
            failed += 1
            print(f"{name}: got {mine!r}, expected {right!r} {said.strip()}")

    styles = {"ChatML": CHATML, "Llama 2": LLAMA2, "Llama 3": LLAMA3, "Gemma": GEMMA, "Phi": PHI, "Mistral": MISTRAL, "reasoning": REASONING}
    for path in sorted(pathlib.Path(folder).glob("*.jinja")) if folder else []:
        styles[path.name] = path.read_text()
    for name, template in styles.items():
        compare(name, template, CONVERSATIONS)
    for expression in EXPRESSIONS:
        compare(expression, DATA + "{{ " + expression + " }}", CONVERSATIONS[:1])
    for statement in STATEMENTS:
        compare(repr(statement), DATA + statement, CONVERSATIONS[:1])
    for template, message in REFUSED.items():
        texts, said = tokenizers.render(template, CONVERSATIONS[:1])
        if texts or message not in said or said.count("\n") != 1 or "the chat template: line " not in said:
            failed += 1
            print(f"{template[:60]!r}: got {texts} {said.strip()!r}, expected {message!r}")
        else:
            equal += 1
    print(f"{equal} equal, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
