"""Programs that look at their run, from inside and from outside."""

from __future__ import annotations

import importlib
from typing import Any

from .kit import Kit, program


@program
def what_code_is_told(kit: Kit) -> None:
    @kit.task
    def look(x: int) -> dict[str, Any]:
        config, runtime = kit.lib.get_config(), kit.lib.get_runtime()
        kit.lib.get_stream_writer()("from the task")
        about = config["metadata"]
        levels = about["langgraph_checkpoint_ns"].split("|")
        return {
            "node": about["langgraph_node"],
            "triggers": about["langgraph_triggers"],
            "levels": [level.split(":")[0] for level in levels],
            "thread": config["configurable"]["thread_id"],
            "mine": config["configurable"]["mine"],
            "context": runtime.context,
            "same": runtime.execution_info.task_id == levels[-1].split(":")[1],
            "attempt": runtime.execution_info.node_attempt,
        }

    @kit.entrypoint(context_schema=dict)
    def flow(x, config, runtime, previous, writer, store):  # type: ignore[no-untyped-def]
        writer("from the entrypoint")
        about = config["metadata"]
        mine = [about["langgraph_node"], runtime.context, runtime.previous, previous, store]
        return [mine, look(x).result()]

    at = kit.thread()
    at["configurable"]["mine"] = "yes"
    for mode, item in flow.stream(1, at, context={"who": "ann"}, stream_mode=["custom", "updates"]):
        kit.tell([mode, item])


@program
def tokens_of_models_in_tasks(kit: Kit) -> None:
    """Models of LangChain, called in tasks, stream what they say."""
    models = importlib.import_module("langchain_core.language_models.fake_chat_models")
    ai = importlib.import_module("langchain_core.messages").AIMessage
    model = models.GenericFakeChatModel(messages=iter([ai("one two", id="m1"), ai("three", id="m2")]))

    @kit.task
    def call_model(text: str) -> Any:
        return model.invoke(text)

    @kit.entrypoint()
    def flow(text: str) -> Any:
        first = call_model(text).result()
        return [first.content, kit.lib.interrupt("more?"), call_model(first.content).result().content]

    at = kit.thread()
    for given in ("hi", kit.lib.Command(resume="yes")):
        for piece, about in flow.stream(given, at, stream_mode="messages"):
            kit.tell([piece.content, piece.id, about["langgraph_node"], about["thread_id"]])
    kit.tell(flow.get_state(at).values)


@program
def the_second_form_of_streams(kit: Kit) -> None:
    @kit.task
    def double(x: int) -> int:
        return x * 2

    @kit.entrypoint()
    def flow(x: int) -> Any:
        return [double(x).result(), kit.lib.interrupt("q")]

    at = kit.thread()
    kit.stream(flow, 1, at, ["updates", "values"], version="v2")
    kit.stream(flow, kit.lib.Command(resume=1), at, ["updates", "values"], version="v2")
    asked = flow.invoke(1, kit.thread(), version="v2")
    kit.tell(asked.value, [i.value for i in asked.interrupts])


@program
def debug_streams_and_drawings(kit: Kit) -> None:
    @kit.task
    def double(x: int) -> int:
        return x * 2

    @kit.entrypoint()
    def flow(x: int) -> Any:
        return [double(x).result(), kit.lib.interrupt("q")]

    at = kit.thread()
    for given in (1, kit.lib.Command(resume=1)):
        for item in flow.stream(given, at, stream_mode="debug"):
            if item["type"] in ("task", "task_result") and item["payload"]["name"] == "double":
                kit.tell([item["type"], item["payload"]])
    kit.tell(sorted(flow.get_graph().nodes), [(e.source, e.target) for e in flow.get_graph().edges])


@program
def items_before_a_question(kit: Kit) -> None:
    @kit.task
    def ask(question: str) -> Any:
        kit.lib.get_stream_writer()(f"{question} is asked")
        answer = kit.lib.interrupt(question)
        kit.lib.get_stream_writer()(f"{question} has its answer")
        return answer

    @kit.entrypoint()
    def flow(question: str) -> Any:
        kit.lib.get_stream_writer()("begins")
        return ask(question).result()

    at = kit.thread()
    kit.stream(flow, "a", at, ["custom", "updates"])
    kit.stream(flow, kit.lib.Command(resume=1), at, ["custom", "updates"])
