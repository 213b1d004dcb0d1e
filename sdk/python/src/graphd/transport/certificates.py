"""Credentials of channels, from files that may change."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from typing import NamedTuple

import grpc

from graphd.errors import InvalidSecurityError
from graphd.security import FilePath, Security

log = logging.getLogger("graphd.security")

_LARGEST = 4 << 20  # bytes of a file: many times the size of a bundle of all public CAs
_INTERVAL = 1.0  # seconds between two looks at the files
_WANTED = {
    "ca": "want a PEM file with certificates of CAs",
    "cert": "want a PEM file with the certificate first, and those of intermediate CAs after it",
    "key": "want a PEM file with the private key of the certificate, not encrypted",
}


class _Texts(NamedTuple):
    ca: bytes | None
    cert: bytes | None
    key: bytes | None


class CertificateFiles:
    """The files of a Security with TLS. Safe to use from several threads."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._lock = threading.Lock()
        self._looked, self._revision = time.monotonic(), 0
        self._complaint = ""
        self._texts = self._read_texts()
        self._check_texts(self._texts)
        self._credentials = _build_credentials(self._texts)

    @property
    def credentials(self) -> grpc.ChannelCredentials:
        """The newest that can be used."""
        with self._lock:
            self._look_again()
            return self._credentials

    @property
    def revision(self) -> int:
        """How often there were new ones."""
        with self._lock:
            self._look_again()
            return self._revision

    def _look_again(self) -> None:
        """Takes new files up. When they can't be used, those before them stay in use."""
        if time.monotonic() - self._looked < _INTERVAL:
            return
        self._looked = time.monotonic()
        try:
            texts = self._read_texts()
            if texts == self._texts:
                self._complaint = ""
                return
            self._check_texts(texts)
        except InvalidSecurityError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.error("the files of TLS have changed and can't be used: %s", error)
            return
        self._texts, self._credentials = texts, _build_credentials(texts)
        self._revision, self._complaint = self._revision + 1, ""
        log.info("the files of TLS have changed; new connections use them")

    def _read_texts(self) -> _Texts:
        given = self._security
        ca = _read_file("ca", given.ca) if given.ca else _read_system_roots()
        if not given.cert or not given.key:
            return _Texts(ca, None, None)
        return _Texts(ca, _read_file("cert", given.cert), _read_file("key", given.key))

    def _check_texts(self, texts: _Texts) -> None:
        """Raises InvalidSecurityError: gRPC itself would fail at the first call, and not say why."""
        given = self._security
        if given.ca and texts.ca is not None:
            _check_certificates("ca", given.ca, texts.ca)
        if not given.cert or not given.key or texts.cert is None or texts.key is None:
            return
        _check_certificates("cert", given.cert, texts.cert)
        if b"ENCRYPTED" in texts.key:
            raise _refuse("key", given.key, "the private key is encrypted")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(given.cert, given.key, password="")
        except ssl.SSLError as error:
            if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
                raise _refuse("key", given.key, f"the key does not fit the first certificate of {given.cert}") from None
            raise _refuse("key", given.key, "the file has no private key that can be read") from None
        except OSError as error:
            raise _refuse("key", given.key, _describe(error)) from None


def _read_file(option: str, path: FilePath) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise _refuse(option, path, _describe(error)) from None
    if len(text) > _LARGEST:
        raise _refuse(option, path, f"the file has more than {_LARGEST >> 20} MiB")
    return text


def _check_certificates(option: str, path: FilePath, text: bytes) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise _refuse(option, path, "the file has no certificate that can be read") from None


def _refuse(option: str, path: FilePath, problem: str) -> InvalidSecurityError:
    return InvalidSecurityError(option, f"{option} {os.fspath(path)}: {problem}", _WANTED[option])


def _describe(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# Bundles of CAs, where Python's ssl names none: of Debian, Fedora, openSUSE, Alpine and macOS.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def _read_system_roots() -> bytes | None:
    """The CAs of the system. None = there are none, and gRPC uses those that it comes with."""
    named = os.environ.get("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")  # gRPC's own variable
    for path in (named, ssl.get_default_verify_paths().cafile, *_BUNDLES):
        if path and os.path.isfile(path):
            return _read_file("ca", path)
    context = ssl.create_default_context()  # has the stores of Windows
    found = "".join(ssl.DER_cert_to_PEM_cert(der) for der in context.get_ca_certs(binary_form=True))
    return found.encode() or None


def _build_credentials(texts: _Texts) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(texts.ca, texts.key, texts.cert)
