"""Programs that keep values from one run to the next."""

from __future__ import annotations

from typing import Any

from .kit import Kit, program


@program
def previous_and_final(kit: Kit) -> None:
    @kit.entrypoint()
    def plain(x: int, *, previous: Any = None) -> list[Any]:
        return [*(previous or []), x]

    @kit.entrypoint()
    def kept(x: int, *, previous: Any = None) -> Any:
        runtime = kit.lib.get_runtime()
        assert runtime.previous == previous
        return kit.final(value=previous, save=(previous or 0) + x)

    @kit.entrypoint(saver=None)
    def forgetful(x: int, *, previous: Any = None) -> Any:
        return [x, previous]

    at = kit.thread()
    kit.tell([plain.invoke(n, at) for n in range(3)], plain.get_state(at).values)
    at = kit.thread()
    kit.tell([kept.invoke(n, at) for n in (1, 2, 3)], kept.get_state(at).values)
    kit.stream(kept, 5, at, ["updates", "values", "tasks"])
    kit.tell(kept.invoke(1, kit.thread()), forgetful.invoke(1), forgetful.invoke(2))


@program
def a_question_keeps_what_was_kept(kit: Kit) -> None:
    @kit.entrypoint()
    def flow(x: int, *, previous: Any = None) -> Any:
        if x > 1:
            kit.lib.interrupt(f"really {x}?")
        return {"sum": (previous or {"sum": 0})["sum"] + x}

    at = kit.thread()
    kit.tell(flow.invoke(1, at), flow.invoke(2, at), flow.get_state(at).values)
    kit.tell(flow.invoke(kit.lib.Command(resume="yes"), at), flow.invoke(1, at))


@program
def edits_of_what_was_kept(kit: Kit) -> None:
    @kit.entrypoint()
    def flow(x: int, *, previous: Any = None) -> Any:
        return [x, previous]

    at = kit.thread()
    flow.invoke(1, at)
    flow.update_state(at, "edited")
    kit.state(flow, at)
    kit.tell(flow.invoke(2, at))


@program
def messages_and_typed_values(kit: Kit) -> None:
    human, ai = kit.messages.HumanMessage, kit.messages.AIMessage

    @kit.task
    def answer(said):  # type: ignore[no-untyped-def]
        return ai(f"{len(said)} messages, the last: {said[-1].content}", id=f"a{len(said)}")

    @kit.entrypoint()
    def chat(said, *, previous=None):  # type: ignore[no-untyped-def]
        said = [*(previous or []), *said]
        reply = answer(said).result()
        more = kit.lib.interrupt({"reply": reply.content})
        second = answer([*said, reply, human(more, id="h2")]).result()
        return kit.final(value=second.content, save=[*said, reply, second])

    at = kit.thread()
    kit.stream(chat, [human("hi", id="h1")], at, ["updates", "messages"])
    kit.tell(chat.invoke(kit.lib.Command(resume="more?"), at))
    chat.invoke([human("again", id="h3")], at)
    kit.tell(chat.invoke(kit.lib.Command(resume="enough"), at))


@program
def what_an_inner_entrypoint_keeps(kit: Kit) -> None:
    @kit.entrypoint(saver=True)
    def counting(x: int, *, previous: Any = None) -> int:
        return (previous or 0) + x

    @kit.entrypoint(saver=None)
    def forgetful(x: int, *, previous: Any = None) -> int:
        return (previous or 0) + x

    @kit.entrypoint()
    def flow(x: int) -> Any:
        return [counting.invoke(x), forgetful.invoke(x)]

    at = kit.thread()
    kit.tell([flow.invoke(n, at) for n in (1, 2, 3)])
