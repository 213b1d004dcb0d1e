"""Performs the steps of a case."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from graphd import codec
from graphd._gen.v1 import interrupt_service_pb2

from . import plain_data
from .building import MISTAKES
from .matching import Bindings, bind, distinct, match, match_groups, substitute
from .program import World, is_async


class Mismatch(AssertionError):
    """What a step did is not what the case expects."""


class Player:
    """Plays one case."""

    def __init__(self, case: dict[str, Any], world: World, saver: Any) -> None:
        self.case, self.world, self.saver = case, world, saver
        self._possible: list[Bindings] = [{}]
        self._asynchronous = any(is_async(g) for g in case["graphs"])

    def play(self) -> None:
        """Performs every step; raises Mismatch at the first that differs."""
        for number, step in enumerate(self.case["steps"], 1):
            do = step["do"]
            play: Callable[[dict[str, Any], dict[str, Any]], None] = getattr(self, f"do_{do['op']}")
            try:
                play(do, step.get("expect", {}))
            except Mismatch as error:
                raise Mismatch(f"{self.case['id']} step {number} {do}: {error}") from None

    @property
    def known(self) -> Bindings:
        """The ids of symbols, as far as they have been shown."""
        return self._possible[0]

    @known.setter
    def known(self, bindings: Bindings) -> None:
        self._possible = [bindings]

    def _narrow(self, bindings: Iterable[Bindings | None], problem: str) -> None:
        """Keeps the bindings that are left; raises Mismatch if there are none."""
        possible = distinct(bound for bound in bindings if bound is not None)
        if not possible:
            raise Mismatch(f"{problem}\n  known    {self.known}")
        self._possible = possible

    # What steps refer to.

    def _graph(self, do: dict[str, Any]) -> Any:
        names = list(self.world.graphs)
        default = "g" if "g" in names else names[-1]
        return self.world.graphs[do.get("graph", default)]

    def _config(self, do: dict[str, Any]) -> dict[str, Any]:
        config = dict(do.get("config", {}))
        configurable: dict[str, Any] = {}
        if "thread" in do:
            configurable["thread_id"] = do["thread"]
        for symbol, where in do.get("bind", {}).items():
            history = list(self._graph(do).get_state_history({"configurable": {"thread_id": where["thread"]}}))
            self._bind(symbol, history[where["history_index"]].config["configurable"]["checkpoint_id"])
        if "at_checkpoint" in do:
            configurable["checkpoint_id"] = substitute(do["at_checkpoint"], self.known)
            configurable["checkpoint_ns"] = ""
        if "checkpoint_ns" in do:
            configurable["checkpoint_ns"] = substitute(do["checkpoint_ns"], self.known)
        if "checkpoint_map" in do:
            configurable["checkpoint_map"] = substitute(do["checkpoint_map"], self.known)
        return config | ({"configurable": configurable} if configurable else {})

    def _bind(self, symbol: str, real: str) -> None:
        self._narrow((bind(symbol, real, known) for known in self._possible), f"{symbol} is not {real}")

    def _input(self, given: Any) -> Any:
        given = substitute(given, self.known)
        return self._revive(given)

    def _revive(self, value: Any) -> Any:
        library = self.world.library
        if isinstance(value, dict):
            if "$command" in value:
                return library.Command(**{k: self._revive(v) for k, v in value["$command"].items()})
            if "$send" in value:
                return library.Send(value["$send"][0], self._revive(value["$send"][1]))
            return {k: self._revive(v) for k, v in value.items()}
        return [self._revive(v) for v in value] if isinstance(value, list) else value

    def _check(self, expected: Any, actual: Any, what: str) -> None:
        problem = f"{what}\n  expected {expected}\n  got      {actual}"
        self._narrow((match(expected, actual, known) for known in self._possible), problem)

    # Runs.

    def do_stream(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        events, error = self.run(do)
        self._check_run(do, expect, events, error)

    def run(
        self, do: dict[str, Any], cancel_at: tuple[int, int] | None = None
    ) -> tuple[list[Any], BaseException | None]:
        """The events of a run, and how it failed; cancel_at says after how many events and calls of nodes the caller
        leaves."""
        self.world.ran.clear()
        events: list[Any] = []
        options = {k: do[k] for k in ("subgraphs", "interrupt_before", "interrupt_after", "output_keys") if k in do}
        options |= {k: do[k] for k in ("durability", "version") if k in do}
        if "control" in do:
            self.world.control = options["control"] = self.world.library.RunControl()
            if do["control"].startswith("drained:"):
                options["control"].request_drain(do["control"].removeprefix("drained:"))
        mode, version = do.get("mode", "updates"), do.get("version", "v1")

        def take(item: Any) -> None:
            events.append(plain_data.event(item, mode, version))

        try:
            graph, given, config = self._graph(do), self._input(do["input"]), self._config(do)
            if cancel_at is not None:
                come, ran = cancel_at
                stream = _astream(graph, given, config, mode, options, take)
                asyncio.run(_cancel_when(stream, lambda: len(events) >= come and len(self.world.ran) >= ran))
            elif self._asynchronous:
                asyncio.run(_astream(graph, given, config, mode, options, take))
            else:
                for item in graph.stream(given, config, stream_mode=mode, **options):
                    take(item)
        except (Exception, asyncio.CancelledError) as error:
            return events, error
        return events, None

    def _check_run(self, do: dict[str, Any], expect: dict[str, Any], events: list[Any], error: Any) -> None:
        self._check_error(expect.get("error"), error, events)
        if "events" in expect:
            wanted, sizes = expect["events"], expect.get("groups")
            if expect.get("until") == "last values":
                wanted, sizes, events = _until_values(wanted), None, _until_values(events)
            elif expect.get("until") == "failure":
                events = events[: len(wanted)]
            shown = ["\n    ".join(map(str, some)) for some in (expect["events"], events)]
            self._narrow(
                (bound for known in self._possible for bound in match_groups(wanted, events, sizes, known)),
                f"events\n  expected\n    {shown[0]}\n  got\n    {shown[1]}",
            )
        self._check_ran(expect)

    def _check_error(self, expected: dict[str, Any] | None, error: BaseException | None, got: Any = None) -> None:
        if expected is None:
            if error is not None:
                raise Mismatch(f"raised {error!r} after {got}") from error
            return
        if error is None:
            raise Mismatch(f"did not raise {expected}, but gave {got}")
        kinds = {c.__name__ for c in type(error).__mro__} | {getattr(error, "type", "")}
        if expected["type"] not in kinds:
            raise Mismatch(f"raised {error!r} and not {expected['type']}")
        if "reason" in expected and getattr(error, "reason", "") != expected["reason"]:
            raise Mismatch(f"raised {error!r} with reason {getattr(error, 'reason', '')!r}, not {expected['reason']}")
        if expected.get("code", "") not in str(error):
            raise Mismatch(f"{error!r} does not say {expected['code']}")
        said = re.split("\nError code: |\nFor troubleshooting, ", str(error))[0]
        if "message" in expected and not re.fullmatch(re.escape(expected["message"]).replace("<s>", "[0-9.]+s"), said):
            raise Mismatch(f"the message of {error!r} is not {expected['message']!r}")

    def _check_ran(self, expect: dict[str, Any]) -> None:
        if "ran" not in expect:
            return
        ran = [name for _, name in self.world.ran]
        sizes = expect.get("ran_groups")
        if not match_groups(expect["ran"], ran, sizes or [len(ran)], {}):
            raise Mismatch(f"ran {ran} and not {expect['ran']}")

    def do_stream_cancelled(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        events, error = self.run(do, cancel_at=(len(expect["events"]), len(expect["ran"])))
        if not isinstance(error, asyncio.CancelledError):
            raise Mismatch(f"was not cancelled: {error!r}, {events}")
        self._check_run(do, {k: v for k, v in expect.items() if k != "error"}, events, None)

    def do_invoke(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        self.world.ran.clear()
        result, error = None, None
        try:
            result = self._graph(do).invoke(self._input(do["input"]), self._config(do))
        except Exception as raised:
            error = raised
        self._check_error(expect.get("error"), error, result)
        if "result" in expect:
            self._check(expect["result"], plain_data.plain(result), "result")
        self._check_ran(expect)

    # States.

    def do_get_state(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        try:
            state = self._graph(do).get_state(self._config(do), subgraphs=do.get("subgraphs", False))
        except Exception as error:
            self._check_error(expect.get("error"), error)
            return
        if "error" in expect:
            raise Mismatch(f"did not raise {expect['error']}")
        self._check(expect["snapshot"], plain_data.snapshot(state), "snapshot")

    def do_get_state_history(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        options = {k: do[k] for k in ("limit", "filter") if k in do}
        config = self._config(do)
        if "before" in do:
            options["before"] = {"configurable": {"checkpoint_id": substitute(do["before"], self.known)}}
        rows = [plain_data.snapshot(s) for s in self._graph(do).get_state_history(config, **options)]
        if len(rows) != len(expect["history"]):
            shown = "\n    ".join(map(str, rows))
            raise Mismatch(f"{len(rows)} checkpoints and not {len(expect['history'])}:\n    {shown}")
        for row, wanted in zip(rows, expect["history"], strict=True):
            self._check(wanted, row, "checkpoint")

    def do_count_checkpoints(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        graph, thread = self._graph(do), do["thread"]
        counts: Counter[str] = Counter()
        if self.world.library.root == "langgraph":
            stored = self.saver.list({"configurable": {"thread_id": thread}})
            counts.update(re.sub(":[^|]+", ":<task>", c.config["configurable"]["checkpoint_ns"]) for c in stored)
            self._check(expect["counts"], {n: counts[n] for n in expect["counts"]}, "number of checkpoints")
            return
        for namespace in expect["counts"]:
            plain_namespace = namespace.replace(":<task>", "")
            config = {"configurable": {"thread_id": thread, "checkpoint_ns": plain_namespace}}
            counts[namespace] = sum(1 for _ in graph.get_state_history(config))
        self._check(expect["counts"], dict(counts), "number of checkpoints")

    def do_update_state(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        def update(config: dict[str, Any]) -> Any:
            return self._graph(do).update_state(config, self._input(do["values"]), do.get("as_node"))

        self._update(do, expect, update)

    def do_bulk_update_state(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        def update(config: dict[str, Any]) -> Any:
            supersteps = [[self.world.library.StateUpdate(*u) for u in s] for s in do["supersteps"]]
            return self._graph(do).bulk_update_state(config, supersteps)

        self._update(do, expect, update)

    def _update(self, do: dict[str, Any], expect: dict[str, Any], update: Callable[[Any], Any]) -> None:
        try:
            config = update(self._config(do))
        except Exception as error:
            self._check_error(expect.get("error"), error)
            return
        if "error" in expect:
            raise Mismatch(f"did not raise {expect['error']}")
        if "new_checkpoint" in expect:
            self._check(expect["new_checkpoint"], config["configurable"]["checkpoint_id"], "new checkpoint")

    def do_progress(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        """What is kept of a superstep that is not over: by its tasks, of the
        calls beside them, and the answers that its tasks have been given."""
        graph, config = self._graph(do), self._config(do)
        state = graph.get_state(config)
        stored = graph.get_state({"configurable": {**config["configurable"], **state.config["configurable"]}})
        tasks = [
            {k: v for k, v in t.items() if k not in ("name", "state")} for t in plain_data.snapshot(state)["tasks"]
        ]
        actual = {
            "values": plain_data.plain(state.values),
            "stored": plain_data.plain(stored.values),
            "tasks": [t for t in tasks if len(t) > 1],
            "answers": self._answers(do, {t.id for t in state.tasks}),
        }
        self._check(expect, {k: v for k, v in actual.items() if k in expect}, "progress")

    def _answers(self, do: dict[str, Any], tasks: set[str]) -> list[Any]:
        if self.world.library.root == "langgraph":
            writes = self.saver.get_tuple(self._config(do)).pending_writes
            return [a for task, channel, given in writes if channel == "__resume__" and task in tasks for a in given]
        thread = f"{self.saver.prefix}{do['thread']}"
        stubs = self._graph(do).attach().server.stubs
        request = interrupt_service_pb2.ListInterruptsRequest(thread_id=thread, filter='state = "*"')
        asked = stubs.interrupts.ListInterrupts(request)
        given = [i for i in asked.interrupts if i.task_id in tasks and i.HasField("response")]
        return [codec.value_of(i.response) for i in sorted(given, key=lambda i: i.index)]

    def do_checkpoint(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        """The newest checkpoint without what came after it."""
        graph, config = self._graph(do), self._config(do)
        newest = graph.get_state(config).config["configurable"]
        state = graph.get_state({"configurable": {**config["configurable"], **newest}})
        metadata = {k: v for k, v in state.metadata.items() if k not in ("run_id", "thread_id")}
        self._check(expect, {"values": plain_data.plain(state.values), "metadata": metadata}, "checkpoint")

    def do_build(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        """A mistake in a graph, or what looks like one."""
        error = None
        try:
            MISTAKES[do["what"]](self.world.library, self.saver)
        except Exception as raised:
            error = raised
        self._check_error(expect.get("error"), error)

    def do_delete_thread(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        self.saver.delete_thread(do["thread"])

    # The world outside.

    def do_set_mem(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        for name, value in do["mem"].items():
            setattr(self.world.mem, name, value)

    def do_check_mem(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        time.sleep(do.get("after", 0))
        self._check(expect["mem"], {name: getattr(self.world.mem, name) for name in expect["mem"]}, "memory")

    def do_check_pauses(self, do: dict[str, Any], expect: dict[str, Any]) -> None:
        begun = [moment for moment, _ in self.world.ran]
        pauses = [after - before for before, after in itertools.pairwise(begun)]
        wanted = expect["pauses"]
        # A busy machine may pause for longer; how long at most is for internal/runtime to test.
        if len(pauses) != len(wanted) or any(p < w for p, w in zip(pauses, wanted, strict=True)):
            raise Mismatch(f"the pauses were {pauses} and not {wanted}")


def _until_values(events: list[Any]) -> list[Any]:
    """The states of the root graph that were shown before a failure."""
    shown = [e for e in events if e[-2] == "values" and (len(e) == 2 or not e[0])]
    return [e for e in shown if "__interrupt__" not in e[-1]]


async def _astream(
    graph: Any, given: Any, config: Any, mode: Any, options: dict[str, Any], take: Callable[[Any], None]
) -> None:
    async for item in graph.astream(given, config, stream_mode=mode, **options):
        take(item)


async def _cancel_when(stream: Coroutine[Any, Any, None], is_due: Callable[[], bool]) -> None:
    task = asyncio.create_task(stream)
    while not is_due() and not task.done():
        await asyncio.sleep(0.01)
    task.cancel()
    await task
