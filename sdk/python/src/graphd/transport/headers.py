"""The headers of calls that say who calls, in which tenant, and in which trace."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import grpc

from graphd.security import Security
from graphd.spans import may_be_traced, read_current
from graphd.threads import run_blocking
from graphd.transport.token import ReadToken, open_token


class Headers:
    """What each call of a caller carries."""

    def __init__(self, read_token: ReadToken | None, tenant: str) -> None:
        self._read_token = read_token
        self._tenant = [("graphd-tenant", tenant)] if tenant else []

    @property
    def may_block(self) -> bool:
        """Whether read may take a while, since it asks for a token."""
        return self._read_token is not None

    def read(self) -> list[tuple[str, str]]:
        """Those of every call; raises UnauthenticatedError when there is no token."""
        if self._read_token is None:
            return self._tenant
        return [*self._tenant, ("authorization", f"Bearer {self._read_token()}")]


def open_headers(security: Security) -> Headers | None:
    """The headers of calls; None for calls without any, which have no trace context either."""
    read_token, tenant = open_token(security), security.tenant or ""
    return Headers(read_token, tenant) if read_token is not None or tenant or may_be_traced() else None


_Details = namedtuple("_Details", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression"))


class _CallDetails(_Details, grpc.ClientCallDetails):
    """A call, as interceptors hand it on."""


class HeaderSender(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[type-arg]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[type-arg]
    grpc.StreamStreamClientInterceptor,  # type: ignore[type-arg]
):
    """Sends the headers of a caller with each call of a channel."""

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._add_headers(details), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._add_headers(details), request)

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(self._add_headers(details), requests)

    def _add_headers(self, details: Any) -> _CallDetails:
        metadata = [*(details.metadata or ()), *read_current(), *self._headers.read()]
        return _CallDetails(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            getattr(details, "wait_for_ready", None),
            getattr(details, "compression", None),
        )


def build_async_senders(headers: Headers) -> list[Any]:
    """Interceptors that do the same on channels of asyncio, where the token is read in a thread."""
    return [_AsyncUnarySender(headers), _AsyncStreamSender(headers)]


class _AsyncSender:
    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    async def _add_headers(self, details: Any) -> Any:
        read = self._headers.read
        own = await run_blocking(read) if self._headers.may_block else read()
        metadata = grpc.aio.Metadata(*(details.metadata or ()), *read_current(), *own)
        return details._replace(metadata=metadata)


class _AsyncUnarySender(_AsyncSender, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return await continuation(await self._add_headers(details), request)


class _AsyncStreamSender(_AsyncSender, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return await continuation(await self._add_headers(details), request)
