"""A server in front of another one, which looks at the tokens of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from graphd._gen.client import status_pb2 as pb

UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Gate(grpc.GenericRpcHandler):
    """Passes calls on whose token is accepted, and notes all of them."""

    def __init__(self, address: str, *accepted: str) -> None:
        self.accepted = set(accepted)
        self.calls: list[tuple[str, str]] = []
        self.refusal = (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_INVALID")
        self._passed: list[tuple[str, Any]] = []
        self._channel = grpc.insecure_channel(address, options=UNLIMITED)
        self._server = grpc.server(ThreadPoolExecutor(64), options=UNLIMITED)
        self._server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, details: Any) -> Any:
        """The handler of a call."""
        headers = [value for key, value in details.invocation_metadata if key == "authorization"]
        assert len(headers) <= 1
        header = "".join(headers)
        self.calls.append((details.method.rpartition("/")[2], header))
        accepted = header.removeprefix("Bearer ") in self.accepted
        handle = self._pass_on(details.method) if accepted else self._refuse
        return grpc.stream_stream_rpc_method_handler(handle)

    def methods(self) -> set[str]:
        """What was called."""
        return {method for method, _ in self.calls}

    def has_passed(self, method: str) -> bool:
        """A call of the method is under way, so that end_streams breaks it."""
        return any(name == method for name, _ in self._passed)

    def end_streams(self) -> None:
        """Every call under way breaks."""
        for _, call in self._passed:
            call.cancel()

    def _refuse(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        code, reason = self.refusal
        status = pb.Status(code=code.value[0], message="the token is not good")
        info = pb.ErrorInfo(reason=reason, domain="graphd.dev")
        status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, status.message)
        yield b""

    def _pass_on(self, method: str) -> Callable[[Iterator[bytes], Any], Iterator[bytes]]:
        def handle(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            call = self._channel.stream_stream(method)(requests)
            self._passed.append((method.rpartition("/")[2], call))
            context.add_callback(call.cancel)
            try:
                yield from call
            except grpc.RpcError as error:
                details = [m for m in error.trailing_metadata() or () if m[0] == "grpc-status-details-bin"]
                context.set_trailing_metadata(details)
                broken = error.code() is grpc.StatusCode.CANCELLED
                context.abort(grpc.StatusCode.UNAVAILABLE if broken else error.code(), error.details())

        return handle

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None)
        self._channel.close()
