"""Options on the command line of a unit, and in files that hold an argument list."""

# ruff: noqa: E501  (one case a line: the list is a table)
from __future__ import annotations

import pytest
from tests.unit.formats.format_cases import Case, check, parametrized

from changectl import formats
from changectl.core.errors import EditRefused
from changectl.core.settings import Carrier, Key
from changectl.formats import ValueElsewhere

UNIT = Carrier(format="flags", unit="chat.service")
FILE = Carrier(format="flags", file="/etc/chat/args")
SEQS = Key(("--max-num-seqs",), "int")
PARALLEL = Key(("--parallel", "-np"), "int", underscores=False)
PREFIX = Key(("--enable-prefix-caching",), "bool", negation="--no-enable-prefix-caching")
EAGER = Key(("--enforce-eager",), "bool")
LORA = Key(("--lora",), repeatable=True)
JSON = Key(("--override-generation-config",), "json")
TEXT = Key(("--alias",))

VLLM = """[Unit]
Description=Chat model
After=network-online.target

[Service]
User=vllm
ExecStart=/opt/vllm/bin/vllm serve /srv/models/chat \\
  --host 127.0.0.1 \\
  --max-num-seqs 64 \\
  # raised after OPS-77
  --gpu-memory-utilization 0.9 \\
  --port 8000
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
LLAMA = "[Service]\nExecStart=/usr/bin/llama-server -m /m/a.gguf -c 8192 -np 4 --threads 8\n"


def unit(command: str) -> str:
    return f"[Service]\nExecStart={command}\nRestart=always\n"


CASES = [
    Case("a value on its own continuation line", VLLM, SEQS, "128", UNIT, "seqs 64", "seqs 128", before="64"),
    Case("an option is inserted as one more continuation line", VLLM, Key(("--max-model-len",), "int"), "4096", UNIT, "--port 8000\n", "--port 8000 \\\n  --max-model-len 4096\n"),
    Case("the last continuation line is removed with the backslash before it", VLLM, Key(("--port",), "int"), None, UNIT, " \\\n  --port 8000", "", before="8000"),
    Case("an option below a comment is removed and the comment stays", VLLM, Key(("--gpu-memory-utilization",), "float"), None, UNIT, "--gpu-memory-utilization 0.9 \\\n  ", "", before="0.9"),
    Case("a last option below a comment is not removed", unit("/bin/srv --a 1 \\\n # why\n --max-num-seqs 8"), SEQS, None, UNIT, refusal="comment stands right before"),
    Case("a short spelling", LLAMA, PARALLEL, "8", UNIT, "-np 4", "-np 8", before="4"),
    Case("an option is appended to a single line", LLAMA, Key(("--timeout",), "int"), "60", UNIT, "--threads 8", "--threads 8 --timeout 60"),
    Case("an option in the middle is removed", LLAMA, PARALLEL, None, UNIT, " -np 4", "", before="4"),
    Case("an equals sign is kept", unit("/bin/s --max-num-seqs=8 x"), SEQS, "9", UNIT, "seqs=8", "seqs=9", before="8"),
    Case("underscores are the same name", unit("/b/s --max_num_seqs 8"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("underscores are another name where the engine says so", unit("/b/s --ctx_size 8"), Key(("--ctx-size",), "int", underscores=False), "9", UNIT, "--ctx_size 8", "--ctx_size 8 --ctx-size 9"),
    Case("the dominant form is joined", unit("/b/s --a=1 --b=2 --c 3"), SEQS, "9", UNIT, "--c 3", "--c 3 --max-num-seqs=9"),
    Case("the dominant form is apart", unit("/b/s --a=1 --b 2 --c 3"), SEQS, "9", UNIT, "--c 3", "--c 3 --max-num-seqs 9"),
    Case("a negative number is a value", unit("/b/s --max-num-seqs -1"), SEQS, "-2", UNIT, "seqs -1", "seqs -2", before="-1"),
    Case("the last of several counts", unit("/b/s --max-num-seqs 1 --max-num-seqs 2"), SEQS, "3", UNIT, "seqs 2", "seqs 3", before="2"),
    Case("several are not removed", unit("/b/s --max-num-seqs 1 \\\n --max-num-seqs 2"), SEQS, None, UNIT, refusal=r"lines 2, 3"),
    Case("every occurrence of a repeatable one counts", unit("/b/s --lora a --lora b"), LORA, "c", UNIT, refusal="every one counts"),
    Case("a repeatable one that stands once", unit("/b/s --lora a"), LORA, "c", UNIT, "lora a", "lora c", before="a"),
    Case("before a lone double dash", unit("/b/s --a 1 -- file"), SEQS, "9", UNIT, "--a 1", "--a 1 --max-num-seqs 9"),
    Case("behind a lone double dash it is not certain", unit("/b/s --a 1 -- --max-num-seqs 7"), SEQS, "9", UNIT, refusal="behind a lone --"),
    Case("a switch is turned over by its negation", unit("/b/s --enable-prefix-caching"), PREFIX, "false", UNIT, "--enable", "--no-enable", before="true"),
    Case("a negation is turned back", unit("/b/s --no-enable-prefix-caching --a 1"), PREFIX, "true", UNIT, "--no-enable", "--enable", before="false"),
    Case("a negation with underscores", unit("/b/s --no_enable_prefix_caching"), PREFIX, "true", UNIT, "--no_enable", "--enable", before="false"),
    Case("a switch without negation is removed", unit("/b/s --enforce-eager --a 1"), EAGER, "false", UNIT, " --enforce-eager", "", before="true"),
    Case("a switch is inserted", unit("/b/s --a 1"), EAGER, "true", UNIT, "--a 1", "--a 1 --enforce-eager"),
    Case("a negation is inserted", unit("/b/s --a 1"), PREFIX, "false", UNIT, "--a 1", "--a 1 --no-enable-prefix-caching"),
    Case("a switch before a positional word is removed alone", unit("/b/s --enforce-eager model"), EAGER, None, UNIT, " --enforce-eager", "", before="true"),
    Case("a switch with a written value", unit("/b/s --enforce-eager=true"), EAGER, "false", UNIT, "=true", "=false", before="true"),
    Case("a switch with its value apart", unit("/b/s --enforce-eager true x"), EAGER, "false", UNIT, "eager true", "eager false", before="true"),
    Case("a switch takes only true and false", unit("/b/s --enforce-eager"), EAGER, "3", UNIT, refusal="true or false"),
    Case("double quotes are kept", unit('/b/s --alias "my chat"'), TEXT, "new one", UNIT, "my chat", "new one", before="my chat"),
    Case("quotes around the whole word are kept", unit('/b/s "--alias=my chat" x'), TEXT, "n", UNIT, "my chat", "n", before="my chat"),
    Case("quotes appear where a blank needs them", unit("/b/s --alias chat"), TEXT, "my chat", UNIT, "--alias chat", '--alias "my chat"', before="chat"),
    Case("quotes appear around a joined word", unit("/b/s --alias=chat"), TEXT, "my chat", UNIT, "--alias=chat", '"--alias=my chat"', before="chat"),
    Case("JSON in single quotes", unit("/b/s --override-generation-config '{\"a\":1}'"), JSON, '{"a": 2}', UNIT, '{"a":1}', '{"a": 2}', before='{"a":1}'),
    Case("JSON in escaped double quotes", unit('/b/s --override-generation-config "{\\"a\\":1}"'), JSON, '{"a":2}', UNIT, "1}", "2}", before='{"a":1}'),
    Case("bare JSON loses its quotes as in systemd", unit('/b/s --override-generation-config {"a":1}'), JSON, "{}", UNIT, '{"a":1}', "{}", before="{a:1}"),
    Case("a C escape is decoded", unit("/b/s --alias my\\x20chat"), TEXT, "chat", UNIT, "my\\x20chat", "chat", before="my chat"),
    Case("an unknown escape", unit("/b/s --alias a\\qb"), TEXT, "c", UNIT, refusal="escape"),
    Case("a percent sign is doubled", unit("/b/s --alias chat"), TEXT, "50%", UNIT, "alias chat", "alias 50%%", before="chat"),
    Case("a doubled percent sign is one", unit("/b/s --alias 50%%"), TEXT, "60%", UNIT, "50%%", "60%%", before="50%"),
    Case("a dollar is doubled", unit("/b/s --alias chat"), TEXT, "a$b", UNIT, "alias chat", "alias a$$b", before="chat"),
    Case("a dollar after a colon prefix is itself", unit(":/b/s --alias chat"), TEXT, "a$b", UNIT, "alias chat", "alias a$b", before="chat"),
    Case("a specifier as value", unit("/b/s --alias %i"), TEXT, "c", UNIT, refusal="specifier %i"),
    Case("a specifier elsewhere does not matter", unit("/b/s --home %h --alias a"), TEXT, "c", UNIT, "alias a", "alias c", before="a"),
    Case("a variable as value", unit("/b/s --max-num-seqs ${SEQS}"), SEQS, "9", UNIT, refusal="variable SEQS"),
    Case("a variable as joined value", unit("/b/s --max-num-seqs=${SEQS}"), SEQS, "9", UNIT, refusal="variable SEQS"),
    Case("a variable that may hold it", unit("/b/s $CHAT_ARGS"), SEQS, "9", UNIT, refusal="at: CHAT_ARGS"),
    Case("a variable beside a written one", unit("/b/s --max-num-seqs 8 $MORE"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("a doubled dollar is no variable", unit("/b/s $$ARGS"), SEQS, "9", UNIT, "$$ARGS", "$$ARGS --max-num-seqs 9"),
    Case("prefixes are kept", unit("-@/b/s argv0 --max-num-seqs 8"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("two commands in one line", unit("/b/s --max-num-seqs 8 ; /b/t"), SEQS, "9", UNIT, refusal="lone ;"),
    Case("an escaped semicolon is a word", unit("/b/s \\; --max-num-seqs 8"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("two commands in two lines", unit("/b/s --max-num-seqs 8\nExecStart=/b/t"), SEQS, "9", UNIT, refusal="lines 2, 3"),
    Case("a reset before the command", unit("\nExecStart=/b/s --max-num-seqs 8"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("no command in this drop-in", "[Service]\nEnvironment=A=1\n", SEQS, "9", UNIT, refusal="no ExecStart"),
    Case("a command outside of a section", "ExecStart=/b/s --max-num-seqs 8\n", SEQS, "9", UNIT, refusal="no ExecStart"),
    Case("a wrapper script that does not show it", unit("/opt/run.sh"), SEQS, "9", UNIT, refusal="wrapper script"),
    Case("a wrapper script that is given it", unit("/opt/run.sh --max-num-seqs 8"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("a script text", unit('/bin/bash -c "exec vllm serve --max-num-seqs 8"'), SEQS, "9", UNIT, refusal="-c"),
    Case("a login shell's script text", unit('/bin/sh -lc "srv --max-num-seqs 8"'), SEQS, "9", UNIT, refusal="-c"),
    Case("a container that does not show it", unit("/usr/bin/docker run --rm -p 8000:8000 img"), SEQS, "9", UNIT, refusal="entry point"),
    Case("a container's own option is not the engine's", unit("/usr/bin/docker run -c 512 img -c 4096"), Key(("-c", "--ctx-size"), "int"), "9", UNIT, "4096", "9", before="4096"),
    Case("a launcher's option is not the engine's", unit("/usr/bin/taskset -c 0-3 /b/llama-server -c 4096"), Key(("-c", "--ctx-size"), "int"), "9", UNIT, "4096", "9", before="4096"),
    Case("behind nice and env", unit("/usr/bin/nice -n 5 /usr/bin/env A=1 /b/s -n 7"), Key(("-n",), "int"), "8", UNIT, "-n 7", "-n 8", before="7"),
    Case("behind an init program", unit("/usr/bin/tini -- /b/s --max-num-seqs 7"), SEQS, "8", UNIT, "seqs 7", "seqs 8", before="7"),
    Case("behind an unknown launcher", unit("/usr/bin/hold -- /b/s"), SEQS, "8", UNIT, refusal="another program"),
    Case("a container's option with its value attached", unit("/usr/bin/podman run -it -p80:80 img --max-num-seqs 7"), SEQS, "8", UNIT, "seqs 7", "seqs 8", before="7"),
    Case("a Python module", unit("/v/bin/python3 -u -m sglang.launch_server --max-num-seqs 8"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("an abbreviation", unit("/b/s --max-num-s 8"), SEQS, "9", UNIT, refusal="abbreviation"),
    Case("a shorter option of its own", unit("/b/s --threads 8"), Key(("--threads-batch",), "int"), "9", UNIT, "--threads 8", "--threads 8 --threads-batch 9"),
    Case("a short option with its value attached", unit("/b/s -c4096"), Key(("-c",), "int"), "9", UNIT, refusal="two words"),
    Case("a longer short option is another one", unit("/b/s -cb"), Key(("-c",), "int"), "9", UNIT, "-cb", "-cb -c 9"),
    Case("a dotted option sets a part", unit("/b/s --override-generation-config.top_k 5"), JSON, "{}", UNIT, refusal="sets a part"),
    Case("an option without its value", unit("/b/s --max-num-seqs --a 1"), SEQS, "9", UNIT, refusal="without a value"),
    Case("an option without its value at the end", unit("/b/s --max-num-seqs"), SEQS, "9", UNIT, refusal="without a value"),
    Case("a value that looks like an option", unit("/b/s --alias a"), TEXT, "--b", UNIT, refusal="taken for an option"),
    Case("an open quote", unit('/b/s --alias "a'), TEXT, "b", UNIT, refusal="never closed"),
    Case("a line break in the value", unit("/b/s --alias a"), TEXT, "a\nb", UNIT, refusal="line break"),
    Case("CRLF is kept", "[Service]\r\nExecStart=/b/s \\\r\n  --max-num-seqs 8 \\\r\n  --b 2\r\n", SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("an insertion keeps CRLF", "[Service]\r\nExecStart=/b/s \\\r\n  --a 1\r\n", SEQS, "9", UNIT, "--a 1", "--a 1 \\\r\n  --max-num-seqs 9"),
    Case("a byte order mark is kept", "\ufeff[Service]\nExecStart=/b/s --max-num-seqs 8\n", SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("no final newline", "[Service]\nExecStart=/b/s --a 1", SEQS, "9", UNIT, "--a 1", "--a 1 --max-num-seqs 9"),
    Case("bytes that are no UTF-8", "# caf\udce9\n[Service]\nExecStart=/b/s --max-num-seqs 8\n", SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("a last continuation onto a blank line", unit("/b/s --max-num-seqs 8 \\\n"), SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("an insertion before a last continuation", unit("/b/s \\\n  --a 1 \\\n"), SEQS, "9", UNIT, "--a 1", "--a 1 \\\n  --max-num-seqs 9"),
    Case("trailing blanks stay", "[Service]\nExecStart=/b/s --max-num-seqs 8  \n", SEQS, "9", UNIT, "seqs 8", "seqs 9", before="8"),
    Case("a file of arguments, one per line", "# tuning\n--model /m\n--max-num-seqs 8\n", SEQS, "9", FILE, "seqs 8", "seqs 9", before="8"),
    Case("insertion into a file of arguments", "--model /m\n--port 80\n", SEQS, "9", FILE, "--port 80", "--port 80\n--max-num-seqs 9"),
    Case("removal from a file of arguments", "--model /m\n--max-num-seqs 8\n--port 80\n", SEQS, None, FILE, "\n--max-num-seqs 8", "", before="8"),
    Case("an empty file of arguments", "\n", SEQS, "9", FILE, "\n", "--max-num-seqs 9\n"),
    Case("a file with a whole command", "vllm serve /m --max-num-seqs=8\n", SEQS, "9", FILE, "=8", "=9", before="8"),
    Case("a script is no list of arguments", "#!/bin/sh\nsrv --max-num-seqs 8\n", SEQS, "9", FILE, refusal="script"),
    Case("shell syntax in a file of arguments", "srv --max-num-seqs 8 | tee log\n", SEQS, "9", FILE, refusal="shell syntax"),
    Case("a shell variable in a file of arguments", "--max-num-seqs $N\n", SEQS, "9", FILE, refusal="variable N"),
    Case("a dollar goes into single quotes in a file", "--alias a\n", TEXT, "x$y", FILE, "alias a", "alias 'x$y'", before="a"),
]  # fmt: skip


@parametrized(CASES)
def test_an_option_is_edited_in_place_or_refused(case: Case) -> None:
    check(case)


def test_a_value_in_a_variable_names_the_variable() -> None:
    with pytest.raises(ValueElsewhere) as caught:
        formats.read(unit("/b/s --max-num-seqs ${SEQS:-8}").encode(), UNIT, SEQS)

    assert caught.value.variable == "SEQS"


@pytest.mark.parametrize(
    ("command", "variable"),
    [("/b/s $MODEL $CHAT_ARGS $LAST", "CHAT_ARGS"), ("/b/s $MODEL $LAST", "LAST"), ("/b/s $MODEL --port 80", "MODEL")],
)
def test_of_several_variables_the_likely_one_is_named(command: str, variable: str) -> None:
    with pytest.raises(ValueElsewhere) as caught:
        formats.read(unit(command).encode(), UNIT, SEQS)

    assert caught.value.variable == variable


def test_all_occurrences_are_read_with_line_and_spelling() -> None:
    data = unit("/b/s --max-num-seqs 1 \\\n  --max_num_seqs=2").encode()

    reading = formats.read(data, UNIT, SEQS)

    assert [(one.value, one.line, one.spelling) for one in reading.occurrences] == [
        ("1", 2, "--max-num-seqs"),
        ("2", 3, "--max_num_seqs"),
    ]


def test_settings_normalise_names_and_number_positional_words() -> None:
    data = unit("/b/vllm serve /m --max_num_seqs 8 --enforce-eager --a=1 --a=2").encode()

    assert formats.settings(data, UNIT) == {
        "program#0": ("/b/vllm",),
        "#0": ("serve",),
        "#1": ("/m",),
        "--max-num-seqs": ("8",),
        "--enforce-eager": ("true",),
        "--a": ("1", "2"),
    }


def test_a_switch_that_is_off_by_absence_is_left_alone() -> None:
    data = unit("/b/s --a 1").encode()

    assert formats.edit(data, UNIT, EAGER, "false") == data


@pytest.mark.parametrize("data", [b"\xff\xfe[\0S\0", b"[Service]\nExecStart=/b/s\0 --max-num-seqs 8\n"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(EditRefused, match=r"UTF-16|NUL"):
        formats.read(data, UNIT, SEQS)
