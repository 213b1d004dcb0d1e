"""Tells callback handlers of functions that a model calls. Tools of LangChain tell them themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphd.packages import imported_attribute
from graphd.prebuilt.tool import Tool
from graphd.runtime.callbacks import settle
from graphd.runtime.task import current_task


async def trace_tool(tool: Tool, call: Mapping[str, Any], answer: Callable[[], Awaitable[Any]]) -> Any:
    """What the tool answers. For the rest of its context, what it calls is part of its run."""
    task = current_task()
    manager: Any = task.config.get("callbacks") if task is not None and tool.is_function else None
    if task is None or not getattr(manager, "handlers", None):
        return await answer()
    arguments = dict(call.get("args") or {})
    manager = manager.copy()
    manager.add_metadata({"checkpoint_ns": task.config["configurable"]["checkpoint_ns"]} | manager.metadata)
    about = {"name": tool.name, "description": tool.description}
    run = await settle(manager.on_tool_start(about, str(arguments), inputs=arguments, tool_call_id=call["id"]))
    set_config = imported_attribute("langchain_core.runnables.config", "_set_config_context")
    set_config(task.config | {"callbacks": run.get_child()})
    try:
        result = await answer()
    except BaseException as error:
        await settle(run.on_tool_error(error))
        raise
    await settle(run.on_tool_end(result))
    return result
