"""What programs use of a library, and what they tell of it: LangGraph's and graphd's can be compared."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

from ..conformance import plain_data
from ..conformance.library import Library

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\b\d{12}-[0-9a-f]{8}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.+]+")
_HIDDEN = {"response_schema", "ls_integration", "langgraph_path", "langgraph_step"}
_CAUGHT = ("EmptyInputError", "InvalidUpdateError", "NodeTimeoutError", "RuntimeError", "TypeError", "ValueError")
_names = itertools.count(1)

Program = Callable[["Kit"], None]
PROGRAMS: dict[str, Program] = {}


def program(run: Program) -> Program:
    """A program that both libraries run."""
    PROGRAMS[run.__name__] = run
    return run


class Boom(Exception):
    """A failure that only the programs know."""


class Kit:
    """One library, and what a program tells while it uses it."""

    def __init__(self, root: str, make_saver: Callable[[], Any]) -> None:
        self.lib, self.saver, self.root = Library(root), make_saver, root
        self.told: list[Any] = []
        self._threads = itertools.count(1)
        func = importlib.import_module(f"{root}.func")
        self.task, self.final = func.task, func.entrypoint.final
        self._entrypoint = func.entrypoint
        self.messages = self.lib.messages
        self.store = importlib.import_module(f"{root}.store.memory").InMemoryStore
        self.stores = importlib.import_module(f"{root}.store.base")
        self.cache = importlib.import_module(f"{root}.cache.memory").InMemoryCache

    def entrypoint(self, *, saver: Any = "new", name: str = "", **options: Any) -> Callable[[Any], Any]:
        """The decorator; threads are kept unless ``saver`` is None."""
        if saver == "new":
            saver = self.saver()
        if self.root == "graphd":
            options["name"] = name or f"functional-{next(_names)}"
        return self._entrypoint(saver, **options)  # type: ignore[no-any-return]

    def compile(self, builder: Any, **options: Any) -> Any:
        """A graph with threads of its own."""
        named = {"name": f"functional-{next(_names)}"} if self.root == "graphd" else {}
        return builder.compile(self.saver(), **named, **options)

    def thread(self) -> dict[str, Any]:
        """The config of a new thread."""
        return {"configurable": {"thread_id": f"t{next(self._threads)}"}}

    def tell(self, *values: Any) -> None:
        """Tells values."""
        self.told.extend(_show_value(v) for v in values)

    def attempt(self, call: Callable[[], Any]) -> Any:
        """Tells what a call returns or raises."""
        try:
            result = call()
        except Exception as error:
            self.tell({"raised": _kind_of(error)})
            return None
        self.tell(result)
        return result

    def stream(self, graph: Any, given: Any, at: Any, modes: Any = "updates", **options: Any) -> None:
        """Tells the items of a stream, and what it raises."""
        unordered = options.pop("unordered", False)
        shown: list[Any] = []
        try:
            for item in graph.stream(given, at, stream_mode=modes, **options):
                shown.append(_show_item(item, modes))
        except Exception as error:
            shown.append({"raised": _kind_of(error)})
        self.told.append(_order_items(shown, unordered))

    def astream(self, graph: Any, given: Any, at: Any, modes: Any = "updates", **options: Any) -> None:
        """Like stream, in a loop."""

        async def collect() -> list[Any]:
            return [item async for item in graph.astream(given, at, stream_mode=modes)]

        unordered = options.pop("unordered", False)
        self.told.append(_order_items([_show_item(item, modes) for item in asyncio.run(collect())], unordered))

    def state(self, graph: Any, at: Any) -> Any:
        """Tells the state of a thread."""
        state = graph.get_state(at)
        self.tell({"values": state.values, "next": state.next, "tasks": [_show_task(t) for t in state.tasks]})
        return state

    def report(self) -> Any:
        """All that was told, as JSON with ids by number and without times."""
        text = _TIME.sub("<time>", json.dumps(self.told, sort_keys=True))
        numbers: dict[str, str] = {}
        return json.loads(_ID.sub(lambda m: numbers.setdefault(m.group(), f"<id {len(numbers)}>"), text))


def _show_task(task: Any) -> Any:
    return {"name": task.name, "asked": [i.value for i in task.interrupts], "failed": task.error is not None}


def _show_value(value: Any) -> Any:
    """A value as JSON; errors as what they say of themselves."""
    if isinstance(value, BaseException):
        return repr(value)
    if isinstance(value, dict):
        return {k: _show_value(v) for k, v in value.items() if k not in _HIDDEN}
    if isinstance(value, (list, tuple)) and type(value).__name__ != "StateSnapshot":
        return [_show_value(v) for v in value]
    return plain_data.plain(value)


def _show_item(item: Any, modes: Any) -> Any:
    return plain_data.event(_show_value(item), modes, "v1")


def _order_items(shown: list[Any], unordered: bool) -> list[Any]:
    """The items; a task that asks and its question have no order."""
    if unordered:
        return sorted(shown, key=_sort_key)
    for at in range(1, len(shown)):
        if "__interrupt__" in json.dumps(shown[at]) and '"interrupts": [{' in json.dumps(shown[at - 1]):
            shown[at - 1], shown[at] = shown[at], shown[at - 1]
    return shown


def _sort_key(item: Any) -> str:
    return _ID.sub("", json.dumps(item, sort_keys=True))


def _kind_of(error: BaseException) -> str:
    """The class of an error that programs catch; libraries raise their own below it."""
    names = [c.__name__ for c in type(error).__mro__]
    return next((n for n in _CAUGHT if n in names), names[0])


__all__ = ["PROGRAMS", "Boom", "Kit", "program"]
