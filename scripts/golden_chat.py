#!/usr/bin/env python3
"""Makes tests/data/golden/chat.json: what chat templates write, by Jinja as Transformers sets it up.

    golden_chat.py OUTPUT_DIRECTORY

Needs the package jinja2.

    {"conversations": [[[role, content], …], …],
     "known": [{"name", "source", "asking": [text a conversation], "resting": [the same without
                add_generation_prompt]}],
     "programs": [the same of templates that are not ChatML],
     "refused": [{"name", "source", "words"}]}
"""

import pathlib
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

from golden_tokenizer import write

CONVERSATIONS = [
    [("user", "Hello")],
    [("user", "  two spaces, a line\n\nand \u4eca\u65e5 \U0001f469\u200d\U0001f4bb \n")],
    [("user", "")],
    [("system", "You are brief.\n"), ("user", "Why?")],
    [("system", ""), ("user", "assistant")],
    [("user", "1 + 1"), ("assistant", " 2\n"), ("user", "\tthanks")],
    [("system", "\u00e9t\u00e9"), ("user", "a"), ("assistant", ""), ("user", "b"), ("assistant", "c"), ("user", "{{ d }}")],
]

SMOLLM = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are "
    "a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
BARE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LINES = """{%- if not add_generation_prompt is defined -%}
    {% set add_generation_prompt = false %}
{%- endif -%}
{# turns #}
{%- for message in messages -%}
    {{- "<|im_start|>" ~ message.role ~ "\\n" -}}
    {{- message.content -}}
    {{- "<|im_end|>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- "<|im_start|>assistant\\n" -}}
{%- endif -%}
"""
TEXT_OUTSIDE = """{% for message in messages %}
<|im_start|>{{ message["role"] }}
{{ message["content"] }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}

"""
TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {{- raise_exception("no tools") }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
ROLES = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}"
    "{% else %}{% set rest = messages %}{% set system = 'Be kind.' %}{% endif %}{{ '<|im_start|>system\\n' + system + "
    "'<|im_end|>\\n' }}{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('order') }}"
    "{% endif %}{% if m['role'] == 'user' %}{{ '<|im_start|>user\\n' + m['content'] + '<|im_end|>\\n' }}{% elif m['role'] == "
    "'assistant' %}{{ \"<|im_start|>assistant\\n\" + m['content'] + \"<|im_end|>\\n\" }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt and messages[-1]['role'] != 'assistant' %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
KNOWN = {"SmolLM2's": SMOLLM, "bare": BARE, "on lines": LINES, "text outside": TEXT_OUTSIDE, "with tools": TOOLS,
         "role by role": ROLES, "other quotes": BARE.replace("'", '"'), "spaced": BARE.replace("{{", "{{   ").replace("%}", "  %}"),
         "in lines of its own": SMOLLM.replace("%}{%", "%}\n  {%")}  # fmt: skip

PROGRAMS = {
    "blanks before tags": "a {% if true %} b {% endif %} c\n  {% if true %}d\n {# e #} \n{{ 'f' }}  {% endif %}\n\tg{# h #}\n\n {{ 'i' }}",
    "blanks taken": "a \n {%- if true -%} \n b \n {{- 'c' -}} \n d {#- e -#} \n f {%- endif %} \n",
    "blanks kept": "a\n  {%+ if true +%}\nb\n  {%+ endif %}\nc\n\n",
    "tags in texts": "{{ '%} }} {{' }}{{ \"#}\" }}{# ' #}{% if '%}' == '%}' %}y{% endif %}{ {",
    "what a body sets": "{% set x = 'o' %}{% for m in messages %}{% if loop.first %}{% set x = 'f' %}{% set y = '1' %}{% endif %}"
    "{{ x }}{% if y is defined %}d{% else %}u{% endif %}{% endfor %}{{ x }}{% if y is not defined %}u{% endif %}",
    "loops in loops": "{% for m in messages %}{% for n in messages %}{% if loop.last %}{{ m.role }}{% endif %}{% if loop.first %}<"
    "{% endif %}{% endfor %}{% if loop.first %}1{% elif loop.last %}9{% elif loop.index == 2 %}2{% else %}-{% endif %}{% endfor %}",
    "what is not asked for": "{% if false and nothing.role == 'a' %}a{% endif %}{% if true or nothing[1] + 'b' %}b{% endif %}"
    "{% if messages[9] is defined and messages[9].role == 'a' %}c{% endif %}{% if false %}{{ f(x) }}{% for a, b in c %}{% endfor %}"
    "{% elif nothing %}{% else %}d{% endif %}",
    "numbers": "{% for m in messages %}{% if loop.index0 % 2 == 1 and loop.length != 3 %}o{% elif not loop.index % 2 %}t{% endif %}"
    "{% endfor %}{{ messages[-1].role }}{{ messages[0]['content'] | trim }}{% if messages | length == 2 %}2{% endif %}",
    "values": "{% if none == nothing %}a{% endif %}{% if tools is none and documents is none %}b{% endif %}{{ '' or 'c' }}{{ 'd' and 'e' }}"
    "{% if not '' and 'x' is string and nothing is undefined %}f{% endif %}{% if ('a' ~ 'b') == \"ab\" and 'a' != 'A' %}g{% endif %}"
    "{{ 'q\\'\\\\\\t\"' }}{% if messages %}h{% endif %}{% if add_generation_prompt == true %}i{% endif %}{% if 'a' == 1 %}j{% endif %}",
}
INSTRUCTIONS = (
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] }}{% endif %}{% endfor %}"
)
REFUSED = [
    ("instructions", INSTRUCTIONS, 'it writes "[INST]   What\'s 7'),
    ("begin of text", "{{ bos_token }}" + BARE, "it uses bos_token"),
    ("macro", "{% macro m() %}{% endmacro %}" + BARE, "it uses the statement macro"),
    ("trimmed", BARE.replace("message['content']", "message['content'] | trim"), "where ChatML has"),
    ("trimmed system", SMOLLM.replace("{{'<|im_start|>'", "{% if message['role'] == 'system' %}{{ '<|im_start|>system\n' + "
        "(message['content'] | trim) + '<|im_end|>\n' }}{% else %}{{'<|im_start|>'").replace("{% endfor", "{% endif %}{% endfor"),
        "where ChatML has"),
    ("no line behind a turn", BARE.replace(" + '\\n'}}", "}}"), "where ChatML has"),
    ("no generation prompt", BARE[: BARE.index("{% if")], 'it writes "" where ChatML has "<|im_start|>assistant'),
    ("thoughts", BARE.replace("assistant\\n", "assistant\\n<think>\\n"), 'it writes "<think>'),
    ("another role", BARE.replace("message['role']", "'human'"), "where ChatML has"),
    ("early turns dropped", BARE.replace("in messages", "in messages[-1:]"), "where ChatML has"),
    ("upper case", BARE.replace("message['content']", "message['content'].upper()"), "it uses the field upper"),
    ("filtered", BARE.replace("message['content']", "message['content'] | upper"), "it uses the filter upper"),
    ("loop with a condition", BARE.replace("in messages", "in messages if loop.first"), "it uses if"),
    ("namespace", "{% set ns = namespace(x=1) %}" + BARE, "it uses namespace"),
    ("date", BARE.replace("'<|im_start|>' +", "strftime_now('%d') +"), "it uses strftime_now"),
    ("unfinished tag", BARE + "{{ 'a'", "it has a tag without an end"),
    ("unfinished loop", "{% for message in messages %}a", "it has a for without endfor"),
    ("unfinished if", "{% if true %}a", "it has an if without endif"),
    ("no begin", BARE + "{% endif %}", "it has an end of what has not begun"),
    ("list", "{% set a = [1] %}" + BARE, "it uses ["),
    ("number", "{{ 7 }}" + BARE, "it writes what is no text"),
    ("joined", "{{ 'a' + 1 }}" + BARE, "it joins what is no text"),
    ("empty", "", 'it writes "" where ChatML has "<|im_start|>user'),
]  # fmt: skip


def render(source, conversation, asks):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    messages = [{"role": role, "content": content} for role, content in conversation]
    return environment.from_string(source).render(
        messages=messages, tools=None, documents=None, add_generation_prompt=asks
    )


def main():
    known, programs = ([{"name": name, "source": source,
              "asking": [render(source, conversation, True) for conversation in CONVERSATIONS],
              "resting": [render(source, conversation, False) for conversation in CONVERSATIONS]}
             for name, source in sources.items()] for sources in (KNOWN, PROGRAMS))  # fmt: skip
    refused = [{"name": name, "source": source, "words": words} for name, source, words in REFUSED]
    write(pathlib.Path(sys.argv[1]) / "chat.json", {"conversations": CONVERSATIONS, "known": known, "programs": programs,
                                                   "refused": refused})


if __name__ == "__main__":
    main()
