"""HTTP requests from the host itself: to the engine's own pages, over loopback as a rule."""

from __future__ import annotations

import http.client
import ssl
import time
from typing import Any, Dict
from urllib.parse import urlsplit

from .failure import Failure

_LIMIT = 2 * 1024 * 1024  # bytes of an answer that are kept


def probe(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {name: {status, headers, body, error, seconds}}; no proxies, no redirects."""
    found = {}
    for request in args.get("requests") or []:
        if not isinstance(request, dict) or not isinstance(request.get("name"), str):
            raise Failure("bad_arguments", "each probe request needs a name and a url")
        found[request["name"]] = ask(request)
    return found


def ask(request: Dict[str, Any]) -> Dict[str, Any]:
    """Send one request; what goes wrong stands in `error`, never in an exception."""
    begun = time.monotonic()
    answer: Dict[str, Any] = {"status": None, "headers": {}, "body": "", "error": None}
    timeout = float(request.get("timeout") or 5)
    connection = None
    try:
        url = urlsplit(str(request.get("url")))
        connection = _connection(url.scheme, url.hostname, url.port, timeout, bool(request.get("insecure")))
        body = request.get("body")
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = {str(key): str(value) for key, value in (request.get("headers") or {}).items()}
        payload = None if body is None else str(body).encode()
        connection.request(str(request.get("method") or "GET").upper(), path, body=payload, headers=headers)
        response = connection.getresponse()
        answer.update(status=response.status, headers={key.lower(): value for key, value in response.getheaders()})
        data = _read(response, begun + timeout)
        answer["body"] = data.decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        answer["error"] = _explain(error)
    finally:
        if connection is not None:
            connection.close()
    answer["seconds"] = round(time.monotonic() - begun, 6)
    return answer


def _connection(scheme: str, host: Any, port: Any, timeout: float, insecure: bool) -> http.client.HTTPConnection:
    if not host or scheme not in ("http", "https"):
        raise ValueError("the address must be http://HOST... or https://HOST...")
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout)
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    parts = []
    left = _LIMIT
    while left > 0:
        part = response.read1(min(left, 65536))
        if not part:
            break
        parts.append(part)
        left -= len(part)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer did not end in time")
    return b"".join(parts)


def _explain(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return "timed out"
    return f"{type(error).__name__}: {error}"[:300]
