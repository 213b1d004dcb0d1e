"""Keeps what differs on purpose out of the comparison: tests/conformance/differences.py has the decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.conformance.differences import DIFFERENCES
from tests.conformance.matching import ANYTHING

_SHORT_LIVED = ("any", "ephemeral", "topic")


class OnPurpose:
    """What of one case may differ."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._main = case["graphs"][-1]
        self._children = case["graphs"][:-1]
        self._code = str([g["nodes"] for g in case["graphs"]] + [g.get("node_options") for g in case["graphs"]])
        self._loose: set[str] = set()  # threads with updates that LangGraph loses
        self._exits: set[str] = set()  # threads with such calls
        self._folded: set[str] = set()  # threads with calls that show as one checkpoint
        self._sent: set[str] = set()  # checkpoints to which a command has added tasks
        self._lost: set[str] = set()  # checkpoints whose commands LangGraph does not store
        self._inputs: Counter[str] = Counter()  # how many inputs a thread has had
        self.met: set[str] = set()

    def _is_met(self, name: str, condition: bool) -> bool:
        """Whether a difference applies; remembers it by its name."""
        assert name in DIFFERENCES
        if condition:
            self.met.add(name)
        return condition

    # What a caller does.

    def replacement_of(
        self, situation: str, turn: dict[str, Any], state: Any, checkpoint: str, waiting: int, *, kept_ended: bool
    ) -> str:
        """What to do in place of an act whose effect differs. With kept_ended a graph that persists has run before."""
        act = str(turn[situation])
        if act not in ("input", "child") and self._is_met("updates of finished threads", turn["thread"] in self._loose):
            return "input"
        failed = any(task.error is not None for task in state.tasks)
        adds = act in ("goto", "send", "command") and "error_handler" in str(self._main)
        if situation == "asked" and act != "input" and self._is_met("work of error handlers", failed or adds):
            return "input"
        due = checkpoint in self._sent
        if (act in ("update", "fork") or act.startswith("answer")) and self._is_met("a goto is due", due):
            return "input"
        partial = failed or any(task.result is not None for task in state.tasks)
        if act in ("update", "fork") and self._is_met("finished siblings survive updates", partial):
            return "input"
        goes_on_otherwise = act in ("update", "fork", "replay", "command", "goto", "send", "resume")
        goes_on_otherwise |= act.endswith("to the past")
        if goes_on_otherwise and self._is_met("kept subgraphs get their input", self._keeps_children()):
            return "go on" if act == "resume" and self._inputs[turn["thread"]] < 2 and not kept_ended else "input"
        begun_before = self._keeps_children() and self._inputs[turn["thread"]] > 1
        goes_on = situation in ("failed", "paused") and act == "go on"
        runs_kept = (goes_on or act.startswith("answer")) and kept_ended
        if self._is_met("kept subgraphs get their input", runs_kept or (goes_on and begun_before)):
            return "input"
        passes = act in ("command", "goto", "send") or (situation, act) == ("failed", "go on")
        passes |= act in ("update", "fork") and turn["as_node"] == "__input__"
        if passes and self._is_met("commands stop at breakpoints", self._stops(turn)):
            return "input"
        if act == "resume" and self._is_met("no stray answers", "interrupt(" in self._code):
            return "go on"
        reruns = act in ("go on", "command", "goto", "send", "resume") and situation in ("asked", "paused")
        if reruns or act.startswith("answer"):
            return self._rerun_of_unstored(act, turn, waiting)
        return act

    def _rerun_of_unstored(self, act: str, turn: dict[str, Any], waiting: int) -> str:
        """What to do in place of an act that makes graphs run again that store nothing: from their beginning in
        LangGraph, and the unfinished tasks alone in graphd."""
        if not self._is_met("questions of graphs that store nothing", self._asks_unstored()):
            return act
        asking = str([g["nodes"] for g in self._children]).count("interrupt(")
        stops = any("interrupt_" in key for g in self._children for key in g["compile"])
        shows = stops or "subgraphs" in turn["options"]
        return "answer by value" if act.startswith("answer") and waiting == asking == 1 and not shows else "input"

    def _keeps_children(self) -> bool:
        return any(g["compile"]["checkpointer"] == "persist" for g in self._children)

    def ends_comparison(self, error: BaseException) -> bool:
        """Whether LangGraph goes on otherwise after a failure, or can't read the thread any more."""
        refused = type(error).__name__ == "InvalidUpdateError"
        handler = repr(error) == "Other('handler')"
        in_edge = isinstance(error, (ZeroDivisionError, IndexError)) or repr(error) in (
            "KeyError('x')",
            "KeyError('n')",
        )
        return (
            self._is_met("a refused superstep can be read", refused)
            or self._is_met("failed edges are decided again", in_edge)
            or self._is_met("work of error handlers", handler)
        )

    def fails_at_pause(self, error: BaseException, events: list[Any]) -> bool:
        """Whether LangGraph refuses the writes of a superstep that is not over, because it shows its state."""
        asked = any("__interrupt__" in data for _, _, data in events if isinstance(data, dict))
        refused = type(error).__name__ == "InvalidUpdateError"
        return self._is_met("a refused superstep can be read", refused and asked)

    @staticmethod
    def forget_questions(shown: dict[str, Any], answered: set[str]) -> None:
        """Takes answered questions out of a snapshot that lists them."""
        for place in OnPurpose._places(shown):
            if isinstance(place.get("interrupts"), list):
                place["interrupts"] = [one for one in place["interrupts"] if one["id"] not in answered]
            if "name" in place and not place.get("interrupts", True):
                del place["interrupts"]

    @staticmethod
    def _places(shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A snapshot, its tasks, and the snapshots of the graphs inside of them."""
        yield shown
        for task in shown["tasks"] if isinstance(shown["tasks"], list) else ():
            yield task
            if isinstance(task.get("state"), dict) and "tasks" in task["state"]:
                yield from OnPurpose._places(task["state"])

    def _stops(self, turn: dict[str, Any]) -> bool:
        return any("interrupt_" in key for key in (*self._main["compile"], *turn["options"]))

    def _asks_unstored(self) -> bool:
        unstored = [g for g in self._children if g["compile"]["checkpointer"] == "disabled"]
        return bool(unstored) and any("interrupt" in str(g) for g in self._children)

    def reads_subgraphs(self) -> bool:
        """Whether the states of graphs inside can be compared."""
        return not self._is_met("states of called graphs", "call_sub(" in self._code)

    def writer_of(self, as_node: str | None) -> str | None:
        """The node that an update is attributed to."""
        joins = any(isinstance(source, list) for source, _ in self._main["edges"])
        if self._is_met("the node that ran last", as_node is None and joins):
            return str(next(iter(self._main["nodes"])))
        return as_node

    def ignores_durability(self) -> bool:
        """Whether no durability is given: with "sync" LangGraph looks for checkpoints of graphs that have none,
        and with "exit" it stores untracked keys."""
        unstored = any(g["compile"]["checkpointer"] == "disabled" for g in self._children)
        return self._is_met("stored before shown", unstored or "untracked" in self._main["state"].values())

    def record_end(self, options: dict[str, Any], thread: str, situation: str, end: str) -> None:
        """Takes note of a call whose checkpoints LangGraph does not store one by one."""
        if options.get("durability") == "exit" and (end != "ended" or situation in ("asked", "paused", "failed")):
            self._folded.add(thread)

    def has_history(self, thread: str) -> bool:
        """Whether the checkpoints of a thread can be compared one by one."""
        hides_handled = thread in self._exits and "error_handler" in self._code + str(self._main.get("node_defaults"))
        return not self._is_met("stored before shown", thread in self._folded or hides_handled)

    def has_child_history(self, thread: str) -> bool:
        """Whether the checkpoints of a graph inside can be compared one by one."""
        return not self._is_met("stored before shown", thread in self._exits)

    def replays(self, state: Any, options: dict[str, Any]) -> bool:
        """Whether a checkpoint can be replayed."""
        next_nodes, copied = state.next, state.metadata["source"] in ("update", "fork")
        chosen = "output_keys" in options or "output_schema" in self._main
        return not (
            self._is_met("a replay of the end", not next_nodes)
            or self._is_met("order of due tasks", copied and len(set(next_nodes)) > 1)
            or self._is_met("a replay of an input", chosen and next_nodes == ("__start__",))
        )

    def takes_command(self, checkpoint: str, due: set[str]) -> bool:
        """Whether a command can be given at an old checkpoint, after which some nodes are due."""
        return not (
            self._is_met("stored before shown", checkpoint in self._lost)
            or self._is_met("order of due tasks", len(due) > 1)
        )

    def record_command(self, given: Any, checkpoint: str, thread: str, options: dict[str, Any], *, ended: bool) -> None:
        """Takes note of a command that adds tasks to a checkpoint, or an update that no task takes up."""
        self._loose.discard(thread)
        if ended and isinstance(given, dict) and "update" in given.get("$command", {}):
            self._loose.add(thread)
        self._inputs[thread] += isinstance(given, dict) and "$command" not in given
        if isinstance(given, dict) and "$command" in given and options.get("durability") == "exit":
            self._lost.add(checkpoint)
        if isinstance(given, dict) and "goto" in given.get("$command", {}):
            self._sent.add(checkpoint)

    # What LangGraph shows.

    def hidden_updates(self, events: list[Any]) -> set[int]:
        """The places of the empty updates of nodes that have failed after an answer, and are handled."""
        failed = {
            (namespace, data["name"])
            for namespace, mode, data in events
            if mode == "tasks" and data.get("error") is not None
        }
        found = {
            place
            for place, (namespace, mode, data) in enumerate(events)
            if mode == "updates" and any(v is None and (namespace, node) in failed for node, v in data.items())
        }
        self._is_met("updates of failed nodes", bool(found))
        return found

    def adapt_events(self, events: list[Any], options: dict[str, Any], thread: str, answered: set[str]) -> list[Any]:
        """The events of a call, with anything in place of what may differ; some questions were answered before."""
        if self._is_met("no stray answers", bool(answered)):
            events = [_replace_questions(e, answered) for e in events]
        if options.get("durability") == "exit":
            self._exits.add(thread)
        if self._is_met("stored before shown", thread in self._exits):
            events = [_replace_field(_replace_field(e, "parent_config", ANYTHING), "tasks", ANYTHING) for e in events]
        unstored = any(g["compile"]["checkpointer"] == "disabled" for g in self._children)
        if self._is_met("questions of graphs that store nothing", unstored):
            events = [_replace_task_ids(e) for e in events]
        return [self._adapt_namespaces(e) for e in events]

    def adapt_snapshot(self, shown: dict[str, Any], thread: str, *, live: bool) -> dict[str, Any]:
        """A snapshot, with anything in place of what may differ."""
        checkpoint = str(shown["checkpoint"])
        if not self.has_history(thread):
            shown = _replace_field(_replace_field(shown, "parent", ANYTHING), "state", ANYTHING)
        if self._is_met("a goto is due", checkpoint in self._sent):
            shown = shown | dict.fromkeys(("values", "next", "tasks", "interrupts"), ANYTHING)
        elif shown.get("tasks") == ANYTHING:
            return dict(self._adapt_namespaces(shown))
        elif live:
            shown = self._adapt_unfinished(shown, self._main)
        elif self._hides_questions(shown["tasks"]):
            tasks = [task | {"interrupts": ANYTHING} for task in shown["tasks"]]
            shown = shown | {"tasks": tasks, "interrupts": ANYTHING}
        return dict(self._adapt_namespaces(shown))

    def _hides_questions(self, tasks: list[dict[str, Any]]) -> bool:
        return self._is_met("questions of called graphs in history", self._calls_kept_children()) or self._is_met(
            "questions of subgraphs in history", self._asks_in_turns(tasks)
        )

    def _calls_kept_children(self) -> bool:
        return self._keeps_children() and ("call_sub(" in self._code or len(self._children) > 1)

    def _asks_in_turns(self, tasks: list[dict[str, Any]]) -> bool:
        """Whether tasks have asked in a graph where one node may ask again when another has its answer."""
        asking = [code for g in self._children for code in g["nodes"].values() if "interrupt(" in str(code)]
        again = any("y=interrupt" in code for code in asking) or len(self._children) > 1
        several = again and (len(asking) > 1 or "Send(" in self._code)
        return several and any("interrupts" in task for task in tasks)

    def _adapt_unfinished(self, shown: dict[str, Any], graph: dict[str, Any]) -> dict[str, Any]:
        """A snapshot of a graph and of those inside of it, whose supersteps may be unfinished."""
        if self._is_met("work of error handlers", any("error" in task for task in shown["tasks"])):
            return shown | dict.fromkeys(("values", "next", "tasks"), ANYTHING)
        tasks = []
        for task in shown["tasks"]:
            inner = task.get("state")
            if isinstance(inner, dict) and "values" in inner:
                if self._is_met("questions of kept subgraphs", self._keeps_children() and "interrupts" not in task):
                    tasks.append(task | {"state": ANYTHING})
                    continue
                task = task | {"state": self._adapt_unfinished(inner, self._child_of(graph, task["name"]))}
            tasks.append(task)
        values = self._adapt_values(shown, graph) if any("result" in task for task in tasks) else shown["values"]
        return shown | {"tasks": tasks, "values": values}

    def _child_of(self, graph: dict[str, Any], node: str) -> dict[str, Any]:
        name = str(graph["nodes"].get(node, "")).removeprefix("<subgraph ").removesuffix(">")
        return next((child for child in self._children if child["name"] == name), graph)

    def _adapt_values(self, shown: dict[str, Any], graph: dict[str, Any]) -> Any:
        written = {key for task in shown["tasks"] for key in task.get("result") or {}}
        short = {k for k, kind in graph["state"].items() if kind in _SHORT_LIVED and k in written}
        if not self._is_met("short-lived keys of finished siblings", bool(short)):
            return shown["values"]
        return shown["values"] | dict.fromkeys(short, ANYTHING)

    def _adapt_namespaces(self, value: Any) -> Any:
        if not self._is_met("namespaces of kept subgraphs", self._keeps_children()):
            return value
        return _replace_namespaces(value)


def _replace_field(value: Any, name: str, new: Any) -> Any:
    if isinstance(value, dict):
        return {k: new if k == name else _replace_field(v, name, new) for k, v in value.items()}
    return [_replace_field(v, name, new) for v in value] if isinstance(value, list) else value


def _replace_namespaces(value: Any) -> Any:
    """The value, with anything as the place of each state that is not shown."""
    if isinstance(value, list):
        return [_replace_namespaces(v) for v in value]
    if not isinstance(value, dict):
        return value
    hidden = {k for k, v in value.items() if k == "state" and isinstance(v, dict) and "values" not in v}
    hidden |= {"parents"} & value.keys() if "ns" in value else set()
    return {k: ANYTHING if k in hidden else _replace_namespaces(v) for k, v in value.items()}


def _replace_task_ids(value: Any) -> Any:
    """The value, with anything as the ids of tasks: those of a graph that stores nothing are new in every call."""
    if isinstance(value, list):
        return [_replace_task_ids(v) for v in value]
    if not isinstance(value, dict):
        return value
    replaced = {k: _replace_task_ids(v) for k, v in value.items()}
    is_named = {"id", "name"} <= value.keys() or value.keys() == {"id", "value"}
    return replaced | {"id": ANYTHING} if is_named else replaced


def _replace_questions(value: Any, answered: set[str]) -> Any:
    """The value, with anything as the questions of a task that waits for something else. LangGraph lists old ones."""
    if isinstance(value, list):
        return [_replace_questions(v, answered) for v in value]
    if not isinstance(value, dict):
        return value
    told = value.get("interrupts")
    if "name" in value and isinstance(told, list) and any(one["id"] in answered for one in told):
        return value | {"interrupts": ANYTHING}
    return {k: _replace_questions(v, answered) for k, v in value.items()}
