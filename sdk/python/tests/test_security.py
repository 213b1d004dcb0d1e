"""How a Security is read and checked. No server is called."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from graphd import InMemorySaver, Security, StateGraph
from graphd.dev import graphd_command
from graphd.errors import GraphdError, InvalidSecurityError, UnauthenticatedError
from graphd.security import PLAIN, Target, is_loopback
from graphd.transport import certificates, token
from graphd.transport.certificates import CertificateFiles
from graphd.transport.dialer import Dialer
from graphd.transport.server import _KnownServers
from graphd.transport.token import open_token

SECRET = "t0-ken"


def given(**fields: str) -> Security:
    """What remains of an environment."""
    return Security().with_environment(fields)


def test_the_environment_says_what_the_program_leaves_out() -> None:
    assert given() == PLAIN
    assert not PLAIN.uses_tls and not PLAIN.has_token
    environment = {
        "GRAPHD_TLS": "true",
        "GRAPHD_TLS_CA": "env-ca.pem",
        "GRAPHD_TLS_CERT": "env.pem",
        "GRAPHD_TLS_KEY": "env-key.pem",
        "GRAPHD_TOKEN": "env-token",
        "GRAPHD_TENANT": "env-tenant",
    }
    everything = Security().with_environment(environment)
    assert everything == Security(
        tls=True,
        ca="env-ca.pem",
        cert="env.pem",
        key="env-key.pem",
        token="env-token",
        token_file="",
        tenant="env-tenant",
    )
    own = Security(ca="own.pem", token=SECRET, tenant="own").with_environment(environment)
    assert (own.ca, own.cert, own.token, own.tenant) == ("own.pem", "env.pem", SECRET, "own")
    assert Security(tenant="").with_environment(environment).tenant == "", "the caller's own"
    with pytest.raises(InvalidSecurityError, match="tenant is 'a@b'"):
        Security().with_environment({"GRAPHD_TENANT": "a@b"})
    assert Security(token_file="f").with_environment(environment).token == ""
    nothing = Security(ca="", cert="", key="", token="").with_environment(environment | {"GRAPHD_TLS": ""})
    assert not nothing.uses_tls and not nothing.has_token, '"" is nothing, whatever the environment says'
    plain = Security(tls=False).with_environment(environment)
    assert not plain.uses_tls and plain.token == "env-token"
    assert Security().with_environment(environment | {"GRAPHD_TLS": "false"}).uses_tls, "as commands of graphd do"


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
def test_each_file_means_tls(name: str) -> None:
    assert Security(**{name: Path("x.pem")}).uses_tls  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "option", "says"),
    [
        ({"tls": False, "ca": "ca.pem"}, "ca", "tls=False and ca contradict each other"),
        ({"tls": False, "key": "key.pem"}, "key", "tls=False and key contradict each other"),
        ({"token": SECRET, "token_file": "token"}, "token_file", "contradict each other"),
        ({"token": f"{SECRET}\n"}, "token", "token has a space or a character that a header can't carry"),
        ({"token": f"{SECRET}é"}, "token", "token has a space or a character that a header can't carry"),
        ({"token": SECRET.encode()}, "token", "token is a bytes"),
        ({"tenant": "a@b"}, "tenant", "tenant is 'a@b': want 1 to 64 of A-Z a-z 0-9 _ . : -"),
        ({"tenant": "acme\n"}, "tenant", "tenant is 'acme\\n'"),
        ({"tenant": "n" * 65}, "tenant", "want 1 to 64"),
        ({"token": SECRET * 3000}, "token", "token has 18000 bytes: want at most 16384, as servers do"),
    ],
)
def test_a_wrong_security_is_refused(fields: dict[str, Any], option: str, says: str) -> None:
    with pytest.raises(InvalidSecurityError) as refused:
        Security(**fields)
    assert isinstance(refused.value, ValueError) and isinstance(refused.value, GraphdError)
    assert says in str(refused.value) and SECRET not in str(refused.value)
    assert refused.value.option == option and refused.value.want in str(refused.value)


def test_a_variable_that_is_no_bool_is_refused() -> None:
    with pytest.raises(InvalidSecurityError, match=r"GRAPHD_TLS is 'yes': want true or false"):
        given(GRAPHD_TLS="yes")


@pytest.mark.parametrize("field", ["cert", "key"])
def test_a_certificate_and_its_key_belong_together(field: str) -> None:
    with pytest.raises(InvalidSecurityError, match="belong together, and one is missing"):
        Dialer(Target("127.0.0.1:7700", Security(**{field: "a.pem"})))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:7700", True),
        ("127.9.9.9:1", True),
        ("LOCALHOST:7700", True),
        ("[::1]:7700", True),
        ("dns:localhost:7700", True),
        ("dns:///localhost:7700", True),
        ("ipv4:127.0.0.1:1,127.0.0.2:2", True),
        ("ipv6:[::1]:1", True),
        ("unix:/run/graphd", True),
        ("10.0.0.5:7700", False),
        ("0.0.0.0:7700", False),
        ("graphd.internal:7700", False),
        ("localhost.example.org:7700", False),
        ("127.0.0.1.example.org:7700", False),
        ("[2001:db8::1]:7700", False),
        ("dns://10.0.0.1/localhost:7700", False),
        ("ipv4:127.0.0.1:1,10.0.0.1:1", False),
        ("ipv4:127.0.0.1:1%2C10.0.0.1:1", False),
        ("passthrough:///127.0.0.1:1", False),
        ("localhost:7700/", False),
        ("", False),
    ],
)
def test_a_token_goes_to_this_host_or_over_tls(address: str, local: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_loopback(address) is local
    for secret in (Security(token=SECRET), Security(token=lambda: SECRET), Security(token_file="token")):
        if local:
            secret.check_target(address)
            continue
        with pytest.raises(InvalidSecurityError) as refused:
            secret.check_target(address)
        assert "in plain text, where others could read it" in str(refused.value)
        assert "ca=FILE" in refused.value.want and SECRET not in str(refused.value)
    Security(tls=True, token=SECRET).check_target(address)


def test_nothing_is_sent_where_a_token_must_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        listener.settimeout(0.2)
        address = f"0.0.0.0:{listener.getsockname()[1]}"  # reaches this host, and has no name of it
        builder = StateGraph(dict).add_node("n", dict).add_edge("__start__", "n")
        for secret in (Security(token=SECRET), None):
            if secret is None:
                monkeypatch.setenv("GRAPHD_TOKEN", SECRET)
            with pytest.raises(InvalidSecurityError, match="is not sent to"):
                builder.compile(server=address, security=secret, name="plain")
            with pytest.raises(InvalidSecurityError, match="is not sent to"):
                InMemorySaver(server=address, security=secret).delete_thread("t")
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_token_in_plain_text_does_not_go_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy, socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "")
        proxy.settimeout(0.2)
        target = Target(f"localhost:{server.getsockname()[1]}", Security(token=SECRET))
        channel = Dialer(target).open_channel(())
        grpc.channel_ready_future(channel)
        reached, _ = server.accept()
        with pytest.raises(TimeoutError):
            proxy.accept()
        channel.close()
        reached.close()


def test_a_token_is_in_no_repr() -> None:
    secret = Security(token=SECRET)
    assert SECRET not in repr(secret) + str(secret) + repr(Target("127.0.0.1:1", secret)) + repr(
        secret.with_environment({})
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of certificates."""
    folder = tmp_path_factory.mktemp("made")
    command = [*graphd_command(), "certs", "--dir", str(folder), "--client", "alice", "--client", "bob"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def certs(made: Path, tmp_path: Path) -> Path:
    """Files that a test may change."""
    shutil.copytree(made, tmp_path / "certs")
    return tmp_path / "certs"


def of_alice(certs: Path) -> Security:
    return Security(ca=certs / "ca.pem", cert=certs / "client-alice.pem", key=certs / "client-alice-key.pem")


@pytest.mark.parametrize(
    ("file", "text", "option", "says"),
    [
        ("ca.pem", None, "ca", "ca.pem: no such file or directory: want a PEM file with certificates of CAs"),
        ("ca.pem", "hush", "ca", "no certificate that can be read"),
        ("ca.pem", "", "ca", "no certificate that can be read"),
        ("ca.pem", "é", "ca", "no certificate that can be read"),
        ("ca.pem", "x" * (5 << 20), "ca", "more than 4 MiB"),
        ("client-alice.pem", None, "cert", "no such file or directory"),
        ("client-alice.pem", "hush", "cert", "no certificate that can be read"),
        ("client-alice-key.pem", None, "key", "no such file or directory"),
        ("client-alice-key.pem", "hush", "key", "no private key that can be read"),
        ("client-alice-key.pem", "client-bob-key.pem", "key", "the key does not fit the first certificate of"),
    ],
)
def test_a_file_that_can_not_be_used_is_named(certs: Path, file: str, text: str | None, option: str, says: str) -> None:
    path = certs / file
    if text is None:
        path.unlink()
    else:
        path.write_text((certs / text).read_text() if text.endswith(".pem") else text)
    with pytest.raises(InvalidSecurityError) as refused:
        CertificateFiles(of_alice(certs))
    assert says in str(refused.value) and str(path) in str(refused.value)
    assert refused.value.option == option
    assert "hush" not in str(refused.value), "no content of a file is told"


def test_an_encrypted_key_is_refused_and_asks_nobody(certs: Path) -> None:
    key = certs / "client-alice-key.pem"
    key.write_text(key.read_text().replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"))
    with pytest.raises(InvalidSecurityError, match="the private key is encrypted"):
        CertificateFiles(of_alice(certs))


def test_new_files_are_taken_up_when_they_can_be_used(
    certs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr(certificates.time, "monotonic", lambda: now[0])
    caplog.set_level(logging.INFO, "graphd.security")
    files = CertificateFiles(of_alice(certs))
    first = files.credentials
    shutil.copy(certs / "client-bob-key.pem", certs / "client-alice-key.pem")
    assert files.credentials is first, "they are looked at once a second"
    for _ in range(3):
        now[0] += 1
        assert files.credentials is first, "the key came before its certificate"
    assert files.revision == 0
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert "can't be used: key" in caplog.text and "does not fit" in caplog.text
    shutil.copy(certs / "client-bob.pem", certs / "client-alice.pem")
    now[0] += 1
    assert files.credentials is not first
    assert files.revision == 1
    assert "new connections use them" in caplog.text


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda: 1 / 0, "has failed with ZeroDivisionError"),
        (lambda: None, "has returned none"),
        (lambda: "", "has returned none"),
        (lambda: f"{SECRET} x", "a header can't carry"),
        (lambda: SECRET * 3000, "token has 18000 bytes"),
    ],
)
def test_a_function_without_a_token_is_told(function: Any, says: str) -> None:
    read = open_token(Security(token=function))
    assert read is not None
    with pytest.raises(UnauthenticatedError) as refused:
        read()
    assert says in str(refused.value) and SECRET not in str(refused.value)


def test_a_file_with_a_token_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr(token.time, "monotonic", lambda: now[0])
    path = tmp_path / "token"
    read = open_token(Security(token_file=path))
    assert read is not None
    for wrong in (None, "", " \n", f"{SECRET} {SECRET}", SECRET * 3000, "x" * (65 << 10)):
        if wrong is not None:
            path.write_text(wrong)
        with pytest.raises(UnauthenticatedError, match="token_file") as refused:
            read()
        assert SECRET not in str(refused.value)
    path.write_text("first\n")
    assert read() == "first"
    path.write_text("second\n")
    assert read() == "first"
    now[0] += 1
    assert read() == "second"
    path.unlink()
    for _ in range(3):
        now[0] += 1
        assert read() == "second"
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert "no such file" in caplog.text and "second" not in caplog.text


def test_a_program_may_act_for_many_users() -> None:
    known = _KnownServers(3)
    kept = known.find_or_open(Target("127.0.0.1:1", PLAIN))
    for user in range(10):
        known.find_or_open(Target("127.0.0.1:1", Security(token=f"user-{user}")))
    assert known.find_or_open(Target("127.0.0.1:1", PLAIN)) is kept, "it is in use"
    assert len(known._latest) == 3
    assert len(known._in_use) <= 4


def test_several_threads_open_a_server_once() -> None:
    known, found = _KnownServers(3), []
    threads = [
        threading.Thread(target=lambda: found.append(known.find_or_open(Target("127.0.0.1:1")))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(server) for server in found}) == 1


@pytest.mark.parametrize("address", ["localhost", "graphd.internal", "10.0.0.1", "[::1]"])
def test_a_host_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"names no port: want host:port, like localhost:7700"):
        Security().check_target(address)
