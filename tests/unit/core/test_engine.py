from __future__ import annotations

from changectl.core.engine import Engine, Page, ProbeRequest, pages_from
from changectl.engines import load


def test_a_page_is_read_from_a_host_answer() -> None:
    pages = pages_from(
        {
            "good": {
                "status": 200,
                "headers": {"Content-Type": "x"},
                "body": '{"a": 1}',
                "error": None,
                "seconds": 0.1,
            },
            "gone": {"status": None, "headers": None, "body": None, "error": "refused", "seconds": 0.0},
        }
    )

    assert pages["good"].ok
    assert pages["good"].json() == {"a": 1}
    assert pages["good"].headers == {"content-type": "x"}
    assert not pages["gone"].ok
    assert pages["gone"].said() == "refused"


def test_a_failed_page_has_no_content_whatever_its_body_says() -> None:
    failed = Page(status=500, body='{"a": 1}')

    assert failed.json() is None
    assert failed.metrics() is None
    assert failed.said() == "HTTP 500"


def test_a_body_that_is_not_understood_is_no_content() -> None:
    assert Page(status=200, body="<html>").json() is None
    assert Page(status=200, body="<html>").metrics() is None


def test_a_request_becomes_the_arguments_of_the_host_call() -> None:
    args = ProbeRequest("answer", "http://h/v1", "POST", {"A": "b"}, "{}", 60).as_args()

    assert args == {
        "name": "answer", "method": "POST", "url": "http://h/v1", "headers": {"A": "b"}, "body": "{}", "timeout": 60,
    }  # fmt: skip


def test_every_engine_keeps_the_protocol() -> None:
    for spec in ("llamacpp", "vllm", {"generic": {"ready": "GET / 200"}}):
        assert isinstance(load(spec), Engine)
