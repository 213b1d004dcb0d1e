"""How calls are protected, and who the caller is."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from graphd.errors import InvalidSecurityError

FilePath = str | os.PathLike[str]
MOST_TOKEN = 16 << 10  # bytes that a server reads of a token
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_URL = re.compile("(https?|grpcs?)://")
_TENANT = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class Security:
    """How calls are protected, and who the caller is.

    Each of ``ca``, ``cert``, ``key`` and ``tls=True`` means TLS. What is left out
    comes from the environment; "" is nothing, whatever the environment says.

    ``ca`` (GRAPHD_TLS_CA) is a PEM file with CAs of servers, ``tls=True``
    (GRAPHD_TLS) without it takes the CAs of the system. ``cert`` and ``key``
    (GRAPHD_TLS_CERT, GRAPHD_TLS_KEY) are PEM files for servers that want a
    certificate of clients. ``tls=False`` calls in plain text, whatever the
    environment says.

    ``token`` (GRAPHD_TOKEN) is sent with each call, over TLS or to this host
    only: a text, or a function that returns it and is called for each call, in
    any thread. ``token_file`` is a file with the token. Files are read again when
    they change.

    ``tenant`` (GRAPHD_TENANT) is the tenant in which calls are made, one of those
    that the caller has. Without it calls are made in the caller's own.

    InvalidSecurityError, a ValueError, names what is wrong.
    """

    tls: bool | None = None
    ca: FilePath | None = None
    cert: FilePath | None = None
    key: FilePath | None = None
    token: str | Callable[[], str] | None = field(default=None, repr=False)
    token_file: FilePath | None = None
    tenant: str | None = None

    def __post_init__(self) -> None:
        for name in ("ca", "cert", "key", "token_file"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, os.fspath(path))
        for name in ("ca", "cert", "key"):
            if self.tls is False and getattr(self, name):
                raise InvalidSecurityError(name, f"tls=False and {name} contradict each other", "leave one of them out")
        if self.token and self.token_file:
            problem = "token and token_file contradict each other"
            raise InvalidSecurityError("token_file", problem, "leave one of them out")
        if isinstance(self.token, str):
            check_token("token", self.token)
        elif self.token is not None and not callable(self.token):
            problem = f"token is a {type(self.token).__name__}"
            raise InvalidSecurityError("token", problem, "want a str, or a function that returns one")
        if self.tenant and not _TENANT.fullmatch(self.tenant):
            raise InvalidSecurityError("tenant", f"tenant is {self.tenant!r}", "want 1 to 64 of A-Z a-z 0-9 _ . : -")

    @property
    def uses_tls(self) -> bool:
        """Whether connections use TLS."""
        return bool(self.tls or self.ca or self.cert or self.key)

    @property
    def has_token(self) -> bool:
        """Whether calls carry a token."""
        return bool(self.token or self.token_file)

    def with_environment(self, environment: Mapping[str, str]) -> Security:
        """The same with what the environment adds; nothing of it is left out."""
        token = self.token
        if token is None and not self.token_file:
            token = environment.get("GRAPHD_TOKEN", "")
        ca = cert = key = ""
        if self.tls is not False:
            ca = _choose(self.ca, environment, "GRAPHD_TLS_CA")
            cert = _choose(self.cert, environment, "GRAPHD_TLS_CERT")
            key = _choose(self.key, environment, "GRAPHD_TLS_KEY")
        asked = self.tls if self.tls is not None else _read_bool("GRAPHD_TLS", environment)
        tls = bool(asked or ca or cert or key)
        return Security(
            tls=tls,
            ca=ca,
            cert=cert,
            key=key,
            token=token or "",
            token_file=self.token_file or "",
            tenant=_choose(self.tenant, environment, "GRAPHD_TENANT"),
        )

    def check_target(self, address: str) -> None:
        """Raises InvalidSecurityError when a server must not be called like this, and ValueError for a URL."""
        if _URL.match(address):
            raise ValueError(f"server is {address!r}: want host:port; for TLS see graphd.Security")
        if _HOST.fullmatch(address):  # gRPC would call port 443
            raise ValueError(f"server is {address!r}, which names no port: want host:port, like localhost:7700")
        if bool(self.cert) != bool(self.key):
            raise InvalidSecurityError(
                "cert" if self.key else "key",
                "cert and key (GRAPHD_TLS_CERT and GRAPHD_TLS_KEY) belong together, and one is missing",
                "give both, or neither for a server that wants no certificate of clients",
            )
        if self.has_token and not self.uses_tls and not is_loopback(address):
            raise InvalidSecurityError(
                "token",
                f"the token is not sent to {address} in plain text, where others could read it",
                "use TLS: name the CA of the server with ca=FILE (GRAPHD_TLS_CA), "
                "or give tls=True (GRAPHD_TLS) when its CA is one of the system",
            )


def check_token(option: str, token: str) -> None:
    """Raises InvalidSecurityError, without the token, when a header can't carry it."""
    if (length := len(token.encode(errors="replace"))) > MOST_TOKEN:
        raise InvalidSecurityError(option, f"{option} has {length} bytes", f"want at most {MOST_TOKEN}, as servers do")
    if any(c <= " " or c > "~" for c in token):
        raise InvalidSecurityError(
            option,
            f"{option} has a space or a character that a header can't carry",
            "want letters, digits and punctuation of ASCII, without a line break",
        )


def is_loopback(address: str) -> bool:
    """Whether all of an address is on this host."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    for scheme in ("dns:///", "dns:", "ipv4:", "ipv6:"):
        if address.startswith(scheme):
            address = address.removeprefix(scheme)
            break
    return all(_is_loopback_host(one) for one in address.split(","))


def _is_loopback_host(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit()):
        return False
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _choose(given: FilePath | None, environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "") if given is None else os.fspath(given)


def _read_bool(name: str, environment: Mapping[str, str]) -> bool:
    """Reads a variable as the commands of graphd do."""
    text = environment.get(name, "")
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("", "0", "f", "F", "false", "FALSE", "False"):
        return False
    raise InvalidSecurityError("tls", f"{name} is {text!r}", "want true or false")


PLAIN = Security(tls=False, ca="", cert="", key="", token="", token_file="", tenant="")
"""Plain text without a token and a tenant, whatever the environment says."""


class Target(NamedTuple):
    """A server, and how it is called."""

    address: str
    security: Security = PLAIN
