"""Templates are filled per host; names are compared with the inventory; nothing secret is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.unit.core.declared.grammar_samples import COMMAND_SERVICE, SERVICE, changed, read_service

from changectl.core.declared.placing import check_names, place, place_caller
from changectl.core.declared.render import render
from changectl.core.errors import InputError
from changectl.core.ports import HostAddress

GOOD = {"ansible_host": "10.0.0.5", "vault_chat_key": "sk-1234"}


def inventory(**hosts: dict[str, object]) -> Callable[[str], Sequence[HostAddress]]:
    addresses = [HostAddress(name, variables) for name, variables in hosts.items()]
    return lambda pattern: [one for one in addresses if pattern in ("gpu", one.name)]


def refusal(text: str, variables: dict[str, object]) -> str:
    with pytest.raises(InputError) as caught:
        render(read_service(text), variables, host="gpu1")
    return str(caught.value)


def test_every_host_of_a_group_is_an_instance() -> None:
    hosts = inventory(gpu1=GOOD, gpu2={"vault_chat_key": "sk-5678"})

    placed = place(read_service(SERVICE), hosts)

    assert [(one.name, one.endpoint) for one in placed] == [
        ("gpu1", "http://10.0.0.5:8000"),
        ("gpu2", "http://gpu2:8000"),
    ]
    auth = placed[1].service.auth
    assert auth is not None
    assert auth.bearer.get_secret_value() == "sk-5678"
    assert "sk-5678" not in repr(placed)


def test_instances_of_one_host_differ_by_their_own_variables() -> None:
    text = changed(
        changed(SERVICE, 'instances: {group: gpu, each: {endpoint: "http://{{ ansible_host }}:8000"}}',
        'instances:\n'
        '  - {name: a, host: gpu1, endpoint: "http://{{ ansible_host }}:{{ port }}", vars: {port: "8001"}}\n'
        '  - {name: b, host: gpu1, endpoint: "http://{{ ansible_host }}:{{ port }}", vars: {port: "8002"}}'),
        "systemd: {unit: vllm.service}", 'systemd: {unit: "vllm@{{ instance }}.service"}',
    )  # fmt: skip

    placed = place(read_service(text), inventory(gpu1=GOOD))

    assert [(one.name, one.endpoint, one.service.manager.as_host_argument()) for one in placed] == [
        ("a", "http://10.0.0.5:8001", {"systemd": {"unit": "vllm@a.service"}}),
        ("b", "http://10.0.0.5:8002", {"systemd": {"unit": "vllm@b.service"}}),
    ]


TWO_ON_ONE = changed(
    changed(SERVICE, 'instances: {group: gpu, each: {endpoint: "http://{{ ansible_host }}:8000"}}',
    'instances:\n'
    '  - {host: gpu1, endpoint: "http://{{ ansible_host }}:{{ port }}", vars: {port: "8001"}}\n'
    '  - {host: gpu1, endpoint: "http://{{ ansible_host }}:{{ port }}", vars: {port: "8002"}}\n'
    '  - {host: gpu2, endpoint: "http://{{ ansible_host }}:{{ port }}", vars: {port: "8001"}}'),
    "systemd: {unit: vllm.service}", 'systemd: {unit: "vllm-{{ port }}.service"}',
)  # fmt: skip


def test_instances_of_one_host_are_called_host_and_port_and_are_numbered() -> None:
    placed = place(read_service(TWO_ON_ONE), inventory(gpu1=GOOD, gpu2=GOOD))

    assert [(one.name, one.number) for one in placed] == [("gpu1:8001", 1), ("gpu1:8002", 2), ("gpu2", 0)]


def test_a_group_listed_twice_puts_two_instances_on_every_host() -> None:
    lines = TWO_ON_ONE.replace("host: gpu1", "host: gpu").splitlines(keepends=True)
    text = "".join(line for line in lines if "host: gpu2" not in line)
    placed = place(read_service(text), inventory(gpu1=GOOD, gpu2=GOOD))

    assert [(one.name, one.number) for one in placed] == [
        ("gpu1:8001", 1), ("gpu2:8001", 1), ("gpu1:8002", 2), ("gpu2:8002", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "vllm-{{ port }}.service",
            "vllm.service",
            "8001 and gpu1:8002 on host gpu1 are started by the same thing",
        ),
        ("model:", 'state_dir: "/srv/{{ port }}"\nmodel:', "have different folders for changectl's state"),
    ],
)
def test_instances_of_one_host_that_cannot_be_changed_apart_are_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        place(read_service(changed(TWO_ON_ONE, old, new)), inventory(gpu1=GOOD, gpu2=GOOD))


BY_NGINX = '{nginx: {host: lb1, file: /etc/nginx/c.conf, upstream: chat, member: "{{ ansible_host }}:WHO"}}'
BY_COMMAND = '{command: {out: "/bin/lb out WHO", in: "/bin/lb in WHO"}}'


@pytest.mark.parametrize(
    ("way", "apart", "said", "write"),
    [
        (BY_NGINX, "{{ port }}", "same `member`", 'what differs: `member: "{{ ansible_host }}:{{ port }}"`'),
        (BY_COMMAND, "{{ instance }}", "same `out`", 'in its commands: `out: "/opt/lb out {{ instance }}"`'),
    ],
    ids=["nginx", "command"],
)
def test_of_two_instances_none_is_taken_out_in_the_others_stead(way: str, apart: str, said: str, write: str) -> None:
    def placed(who: str) -> int:
        service = read_service(f"{TWO_ON_ONE}traffic: {way.replace('WHO', who)}\n")
        return len(place(service, inventory(gpu1=GOOD, gpu2={**GOOD, "ansible_host": "10.0.0.6"})))

    assert placed(apart) == 3
    with pytest.raises(InputError) as caught:
        placed("8001")
    assert str(caught.value).count("would be taken out") == 1  # gpu2 has a member, and commands, of its own host
    assert f"traffic: gpu1:8001 and gpu1:8002 would be taken out of service by the {said}" in str(caught.value)
    assert write in str(caught.value)


def test_instances_of_two_hosts_have_two_members_too() -> None:
    traffic = BY_NGINX.replace("{{ ansible_host }}:WHO", "10.0.0.5:8000")

    with pytest.raises(InputError, match="gpu1 and gpu2 would be taken out of service by the same `member`"):
        place(read_service(f"{SERVICE}traffic: {traffic}\n"), inventory(gpu1=GOOD, gpu2={**GOOD, "ansible_host": "h"}))


def test_a_variable_with_spaces_stays_one_word_of_a_command() -> None:
    text = changed(COMMAND_SERVICE, "{{ port + 1 }}", "{{ port }}")

    manager = render(read_service(text), {"port": "80; rm -rf / 'x"}).manager

    assert manager.command is not None
    assert manager.command.start == ("./run-chat", "start", "--port", "80; rm -rf / 'x", "two words")


def test_a_variable_may_itself_be_a_template() -> None:
    service = render(read_service(SERVICE), {**GOOD, "vault_chat_key": "{{ key_of_site }}", "key_of_site": "sk-9"})

    assert service.auth is not None
    assert service.auth.bearer.get_secret_value() == "sk-9"


def test_variables_that_refer_to_each_other_end() -> None:
    assert "without end" in refusal(SERVICE, {**GOOD, "ansible_host": "{{ a }}", "a": "{{ b }}", "b": "{{ a }}"})


def test_an_undefined_variable_is_named_with_its_place() -> None:
    assert refusal(SERVICE, {"ansible_host": "h"}) == (
        "chat.yml:13:16: auth/bearer: variable `vault_chat_key` is not defined for host gpu1\n"
        "  define it in the inventory: host_vars, group_vars or a vault file"
    )


def test_a_value_that_does_not_fit_is_not_shown() -> None:
    said = refusal(SERVICE, {**GOOD, "vault_chat_key": "my secret passphrase"})

    assert "auth/bearer: what the template gives does not fit here" in said
    assert "secret passphrase" not in said


def test_a_rendered_unit_is_checked_like_a_written_one() -> None:
    text = changed(SERVICE, "systemd: {unit: vllm.service}", 'systemd: {unit: "{{ unit }}"}')

    said = refusal(text, {**GOOD, "unit": "x.service --now"})

    assert "manager/systemd/unit" in said
    assert "--now" not in said


@pytest.mark.parametrize(
    "expression",
    ["{{ ''.__class__.__mro__ }}", "{{ ansible_host.__init__.__globals__ }}", "{{ 1 / 0 }}", "{{ ansible_host.x.y }}",
     "{{ 'a' * 99999 }}", "{% for x in range(10**9) %}a{% endfor %}", "{{ vars[vault_chat_key] }}"],
)  # fmt: skip
def test_a_template_cannot_leave_the_sandbox_nor_show_values(expression: str) -> None:
    said = refusal(changed(SERVICE, "{{ ansible_host }}", expression), {**GOOD, "vars": {}})

    assert "instances/each/endpoint" in said
    assert "sk-1234" not in said


def test_an_unknown_group_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        check_names(read_service(SERVICE), ["gpus", "web", "gpu1"])

    assert str(caught.value) == (
        "chat.yml:4:20: instances/group: the inventory has no group or host `gpu`\n"
        "  did you mean `gpus`? known: gpu1, gpus, web"
    )


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(InputError) as caught:
        check_names(read_service(COMMAND_SERVICE), ["gpu1"])

    assert str(caught.value).startswith("chat.yml:5:12: instances/1/host: the inventory has no host `box`")


CALLED = f"{SERVICE}caller: gatway\n"


def test_an_unknown_caller_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        check_names(read_service(CALLED), ["gpu", "gateway"])

    assert str(caught.value) == (
        "chat.yml:17:9: caller: the inventory has no host `gatway`\n  did you mean `gateway`? known: gateway, gpu"
    )


def test_a_group_is_no_caller() -> None:
    with pytest.raises(InputError, match="`gatway` is no host of the inventory") as caught:
        place_caller(read_service(CALLED), lambda name: None)

    assert "not of a group" in str(caught.value)


@pytest.mark.parametrize(
    ("way", "key"),
    [
        ('{nginx: {host: HOST, file: /etc/nginx/c.conf, upstream: chat, member: "h:80"}}', "nginx"),
        ("{command: {out: /bin/out, in: /bin/in, host: HOST}}", "command"),
    ],
)
def test_a_balancer_that_the_inventory_does_not_know_is_named_before_any_host_is_asked(way: str, key: str) -> None:
    def switched_by(host: str) -> str:
        return f"{SERVICE}traffic: {way.replace('HOST', host)}\n"

    with pytest.raises(InputError, match=f"traffic/{key}/host: the inventory has no host `lb`") as caught:
        check_names(read_service(switched_by("lb")), ["gpu", "lb1"])

    assert "did you mean `lb1`?" in str(caught.value)
    check_names(read_service(switched_by("lb1")), ["gpu", "lb1"])
    check_names(read_service(switched_by('"{{ lb }}"')), ["gpu"])


def test_no_host_left_is_a_mistake() -> None:
    with pytest.raises(InputError, match="no host is left of `gpu`"):
        place(read_service(SERVICE), inventory())


def test_instances_that_their_templates_do_not_tell_apart_are_refused() -> None:
    text = changed(
        COMMAND_SERVICE,
        '  - {host: box, endpoint: "http://127.0.0.1:8080"}\n',
        '  - {name: a, host: box, endpoint: "http://h:{{ port }}"}\n'
        '  - {name: b, host: box, endpoint: "http://h:{{ port }}"}\n',
    )

    with pytest.raises(InputError, match="two instances have the same endpoint on host box"):
        place(read_service(text), inventory(box={"port": 1}))
