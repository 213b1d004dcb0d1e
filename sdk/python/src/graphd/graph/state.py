"""StateGraph: declares a graph, and compiles it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphd.compiled import CompiledStateGraph
from graphd.constants import END, START
from graphd.declare.builder import Builder
from graphd.declare.options import CompileOptions, node_names
from graphd.runtime.drift import Drift, check_drift
from graphd.security import Security
from graphd.values.literals import All, Checkpointer
from graphd.values.parameters import ContextT, InputT, OutputT, Parametrized, StateT
from graphd.values.worker_limits import WorkerLimits


class StateGraph(Builder, Parametrized[StateT, ContextT, InputT, OutputT]):
    """A graph whose nodes read and write one shared state.

    ``state_schema`` is a TypedDict, a dataclass or a pydantic model. A key with
    ``Annotated[T, reducer]`` combines what nodes return for it with what was
    there; another key is replaced. Anything that is no class, such as
    ``Annotated[list, add]``, makes the whole state one value.

    ``StateGraph[State, Context, Input, Output]`` says its types to type checkers.

    Every method that adds something returns the graph, so that calls can be
    chained, and raises InvalidGraphError, a ValueError, for a mistake.
    """

    def compile(
        self,
        checkpointer: Checkpointer = None,
        *,
        cache: Any = None,
        store: Any = None,
        interrupt_before: All | list[str] | None = None,
        interrupt_after: All | list[str] | None = None,
        debug: bool = False,
        name: str | None = None,
        transformers: Any = None,
        server: str | None = None,
        security: Security | None = None,
        worker: bool | WorkerLimits = True,
        version: str | None = None,
        drift: Drift | None = None,
        drift_ignore: Sequence[str] = (),
        part_of: str | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Checks the graph and makes it runnable.

        With ``server`` the process attaches to that server at once, as worker
        and as client, and works for it until ``detach()`` or its own end,
        whether it holds the graph or not. GRAPHD_SERVER does the same at the
        first call, or at ``serve()``. Otherwise ``checkpointer`` decides: a saver
        of graphd names its server, and None runs without memory. ``security``
        says how a server is called; what it leaves out, GRAPHD_TLS,
        GRAPHD_TLS_CA, GRAPHD_TLS_CERT, GRAPHD_TLS_KEY, GRAPHD_TOKEN and
        GRAPHD_TENANT say.

        With ``worker=False`` the process is a client only: it starts and answers
        runs, and other processes run the nodes. WorkerLimits say how many tasks
        the process takes at the same time.

        ``drift`` holds for the questions of the graph that say nothing
        themselves: what happens when a node asks something else on its replay
        than was answered, see interrupt. ``drift_ignore`` names parts of all its
        questions that may differ. Graphs inside of it say their own.

        With ``part_of`` the nodes are part of the graph of that name, which the
        server has: from a graph file, or from a program in another language. Its
        edges and breakpoints are declared there. Other workers may have its other
        nodes. ``version`` is then that of the served graph, "" for every version.

        InvalidGraphError, a ValueError, names the first mistake.
        """
        del transformers
        stops = [
            *([] if interrupt_before in (None, "*") else interrupt_before or ()),
            *([] if interrupt_after in (None, "*") else interrupt_after or ()),
        ]
        if part_of is None:
            self.validate(interrupt=stops)
        else:
            self.validate_part(
                part_of,
                name=name,
                interrupt_before=interrupt_before,
                interrupt_after=interrupt_after,
                drift=drift,
                drift_ignore=drift_ignore or None,
            )
        return CompiledStateGraph(
            self,
            CompileOptions(
                checkpointer=checkpointer,
                cache=cache,
                store=store,
                interrupt_before=node_names(interrupt_before),
                interrupt_after=node_names(interrupt_after),
                name=name,
                part_of=part_of,
                server=server,
                security=security,
                worker=worker,
                version=version or "",
                debug=debug,
                drift=drift,
                drift_ignore=check_drift(drift, drift_ignore),
            ),
        )


__all__ = ["END", "START", "CompiledStateGraph", "StateGraph"]
