"""Results of the SDK as the plain data that case files hold."""

from __future__ import annotations

import re
from typing import Any

from graphd import messages


def _is(value: Any, kind: str) -> bool:
    """Values of either library are told by the names of their classes."""
    return type(value).__name__ == kind


def plain(value: Any) -> Any:
    """Any value as JSON data."""
    if _is(value, "Interrupt"):
        shown = {"value": plain(value.value), "id": value.id}
        schema = getattr(value, "response_schema", None)
        return shown if schema is None else shown | {"response_schema": schema}
    if _is(value, "StateSnapshot"):
        return snapshot(value)
    if messages.is_message(value):
        return messages.to_dict(value)
    if _is(value, "Command"):
        fields = {"update": value.update, "resume": value.resume, "goto": value.goto, "graph": value.graph}
        return {"$command": {k: plain(v) for k, v in fields.items() if v not in (None, ())}}
    if _is(value, "Send"):
        return {"$send": [value.node, plain(value.arg)]}
    if isinstance(value, BaseException):
        said = re.split("\nFor troubleshooting|\nError code", str(value))[0]
        return {"$exception": repr(value).partition("(")[0], "message": said}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def event(value: Any, mode: Any, version: str) -> Any:
    """One item of a stream."""
    shown = plain(value)
    for part in shown if isinstance(shown, list) else [shown]:
        _shorten(part)
    return shown


def _shorten(part: Any) -> None:
    """Leaves of configs only the checkpoint, and of metadata what is compared."""
    if not isinstance(part, dict):
        return
    _shorten(part.get("payload"))
    _shorten(part.get("data"))
    for name in ("config", "parent_config"):
        if isinstance(part.get(name), dict):
            part[name] = {"cp": part[name]["configurable"]["checkpoint_id"]}
    for task in part.get("tasks") or ():
        if "error" in task:
            task["error"] = _error_kind(task["error"])
    if isinstance(part.get("metadata"), dict):
        part["metadata"].pop("run_id", None)
    if {"langgraph_checkpoint_ns", "langgraph_node"} <= part.keys():
        part.pop("langgraph_checkpoint_ns")
        part.pop("ls_integration", None)  # names the library


def _error_kind(error: Any) -> str:
    """The name of an error's class. LangGraph shows the repr of an error that was stored."""
    return str(error["$exception"] if isinstance(error, dict) else error).partition("(")[0]


def snapshot(state: Any) -> dict[str, Any]:
    """A snapshot, with ids in place of configs."""
    configurable = state.config["configurable"]
    shown: dict[str, Any] = {"values": plain(state.values), "next": list(state.next)}
    if state.metadata is not None:
        shown |= {"source": state.metadata["source"], "step": state.metadata["step"]}
        if state.metadata.get("parents"):
            shown["parents"] = state.metadata["parents"]
    parent = state.parent_config
    shown |= {
        "checkpoint": configurable.get("checkpoint_id") if state.metadata is not None else None,
        "parent": parent["configurable"]["checkpoint_id"] if parent else None,
        "tasks": [_task(t) for t in state.tasks],
        "interrupts": plain(state.interrupts),
    }
    if state.metadata is not None and configurable.get("checkpoint_ns"):
        shown["ns"] = configurable["checkpoint_ns"]
    return shown


def _task(task: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": task.id, "name": task.name}
    if task.path != ("__pregel_pull", task.name):
        shown["path"] = list(task.path)
    if task.error is not None:
        shown["error"] = task.error if isinstance(task.error, str) else repr(task.error)
    if task.interrupts:
        shown["interrupts"] = plain(task.interrupts)
    if _is(task.state, "StateSnapshot"):
        shown["state"] = snapshot(task.state)
    elif task.state is not None:
        shown["state"] = {"ns": task.state["configurable"]["checkpoint_ns"]}
    if task.result is not None:
        shown["result"] = plain(task.result)
    return shown
