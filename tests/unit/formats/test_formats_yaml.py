"""YAML files, and command lines inside them."""

# ruff: noqa: E501  (one case a line: the list is a table)
from __future__ import annotations

import pytest
from tests.unit.formats.format_cases import Case, check, parametrized

from changectl import formats
from changectl.core.errors import EditRefused
from changectl.core.settings import Carrier, Key
from changectl.formats import ValueElsewhere

FILE = Carrier(format="yaml", file="/etc/vllm/chat.yaml")
COMMAND = Carrier(format="yaml", file="docker-compose.yml", at="services.vllm.command", then="flags")
ARGS = Carrier(format="yaml", file="deployment.yaml", at="spec.containers.0.args", then="flags")
SEQS = Key(("max-num-seqs",), "int")
FLAG = Key(("--max-num-seqs",), "int")
LEN = Key(("max-model-len",), "int")
DTYPE = Key(("dtype",))
EAGER = Key(("enforce-eager",), "bool")


def at(address: str) -> Carrier:
    return Carrier(format="yaml", file="x.yaml", at=address)


VLLM = """# chat model, see OPS-77
model: /srv/models/chat
max-num-seqs: 64   # was 32
gpu-memory-utilization: 0.9
dtype: "auto"
served-model-name: 'chat'
enforce-eager: false
"""
COMPOSE = """services:
  vllm:
    image: vllm/vllm-openai:v0.11.0
    command:
      - --model
      - /models/chat
      - "--max-num-seqs=64"
      - --port
      - "8000"
    environment:
      OMP_NUM_THREADS: "1"
  proxy:
    image: nginx
"""
FLOW = """services:
  vllm:
    command: ["--model", "/m", "--max-num-seqs", "64"]
"""
FOLDED = """services:
  vllm:
    command: >
      --model /m
      --max-num-seqs 64
      --port 8000
    restart: always
"""
K8S = """spec:
  containers:
  - name: vllm
    args:
    - --model=/m
    - --max-num-seqs=64
"""

CASES = [
    Case("a number with a comment", VLLM, SEQS, "128", FILE, ": 64 ", ": 128 ", before="64"),
    Case("a fraction", VLLM, Key(("gpu-memory-utilization",), "float"), "0.85", FILE, "0.9", "0.85", before="0.9"),
    Case("double quotes are kept", VLLM, DTYPE, "bfloat16", FILE, "auto", "bfloat16", before="auto"),
    Case("single quotes are kept", VLLM, Key(("served-model-name",)), "it's", FILE, "'chat'", "'it''s'", before="chat"),
    Case("a switch", VLLM, EAGER, "true", FILE, "false", "true", before="false"),
    Case("a key is inserted at the end", VLLM, LEN, "4096", FILE, "eager: false\n", "eager: false\nmax-model-len: 4096\n"),
    Case("a line is removed with its comment", VLLM, SEQS, None, FILE, "max-num-seqs: 64   # was 32\n", "", before="64"),
    Case("underscores are the same name", "max_num_seqs: 1\n", SEQS, "2", FILE, ": 1", ": 2", before="1"),
    Case("underscores are another name if the engine says so", "max_num_seqs: 1\n", Key(("max-num-seqs",), "int", underscores=False), "2", FILE, ": 1\n", ": 1\nmax-num-seqs: 2\n"),
    Case("two spellings of one name", "max_num_seqs: 1\nmax-num-seqs: 2\n", SEQS, "3", FILE, refusal="two spellings"),
    Case("a key that stands twice", "a: 1\nb: 2\na: 3\n", Key(("b",), "int"), "4", FILE, refusal="line 3: 'a' stands twice"),
    Case("a nested map", "engine:\n    args:\n        a: 1\n    x: 2\n", Key(("a",), "int"), "3", at("engine.args"), "a: 1", "a: 3", before="1"),
    Case("insertion into a nested map", "engine:\n    a: 1 # one\n\nother: 2\n", Key(("b",), "int"), "3", at("engine"), "# one\n", "# one\n    b: 3\n"),
    Case("insertion behind a nested map", "engine:\n  args:\n    a: 1\nother: 2\n", Key(("b",), "int"), "3", at("engine"), "a: 1\n", "a: 1\n  b: 3\n"),
    Case("insertion without a final newline", "a: 1", Key(("b",), "int"), "3", FILE, "a: 1", "a: 1\nb: 3"),
    Case("insertion into a file of comments", "# nothing yet\n", Key(("b",), "int"), "3", FILE, "yet\n", "yet\nb: 3\n"),
    Case("insertion behind a block of text", "a: |\n  x\n  y\n\n# end\n", Key(("b",), "int"), "3", FILE, "  y\n", "  y\nb: 3\n"),
    Case("insertion behind a block that keeps blank lines", "a: |+\n  x\n\n", Key(("b",), "int"), "3", FILE, refusal="nothing can follow"),
    Case("insertion behind an empty value", "b: 1\na:\n", Key(("c",), "int"), "3", FILE, "a:\n", "a:\nc: 3\n"),
    Case("insertion into a map in a list", "- name: x\n  b: 1\n- name: y\n", Key(("c",), "int"), "3", at("0"), "b: 1\n", "b: 1\n  c: 3\n"),
    Case("an index into a list", "m:\n- a: 1\n- a: 2\n", Key(("a",), "int"), "3", at("m.1"), "a: 2", "a: 3", before="2"),
    Case("an index behind the list", "m:\n- a: 1\n", Key(("a",), "int"), "3", at("m.4"), refusal="no '4'"),
    Case("an address that leads nowhere", "a: 1\n", Key(("b",), "int"), "3", at("server"), refusal="no 'server'"),
    Case("a key with a dot in the address", "a.b:\n  c: 1\n", Key(("c",), "int"), "2", at("a.b"), "c: 1", "c: 2", before="1"),
    Case("a flow map", "{a: 1, b: 2}\n", Key(("b",), "int"), "3", FILE, "b: 2", "b: 3", before="2"),
    Case("insertion into a flow map", "m: {a: 1, b: 2}\n", Key(("c",), "int"), "3", at("m"), "b: 2", "b: 2, c: 3"),
    Case("insertion into an empty flow map", "m: {}\n", Key(("c",), "int"), "3", at("m"), "{}", "{c: 3}"),
    Case("removal from a flow map", "m: {a: 1, b: 2}\n", Key(("a",), "int"), None, at("m"), "a: 1, ", "", before="1"),
    Case("removal of the last of a flow map", "m: {a: 1, b: 2}\n", Key(("b",), "int"), None, at("m"), ", b: 2", "", before="2"),
    Case("removal of a map's only key", "m:\n  a: 1\nb: 2\n", Key(("a",), "int"), None, at("m"), refusal="only key"),
    Case("removal beside a dash", "- a: 1\n  b: 2\n", Key(("a",), "int"), None, at("0"), refusal="shares its line"),
    Case("removal of the last line without a newline", "a: 1\nb: 2", Key(("b",), "int"), None, FILE, "\nb: 2", "", before="2"),
    Case("an anchored value", "a: &x 1\nb: *x\n", Key(("a",), "int"), "2", FILE, refusal="anchor"),
    Case("an alias as value", "a: &x 1\nb: *x\n", Key(("b",), "int"), "2", FILE, refusal="alias"),
    Case("a merge that may bring it in", "d: &d\n  a: 1\nm:\n  <<: *d\n  b: 2\n", Key(("a",), "int"), "3", at("m"), refusal="merge"),
    Case("a key beside a merge", "d: &d\n  a: 1\nm:\n  <<: *d\n  b: 2\n", Key(("b",), "int"), "3", at("m"), "b: 2", "b: 3", before="2"),
    Case("an address through an alias", "d: &d\n  a: 1\nm: *d\n", Key(("a",), "int"), "3", at("m"), refusal="alias"),
    Case("a tag decides the meaning", "a: !!str 1\n", Key(("a",)), "2", FILE, refusal="tag"),
    Case("several documents", "a: 1\n---\na: 2\n", Key(("a",), "int"), "3", FILE, refusal="several documents"),
    Case("one document with its marks", "---\na: 1\n...\n", Key(("a",), "int"), "3", FILE, "a: 1", "a: 3", before="1"),
    Case("a map as value", "a:\n  b: 1\n", Key(("a",)), "3", FILE, refusal="holds a map"),
    Case("a list as value", "a: [1]\n", Key(("a",)), "3", FILE, refusal="holds a list"),
    Case("a block of text as value", "a: |\n  x\n", Key(("a",)), "3", FILE, refusal="block of text"),
    Case("a value over two lines", "a: x\n  y\n", Key(("a",)), "3", FILE, refusal="several lines"),
    Case("an empty value", "a:\nb: 1\n", Key(("a",)), "3", FILE, refusal="no value there"),
    Case("a list at the top", "- 1\n", Key(("a",)), "3", FILE, refusal="has to lead to a map"),
    Case("broken YAML", "a: [1\nb: 2\n", Key(("a",)), "3", FILE, refusal="no valid YAML"),
    Case("tabs as indent", "a:\n\tb: 1\n", Key(("b",)), "3", at("a"), refusal="no valid YAML"),
    Case("text that would become a number", "dtype: auto\n", DTYPE, "16", FILE, "auto", '"16"', before="auto"),
    Case("text that would become a switch", "dtype: auto\n", DTYPE, "yes", FILE, "auto", '"yes"', before="auto"),
    Case("text that would become nothing", "dtype: auto\n", DTYPE, "null", FILE, "auto", '"null"', before="auto"),
    Case("text that needs quotes", "dtype: auto\n", DTYPE, "a: b", FILE, "auto", '"a: b"', before="auto"),
    Case("text with a comment sign", "dtype: auto\n", DTYPE, "a #b", FILE, "auto", '"a #b"', before="auto"),
    Case("an octal-looking number", "max-num-seqs: 8\n", SEQS, "012", FILE, refusal="differently"),
    Case("a number with underscores", "max-num-seqs: 8\n", SEQS, "1_000", FILE, refusal="differently"),
    Case("a number with an exponent", "max-num-seqs: 8\n", SEQS, "1e3", FILE, refusal="differently"),
    Case("a number becomes a word", "max-model-len: 8\n", LEN, "auto", FILE, ": 8", ": auto", before="8"),
    Case("a word becomes a number under quotes", 'max-model-len: "auto"\n', LEN, "8", FILE, "auto", "8", before="auto"),
    Case("an old switch keeps its words", "enforce-eager: yes\n", EAGER, "false", FILE, "yes", "no", before="true"),
    Case("a capital switch keeps its words", "enforce-eager: True\n", EAGER, "false", FILE, "True", "False", before="true"),
    Case("an inserted text that looks like a number", "a: 1\n", DTYPE, "8", FILE, "a: 1\n", 'a: 1\ndtype: "8"\n'),
    Case("an inserted odd number", "a: 1\n", SEQS, "010", FILE, refusal="differently"),
    Case("an inserted switch", "a: 1\n", EAGER, "true", FILE, "a: 1\n", "a: 1\nenforce-eager: true\n"),
    Case("a byte order mark", "\ufeffa: 1\nb: 2\n", Key(("a",), "int"), "3", FILE, "a: 1", "a: 3", before="1"),
    Case("CRLF is kept", "a: 1\r\nb: 2\r\n", Key(("b",), "int"), "3", FILE, "b: 2", "b: 3", before="2"),
    Case("CRLF on a new line", "a: 1\r\nb: 2\r\n", Key(("c",), "int"), "3", FILE, "b: 2\r\n", "b: 2\r\nc: 3\r\n"),
    Case("aligned values and odd indents", "m:\n     a:      1\n     bcd:    2\n", Key(("bcd",), "int"), "3", at("m"), "    2", "    3", before="2"),
    Case("characters beyond ASCII", "# 模型 🙂\nname: 模型\nb: 1\n", Key(("b",), "int"), "2", FILE, "b: 1", "b: 2", before="1"),
    Case("bytes that are no UTF-8", "a: \udce9\n", Key(("a",)), "b", FILE, refusal="UTF-8"),
    Case("a joined option in a list", COMPOSE, FLAG, "128", COMMAND, "seqs=64", "seqs=128", before="64"),
    Case("an option in two elements", COMPOSE, Key(("--port",), "int"), "8080", COMMAND, '"8000"', '"8080"', before="8000"),
    Case("an option is appended to a list", COMPOSE, Key(("--seed",), "int"), "1", COMMAND, '- "8000"\n', '- "8000"\n      - "--seed"\n      - "1"\n'),
    Case("an option is removed from a list", COMPOSE, Key(("--port",), "int"), None, COMMAND, '      - --port\n      - "8000"\n', "", before="8000"),
    Case("a switch is appended to a list", K8S, Key(("--enforce-eager",), "bool"), "true", ARGS, "seqs=64\n", "seqs=64\n    - --enforce-eager\n"),
    Case("a joined option is appended to a list", K8S, Key(("--seed",), "int"), "1", ARGS, "seqs=64\n", "seqs=64\n    - --seed=1\n"),
    Case("one element with a blank in it", COMPOSE.replace("seqs=64", "seqs 64"), FLAG, "128", COMMAND, refusal="one word with a space"),
    Case("a flow list", FLOW, FLAG, "128", COMMAND, '"64"', '"128"', before="64"),
    Case("an option is appended to a flow list", FLOW, Key(("--port",), "int"), "80", COMMAND, '"64"', '"64", "--port", "80"'),
    Case("an option is removed from a flow list", FLOW, FLAG, None, COMMAND, ', "--max-num-seqs", "64"', "", before="64"),
    Case("an option in a folded text", FOLDED, FLAG, "128", COMMAND, "seqs 64", "seqs 128", before="64"),
    Case("an option is appended to a folded text", FOLDED, Key(("--seed",), "int"), "1", COMMAND, "8000\n", "8000\n      --seed 1\n"),
    Case("an option in a plain text", "services:\n  vllm:\n    command: --model /m --max-num-seqs 64 # why\n", FLAG, "9", COMMAND, "seqs 64", "seqs 9", before="64"),
    Case("an option in a quoted text", "services:\n  vllm:\n    command: '--model /m --max-num-seqs=64'\n", FLAG, "9", COMMAND, "seqs=64", "seqs=9", before="64"),
    Case("escapes that hide where words stand", 'services:\n  vllm:\n    command: "--alias \\"a b\\" --max-num-seqs 64"\n', FLAG, "9", COMMAND, refusal="plainly"),
    Case("a variable of compose", COMPOSE.replace("=64", "=${SEQS:-64}"), FLAG, "9", COMMAND, refusal="variable SEQS"),
    Case("a doubled dollar of compose", COMPOSE.replace("seqs=64", "seqs=a$$b"), Key(("--max-num-seqs",)), "c$d", COMMAND, "a$$b", "c$$d", before="a$b"),
    Case("a script text in a list", 'services:\n  vllm:\n    command: ["bash", "-c", "vllm serve --max-num-seqs 8"]\n', FLAG, "9", COMMAND, refusal="script text"),
    Case("a whole command text as a list's element", K8S.replace("- --model=/m\n    - --max-num-seqs=64", "- vllm serve /m"), FLAG, "9", ARGS, refusal="whole command text"),
    Case("a compose value from a variable", COMPOSE.replace('"1"', '"${N:-1}"'), Key(("OMP_NUM_THREADS",)), "2", at("services.vllm.environment"), refusal="variable N"),
    Case("a compose value with a dollar", COMPOSE.replace('"1"', '"a$$b"'), Key(("OMP_NUM_THREADS",)), "c$d", at("services.vllm.environment"), "a$$b", "c$$d", before="a$b"),
    Case("a number in a list", "services:\n  vllm:\n    command:\n    - --max-num-seqs\n    - 64\n", FLAG, "9", COMMAND, "- 64", "- 9", before="64"),
    Case("an element with an alias", "x: &m /m\nservices:\n  vllm:\n    command:\n    - *m\n    - --max-num-seqs=64\n", FLAG, "9", COMMAND, refusal="alias"),
    Case("a map where a command is expected", "services:\n  vllm:\n    command:\n      a: 1\n", FLAG, "9", COMMAND, refusal="neither a list nor a text"),
    Case("a compose environment map", COMPOSE, Key(("OMP_NUM_THREADS",)), "2", at("services.vllm.environment"), '"1"', '"2"', before="1"),
]  # fmt: skip


@parametrized(CASES)
def test_a_value_is_edited_in_place_or_refused(case: Case) -> None:
    check(case)


def test_a_key_is_inserted_into_an_empty_file() -> None:
    assert formats.edit(b"", FILE, SEQS, "8") == b"max-num-seqs: 8\n"


def test_a_variable_of_compose_is_named() -> None:
    with pytest.raises(ValueElsewhere) as caught:
        formats.read(COMPOSE.replace("=64", "=${SEQS:-64}").encode(), COMMAND, FLAG)

    assert caught.value.variable == "SEQS"


def test_settings_are_scalars_by_dotted_name() -> None:
    assert formats.settings(b"a:\n  b: 1\n  c: [x, y]\nd: {}\n", FILE) == {
        "a.b": ("1",),
        "a.c.#0": ("x",),
        "a.c.#1": ("y",),
        "d.(empty map)": ("",),
    }


def test_settings_of_a_nested_command_are_its_options() -> None:
    assert formats.settings(FLOW.encode(), COMMAND) == {"--model": ("/m",), "--max-num-seqs": ("64",)}


@pytest.mark.parametrize("at", [None, "services.vllm.image"])
def test_flags_need_a_list_or_text(at: str | None) -> None:
    carrier = Carrier(format="yaml", file="x", at=at, then="flags")

    with pytest.raises(EditRefused):
        formats.edit(b"services:\n  vllm:\n    image: [[1]]\n", carrier, FLAG, "1")
