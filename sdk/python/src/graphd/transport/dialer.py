"""Channels to one server, protected as they have to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from graphd.security import Target
from graphd.transport.certificates import CertificateFiles
from graphd.transport.headers import HeaderSender, build_async_senders, open_headers

Options = Sequence[tuple[str, Any]]


class Dialer:
    """Makes channels. Raises InvalidSecurityError before anything is sent."""

    def __init__(self, target: Target) -> None:
        address, security = target
        security.check_target(address)
        self._address = address
        self._files = CertificateFiles(security) if security.uses_tls else None
        self._headers = open_headers(security)
        # A proxy could read what goes to this host in plain text.
        self._own: Options = [("grpc.enable_http_proxy", 0)] if security.has_token and not security.uses_tls else []

    @property
    def revision(self) -> int:
        """Grows when there are new certificates, which only new channels use."""
        return self._files.revision if self._files is not None else 0

    def open_channel(self, options: Options) -> grpc.Channel:
        """A channel for plain calls."""
        options = [*options, *self._own]
        if self._files is None:
            channel = grpc.insecure_channel(self._address, options=options)
        else:
            channel = grpc.secure_channel(self._address, self._files.credentials, options=options)
        return channel if self._headers is None else grpc.intercept_channel(channel, HeaderSender(self._headers))

    def open_async_channel(self, options: Options) -> grpc.aio.Channel:
        """A channel for the running loop."""
        options = [*options, *self._own]
        senders = build_async_senders(self._headers) if self._headers is not None else None
        if self._files is None:
            return grpc.aio.insecure_channel(self._address, options=options, interceptors=senders)
        return grpc.aio.secure_channel(self._address, self._files.credentials, options=options, interceptors=senders)
