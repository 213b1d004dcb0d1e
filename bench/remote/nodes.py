"""The Python process of the benchmark: a worker with chains of ten trivial
nodes, over a small and over a large state, and a bare gRPC service, both as their libraries are used by default.

Prints the port of the bare service when both are ready; ends with its input.
"""

from __future__ import annotations

import sys
from concurrent import futures
from typing import Any, TypedDict

import grpc

from graphd import END, START, StateGraph

LENGTH = 10


class State(TypedDict):
    x: int


class Document(TypedDict):
    id: int
    title: str
    text: str


class LargeState(TypedDict):
    x: int
    documents: list[Document]


def node(state: State) -> State:
    return {"x": state["x"] + 1}


def large_node(state: LargeState) -> dict[str, int]:
    if not state["documents"]:
        raise ValueError("the documents are missing")
    return {"x": state["x"] + 1}


class Bare(grpc.GenericRpcHandler):
    """Answers a call with its request."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method != "/bench.Node/Call":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)


def main(address: str) -> None:
    server = grpc.server(futures.ThreadPoolExecutor())
    server.add_generic_rpc_handlers((Bare(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    # They serve as long as the program holds them.
    graphs = [
        chain(State, node).compile(server=address, name="chain-python"),
        chain(LargeState, large_node).compile(server=address, name="large-python"),
    ]
    print(port, flush=True)
    sys.stdin.read()
    del graphs
    server.stop(None)


def chain(state: type, code: Any) -> StateGraph:
    names = [f"n{i}" for i in range(LENGTH)]
    builder = StateGraph(state)
    for name in names:
        builder.add_node(name, code)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    return builder


if __name__ == "__main__":
    main(sys.argv[1])
