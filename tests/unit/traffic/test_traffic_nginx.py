"""One `server` line of one upstream gets ` down` and loses it again; whatever else the file holds stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.declared.traffic_spec import TrafficSpec
from changectl.core.errors import EditRefused
from changectl.traffic import Traffic, load

OWN = "10.0.0.1:8000"
CHAT = b"""\
# server 10.0.0.1:8000;  an old note
upstream chat {
    least_conn;
    server 10.0.0.1:8000 weight=2 max_fails=3;   # gpu1
    server 10.0.0.2:8000;
    server 10.0.0.3:8000 backup;
    keepalive 16;
}
upstream other { server 10.0.0.1:8000; }
server {
    listen 80;
    location / { proxy_pass "http://chat"; add_header X "a;b{c}"; }
}
"""


def nginx(member: str = OWN, upstream: str = "chat") -> Traffic:
    spec = {"host": "lb1", "file": "/etc/nginx/conf.d/chat.conf", "upstream": upstream, "member": member}
    return load(TrafficSpec.model_validate({"nginx": spec}))


def taken_out(data: bytes, member: str = OWN) -> bytes:
    after = nginx(member).taken_out(data)
    assert after is not None
    return after


def refusal(data: bytes, member: str = OWN, upstream: str = "chat") -> str:
    with pytest.raises(EditRefused) as caught:
        nginx(member, upstream).taken_out(data)
    return str(caught.value)


def test_only_the_members_own_line_changes_and_by_one_word() -> None:
    after = taken_out(CHAT)

    assert after == CHAT.replace(b"weight=2 max_fails=3;", b"weight=2 max_fails=3 down;")
    assert nginx().put_back(after) == CHAT


@pytest.mark.parametrize(
    ("line", "member"),
    [
        (b"server 10.0.0.1:8000;", OWN),
        (b"server\t10.0.0.1:8000 ;", OWN),
        (b"server 10.0.0.1:8000\n        weight=2\n        ;", OWN),
        (b"server 10.0.0.1:8000 # gpu1; not the end\n   weight=5;", OWN),
        (b'server "10.0.0.1:8000" resolve;', OWN),
        (b"server 10.0.0.1 slow_start=30s;", "10.0.0.1:80"),
        (b"server 10.0.0.1:80;", "10.0.0.1"),
        (b"server [2001:db8::1]:8000 weight=2;", "[2001:db8::1]:8000"),
        (b"server [2001:DB8::1];", "[2001:db8::1]:80"),
        (b"server unix:/run/chat.sock;", "unix:/run/chat.sock"),
        (b"server GPU1.example.net:8000;", "gpu1.example.net:8000"),
    ],
)
def test_however_the_line_is_written_it_comes_back_byte_for_byte(line: bytes, member: str) -> None:
    data = b"upstream chat {\r\n  " + line + b"\r\n  server 10.9.9.9:1;\r\n}\r\n"
    after = taken_out(data, member)

    assert len(after) == len(data) + len(b" down")
    assert nginx(member).put_back(after) == data


def test_what_others_edited_meanwhile_stays_also_in_the_very_line() -> None:
    after = taken_out(CHAT).replace(b"weight=2", b"weight=7").replace(b"keepalive 16", b"keepalive 32")

    back = nginx().put_back(after)

    assert back == CHAT.replace(b"weight=2", b"weight=7").replace(b"keepalive 16", b"keepalive 32")


def test_a_member_that_somebody_took_out_is_not_ours_to_take_out_or_put_back() -> None:
    down = CHAT.replace(b"weight=2", b"down weight=2")

    assert nginx().taken_out(down) is None


def test_a_member_that_is_in_service_already_is_left_alone() -> None:
    assert nginx().put_back(CHAT) == CHAT


def test_the_other_members_are_told_with_what_they_get() -> None:
    peers = nginx().peers(CHAT.replace(b"server 10.0.0.2:8000;", b"server 10.0.0.2:8000 down;"))

    assert peers is not None
    assert [(peer.address, peer.down, peer.backup) for peer in peers] == [
        ("10.0.0.2:8000", True, False),
        ("10.0.0.3:8000", False, True),
    ]


def test_an_upstream_within_http_is_found_and_one_in_a_comment_is_not() -> None:
    data = b"events {}\nhttp {\n # upstream chat { server 10.0.0.1:8000; }\n" + CHAT + b"}\n"

    assert taken_out(data).count(b" down") == 1


def test_a_block_of_lua_may_hold_anything() -> None:
    lua = b"server { location /x { content_by_lua_block { local t = {'it''s'} -- don't } }\n}\n"

    assert taken_out(lua + CHAT) == lua + taken_out(CHAT)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (CHAT + b"stream { upstream chat { server 10.0.0.1:8000; } }\n", "several blocks"),
        (CHAT.replace(b"server 10.0.0.2:8000;", b"server 10.0.0.1:8000;"), "more than once"),
        (
            CHAT.replace(b"server 10.0.0.1:8000 weight=2", b"server 10.0.0.9:8000"),
            "it has 10.0.0.9:8000, 10.0.0.2:8000",
        ),
        (b"upstream chat { include members.conf; }\n", "includes members.conf"),
        (b"upstream chat { server $backend; server 10.0.0.1:8000; }\n", "a variable"),
        (b"upstream chat { server 10.0.0.1:8000; \n", "braces do not match"),
        (b"upstream chat { server '10.0.0.1:8000; }\n", "quote is not closed"),
        (b"server { listen 80; }\n", "no upstream chat"),
        (b"", "no upstream chat"),
    ],
)
def test_whatever_is_not_without_doubt_is_refused_with_the_reason(data: bytes, said: str) -> None:
    assert said in refusal(data)


def test_one_upstream_is_one_place_whoever_its_members_are() -> None:
    assert nginx().place == nginx("10.0.0.2:8000").place
    assert nginx().place != nginx(upstream="other").place


def test_the_address_is_told_as_the_balancer_reaches_it() -> None:
    assert nginx("10.0.0.1").member == "10.0.0.1:80"
    assert nginx("unix:/run/chat.sock").member is None


NOISE = st.text(alphabet="abc \t\n#;{}\"'\\$", max_size=40)
PARAMETERS = st.lists(st.sampled_from(["weight=2", "max_fails=0", "resolve", '"slow_start=30s"']), max_size=3)


@given(before=NOISE, comment=NOISE, parameters=PARAMETERS)
def test_any_file_is_refused_or_comes_back_byte_for_byte(before: str, comment: str, parameters: list[str]) -> None:
    line = " ".join(["server", OWN, *parameters])
    note = comment.replace("\n", " ")
    data = f"{before}\nupstream chat {{ # {note}\n {line} ;\n server 10.0.0.2:1;\n}}\n".encode()
    try:
        after = nginx().taken_out(data)
    except EditRefused:
        return
    assert after is not None
    assert len(after) == len(data) + 5
    assert nginx().put_back(after) == data
