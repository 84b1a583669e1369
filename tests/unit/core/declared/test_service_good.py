from __future__ import annotations

import json

import pytest
from tests.unit.core.declared.grammar_samples import COMMAND_SERVICE, SERVICE, changed, read_service

from changectl.core.declared import service
from changectl.core.declared.argv import split_command
from changectl.core.declared.instances import GroupInstances
from changectl.core.settings import Carrier


def test_a_full_service_reads_as_it_is_written() -> None:
    read = read_service(SERVICE)

    assert (read.service, read.class_, read.engine.name) == ("chat", "interactive", "vllm")
    assert isinstance(read.instances, GroupInstances)
    assert read.instances.group == "gpu"
    assert read.manager.as_host_argument() == {"systemd": {"unit": "vllm.service"}}
    assert read.carriers == (
        Carrier("flags", unit="vllm.service"),
        Carrier("yaml", file="/etc/vllm/chat.yaml"),
        Carrier("yaml", file="/opt/chat/docker-compose.yml", at="services.vllm.command", then="flags"),
        Carrier("pattern", file="/opt/chat/start.sh", match=r"--max-num-seqs (?P<value>\d+)"),
    )
    assert [str(guard) for guard in read.slo] == [
        "slo ttft_user_p95 <= 800ms",
        "slo tpot_p95 <= 45ms",
        "slo failures <= 1%",
    ]
    assert {name: str(load) for name, load in read.conditions.levels.items()} == {
        "low": "1 stream",
        "normal": "8 streams",
    }
    assert (read.limits.max_out, read.limits.load_on_live) == (2700, False)
    assert read.traffic == "none"


def test_a_command_service_has_words_and_absolute_files() -> None:
    read = read_service(COMMAND_SERVICE)

    assert read.manager.as_host_argument() == {
        "command": {
            "start": ["./run-chat", "start", "--port", "{{ port + 1 }}", "two words"],
            "stop": ["./run-chat", "stop"],
            "cwd": "/srv/chat",
            "pid": {"file": "/run/chat.pid"},
        }
    }
    assert read.carriers == (Carrier("env", file="/srv/chat/start.env"),)
    assert read.model_path == "/srv/chat/model.gguf"


def test_a_generic_engine_is_handed_on_as_it_is_declared() -> None:
    spec = read_service(COMMAND_SERVICE).engine.spec

    assert isinstance(spec, dict)
    assert spec["generic"]["ready"] == "GET /healthz 200"
    assert spec["generic"]["answer"] == {"protocol": "openai_completions"}
    assert spec["generic"]["settings"]["concurrency_limit"]["flag"] == "--workers"


def test_optional_extras_are_read() -> None:
    read = read_service(
        SERVICE + "ready: {deadline: 10m}\ndrain: 30s\nlog_file: /var/log/chat.log\nstate_dir: /srv/state\n"
    )

    assert read.ready is not None
    assert (read.ready.deadline, read.drain) == (600, 30)
    assert (read.log_file, read.state_dir) == ("/var/log/chat.log", "/srv/state")


def test_a_port_names_the_process() -> None:
    read = read_service(changed(COMMAND_SERVICE, "{file: /run/chat.pid}", "{port: 8080}"))

    assert read.manager.as_host_argument()["command"]["pid"] == {"port": 8080}


def test_a_token_is_not_shown() -> None:
    assert "vault_chat_key" not in repr(read_service(SERVICE))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("./run start", ["./run", "start"]),
        ("run 'a b' \"c d\"", ["run", "a b", "c d"]),
        ("run --port={{ a + ' ' + b }} x", ["run", "--port={{ a + ' ' + b }}", "x"]),
        (r"run a\ b", ["run", "a b"]),
    ],
)
def test_commands_are_split_like_a_shell_but_templates_stay_whole(text: str, words: list[str]) -> None:
    assert split_command(text) == words


def test_the_schema_describes_every_key() -> None:
    schema = service.json_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(json.dumps(schema)) == schema
    assert schema["additionalProperties"] is False
    assert all("description" in value for value in schema["properties"].values())


def test_a_level_may_be_a_rate() -> None:
    text = changed(SERVICE, "normal: 8 streams", "normal: 8 streams, peak: 6 rps, night: 0.5 req/s")

    levels = read_service(text).conditions.levels

    assert {name: load.open for name, load in levels.items()} == {
        "low": False, "normal": False, "peak": True, "night": True,
    }  # fmt: skip
    assert str(levels["night"]) == "0.5 rps"
