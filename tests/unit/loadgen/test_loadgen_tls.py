"""TLS: certificates are checked unless the job says otherwise."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

Generate = Callable[..., Result]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stub")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(addresses, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = tmp_path_factory.mktemp("tls") / "stub.pem"
    path.write_bytes(key.private_bytes(encoding, private, serialization.NoEncryption()) + signed.public_bytes(encoding))
    return path


async def answer(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.end()


@pytest.mark.parametrize(
    ("tls", "outcome"),
    [({}, "connect_error"), ({"ca": "CERTIFICATE"}, "ok"), ({"verify": False}, "ok")],
    ids=["unknown", "known", "unchecked"],
)
def test_only_a_known_certificate_is_taken(
    generate: Generate, certificate: Path, tls: dict[str, object], outcome: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    tls = {name: str(certificate) if value == "CERTIFICATE" else value for name, value in tls.items()}
    with Server(answer, tls=context) as server:
        result = generate(make_job(server.url, tls=tls))
    assert [record.cls for record in result.records] == [outcome]
    if outcome != "ok":
        assert "certificate" in (result.records[0].error or "").lower()
