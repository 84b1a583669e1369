"""Every mistake in a service file has its own message, with its place and what to write instead."""

from __future__ import annotations

import pytest
from tests.unit.core.declared.grammar_samples import (
    COMMAND_SERVICE,
    SERVICE,
    changed,
    only,
    read_service,
    service_problems,
)


def mistake(text: str, old: str, new: str) -> tuple[str, str, str, str]:
    return only(service_problems(changed(text, old, new)))


def test_an_unknown_engine_names_the_nearest() -> None:
    assert mistake(SERVICE, "engine: vllm", "engine: vlm") == (
        "chat.yml:5:9",
        "engine",
        "unknown engine `vlm`",
        "did you mean `vllm`? known: generic, llamacpp, vllm",
    )


def test_a_generic_engine_without_declaration_is_refused() -> None:
    assert mistake(SERVICE, "engine: vllm", "engine: generic")[2] == "a generic engine needs its declaration"


def test_an_unknown_protocol_names_the_known_ones() -> None:
    place, path, message, hint = mistake(COMMAND_SERVICE, "protocol: openai_completions", "protocol: openai_completion")

    assert (place, path) == ("chat.yml:9:24", "engine/generic/answer/protocol")
    assert message == "unknown protocol `openai_completion`"
    assert hint.startswith("did you mean `openai_completions`?")


KSERVE = """answer:
      protocol: kserve_v2
      inputs: [{name: x, shape: [1, 2], datatype: FP32, data: ["0.5", 1e3]}]"""
COMPLETIONS = "answer: {protocol: openai_completions}"


def kserve(old: str = "", new: str = "") -> str:
    named = changed(COMMAND_SERVICE, "model: {path: model.gguf}", "model: {path: model.gguf, name: iris}")
    text = changed(named, COMPLETIONS, KSERVE)
    return changed(text, old, new) if old else text


def test_a_server_of_tensors_says_what_one_request_of_it_looks_like() -> None:
    generic = read_service(kserve()).engine.generic

    assert generic is not None
    assert generic.answer.inputs == ({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1000.0]},)


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("datatype: FP32", "datatype: float", "engine/generic/answer/inputs", "`datatype` has to be one of BOOL"),
        ("[1, 2]", "[1, 3]", "engine/generic/answer/inputs", "`data` has 2 values, and the shape [1, 3] declares 3"),
        ('"0.5"', "half", "engine/generic/answer/inputs", "`data` holds a value that is no FP32"),
        (", name: iris", "", "model", "`kserve_v2` has the model's name in its path, and none is said here"),
        (KSERVE, "answer: {protocol: kserve_v2}", "engine/generic/answer", "nobody knows which tensors"),
        ("kserve_v2", "openai_chat", "engine/generic/answer/inputs", "`openai_chat` takes no tensors"),
    ],
)
def test_a_mistake_about_tensors_is_named_where_it_stands(old: str, new: str, path: str, message: str) -> None:
    _, found, said, hint = only(service_problems(kserve(old, new)))

    assert found == path
    assert said.startswith(message)
    assert hint


def test_a_unit_without_suffix_is_completed() -> None:
    assert mistake(SERVICE, "systemd: {unit: vllm.service}", "systemd: {unit: vllm}") == (
        "chat.yml:6:27",
        "manager/systemd/unit",
        "`vllm` is not the name of a systemd unit",
        "write `vllm.service`",
    )


@pytest.mark.parametrize("unit", ["vllm.timer", "vllm@.service", "a b.service", "../x.service", "vllm.service;reboot"])
def test_only_service_units_that_can_run_are_taken(unit: str) -> None:
    place, path, _, hint = mistake(SERVICE, "systemd: {unit: vllm.service}", f"systemd: {{unit: {unit}}}")

    assert (place, path) == ("chat.yml:6:27", "manager/systemd/unit")
    assert ".service`" in hint


def test_two_managers_are_both_named() -> None:
    place, path, message, _ = mistake(
        SERVICE, "{systemd: {unit: vllm.service}}", "{systemd: {unit: vllm.service}, command: {}}"
    )

    assert (place, path) == ("chat.yml:6:10", "manager")
    assert message == "exactly one manager belongs here, found `systemd`, `command`"


def test_managers_of_later_versions_are_not_supported_yet() -> None:
    message = mistake(SERVICE, "{systemd: {unit: vllm.service}}", "{compose: {file: a.yml}}")[2]

    assert message == "manager `compose` is not supported in this version (supported: systemd, command)"


def test_an_unknown_manager_names_the_nearest() -> None:
    place, path, message, hint = mistake(SERVICE, "manager: {systemd:", "manager: {systmd:")

    assert (place, path, message) == ("chat.yml:6:11", "manager/systmd", "unknown manager `systmd`")
    assert hint.startswith("did you mean `systemd`?")


def test_a_carrier_with_file_and_unit_is_refused() -> None:
    place, path, message, hint = mistake(
        SERVICE, "{file: /etc/vllm/chat.yaml, format", "{file: /etc/vllm/chat.yaml, unit: a.service, format"
    )

    assert (place, path, message) == ("chat.yml:9:5", "config/2", "values live in a file or in a unit")
    assert hint == "write exactly one of `file:` and `unit:`"


def test_an_unknown_format_names_the_nearest() -> None:
    assert mistake(SERVICE, "chat.yaml, format: yaml", "chat.yaml, format: yml") == (
        "chat.yml:9:41",
        "config/2/format",
        "unknown format `yml`",
        "did you mean `yaml`? known: env, flags, json, pattern, yaml",
    )


def test_formats_of_later_versions_are_not_supported_yet() -> None:
    message = mistake(SERVICE, "chat.yaml, format: yaml", "chat.yaml, format: toml")[2]

    assert message.startswith("format `toml` is not supported in this version")


def test_a_unit_holds_flags_or_environment() -> None:
    message = mistake(SERVICE, "{unit: vllm.service, format: flags}", "{unit: vllm.service, format: yaml}")[2]

    assert message == "a unit does not hold `yaml`"


def test_an_environment_file_nests_only_options() -> None:
    place, path, message, hint = mistake(
        COMMAND_SERVICE, "{file: start.env, format: env}", "{file: start.env, format: env, at: OPTS}"
    )

    assert (place, path) == ("chat.yml:19:36", "config/1/at")
    assert message == "`at` alone has no meaning in `env`"
    assert "then: flags" in hint


@pytest.mark.parametrize("match", ["(", "workers", r"(\d+)", r"(?P<value>a)(?P<other>b)", r"(?P<number>\d+)"])
def test_a_pattern_needs_one_group_named_value(match: str) -> None:
    place, path, _, hint = mistake(SERVICE, r"'--max-num-seqs (?P<value>\d+)'", f"'{match}'")

    assert (place, path) == ("chat.yml:11:56", "config/4/match")
    assert "(?P<value>" in hint


def test_a_pattern_without_match_is_refused() -> None:
    message = mistake(SERVICE, r", match: '--max-num-seqs (?P<value>\d+)'", "")[2]

    assert message == "`match` is missing"


def test_a_relative_file_needs_a_working_folder() -> None:
    place, path, message, hint = mistake(SERVICE, "file: /etc/vllm/chat.yaml", "file: chat.yaml")

    assert (place, path) == ("chat.yml:9:12", "config/2/file")
    assert message == "`chat.yaml` is relative to an unknown folder"
    assert "absolute path" in hint


def test_a_path_cannot_climb() -> None:
    assert mistake(SERVICE, "/etc/vllm/chat.yaml", "/etc/vllm/../shadow")[1] == "config/2/file"


def test_a_command_is_not_a_shell_line() -> None:
    place, path, message, _ = mistake(COMMAND_SERVICE, "stop: ./run-chat stop", "stop: ./run-chat stop && rm -f x")

    assert (place, path) == ("chat.yml:15:11", "manager/command/stop")
    assert message == "`&&` is a shell's word, and no shell runs this command"


def test_a_command_does_not_begin_with_an_assignment() -> None:
    hint = mistake(COMMAND_SERVICE, "stop: ./run-chat stop", "stop: A=1 ./run-chat stop")[3]

    assert hint == "write `env A=1 ...`"


def test_an_open_quote_in_a_command_is_named() -> None:
    assert mistake(COMMAND_SERVICE, "stop: ./run-chat stop", "stop: ./run-chat 'stop")[2] == "a quote is not closed"


def test_the_process_is_found_in_one_way() -> None:
    message = mistake(COMMAND_SERVICE, "{file: /run/chat.pid}", "{file: /run/chat.pid, port: 80}")[2]

    assert message == "the process is found in exactly one way"


@pytest.mark.parametrize("port", ["0", "70000", "http", "-1", "99999999999"])
def test_a_port_is_a_number(port: str) -> None:
    assert mistake(COMMAND_SERVICE, "{file: /run/chat.pid}", f"{{port: {port}}}")[1] == "manager/command/pid/port"


@pytest.mark.parametrize("endpoint", ["10.0.0.1:8000", "ftp://h:1", "http://", "http://h:99999", "http://h:1/?a=b"])
def test_an_endpoint_is_a_base_url(endpoint: str) -> None:
    place, path, _, _ = mistake(COMMAND_SERVICE, "http://127.0.0.1:8080", endpoint)

    assert (place, path) == ("chat.yml:5:27", "instances/1/endpoint")


def test_a_password_does_not_stand_in_an_endpoint() -> None:
    message = mistake(COMMAND_SERVICE, "http://127.0.0.1:8080", "http://u:secret@h:1")[2]

    assert message == "an address must not hold a user or password"


def test_an_instance_without_host_is_refused() -> None:
    text = changed(COMMAND_SERVICE, "host: box, ", "hst: box, ")

    assert [(problem.line, problem.path, problem.message) for problem in service_problems(text)] == [
        (5, "instances/1/host", "`host` is missing"),
        (5, "instances/1/hst", "unknown key `hst`"),
    ]


def test_two_instances_have_two_names_and_two_endpoints() -> None:
    line = '  - {host: box, endpoint: "http://127.0.0.1:8080"}\n'

    unnamed = service_problems(changed(COMMAND_SERVICE, line, line * 2))
    named = service_problems(changed(COMMAND_SERVICE, line, line.replace("{", "{name: a, ") * 2))

    assert [problem.path for problem in unnamed] == ["instances/2/endpoint"]  # they are called HOST:PORT
    assert [problem.path for problem in named] == ["instances/2", "instances/2/endpoint"]


def test_a_token_in_clear_text_is_refused_and_not_repeated() -> None:
    problems = service_problems(changed(SERVICE, '"{{ vault_chat_key }}"', "sk-very-secret"))

    assert only(problems) == (
        "chat.yml:13:16",
        "auth/bearer",
        "a token stands here in clear text",
        'put it into a vault variable: `bearer: "{{ vault_chat_key }}"`',
    )
    assert "sk-very-secret" not in str(problems)


def test_haproxy_is_not_supported_yet() -> None:
    problems = service_problems(SERVICE + "traffic: {haproxy: {host: lb1}}\n")

    assert only(problems)[1:3] == (
        "traffic",
        "traffic control by `haproxy` is not supported in this version (supported: none, nginx, command)",
    )


@pytest.mark.parametrize(
    ("traffic", "place", "said"),
    [
        ("{nginx: {host: lb1, file: a.conf, upstream: chat, member: gpu1}}", "traffic/nginx/file", "absolute"),
        ("{nginx: {host: lb1, file: /a.conf, upstream: chat}}", "traffic/nginx/member", "missing"),
        ("{command: {out: /opt/lb out}}", "traffic/command/in", "missing"),
        ('{command: {out: "/opt/lb out | cat", in: /opt/lb in}}', "traffic/command/out", "shell"),
        ("nginx", "traffic", "needs its settings"),
        ("{command: {}, nginx: {}}", "traffic", "exactly one"),
        ("{f5: {}}", "traffic/f5", "unknown"),
    ],
)
def test_traffic_control_is_said_whole_and_in_one_way(traffic: str, place: str, said: str) -> None:
    found = [problem for problem in service_problems(SERVICE + f"traffic: {traffic}\n") if problem.path == place]

    assert found
    assert said in str(found[0])


@pytest.mark.parametrize("value", ["[a, b]", "{host: a}", '""', '"{{ near }}"'])
def test_a_caller_is_the_name_of_one_host(value: str) -> None:
    problem = only(service_problems(SERVICE + f"caller: {value}\n"))

    assert problem[1] == "caller"
    assert problem[3] == "write the name of one host of the inventory: `caller: gateway-1`"


@pytest.mark.parametrize("value", ["1s", "25h", "1 hour"])
def test_a_lease_is_a_duration_of_two_seconds_to_a_day(value: str) -> None:
    assert only(service_problems(SERVICE + f"lease: {value}\n"))[1] == "lease"


def test_a_rate_that_is_none_is_refused() -> None:
    place, path, message, _ = mistake(SERVICE, "normal: 8 streams", "normal: 6 per second")

    assert (place, path) == ("chat.yml:15:78", "conditions/levels/normal")
    assert message == '"6 per second" is not a load level'


def test_an_slo_on_an_unknown_level_is_refused() -> None:
    place, path, message, hint = mistake(SERVICE, "tpot_p95: <= 45ms", "tpot_p95 at peak: <= 45ms")

    assert (place, path) == ("chat.yml:14:32", "slo/tpot_p95 at peak")
    assert (message, hint) == ('there is no level "peak"', "known: low, normal")


def test_an_slo_that_forbids_the_good_is_refused() -> None:
    assert "would forbid a good" in mistake(SERVICE, "tpot_p95: <= 45ms", "tpot_p95: '>= 45ms'")[2]


def test_an_unknown_class_lists_both() -> None:
    place, path, message, hint = mistake(SERVICE, "class: interactive", "class: realtime")

    assert (place, path, message) == ("chat.yml:3:8", "class", "not a known word for `class`")
    assert hint == "one of: 'interactive' or 'offline'"


def test_a_template_that_cannot_be_read_is_refused_before_any_host_is_known() -> None:
    place, path, message, _ = mistake(SERVICE, "{{ ansible_host }}", "{{ ansible_host }")

    assert (place, path) == ("chat.yml:4:42", "instances/each/endpoint")
    assert message.startswith("not a readable template")


def test_a_boolean_is_true_or_false() -> None:
    assert mistake(SERVICE, "load_on_live: false", "load_on_live: maybe")[3] == (
        "write `load_on_live: true` or `load_on_live: false`"
    )
