"""Programs with tasks, questions, and values that are kept."""

from __future__ import annotations

from typing import Any

from .kit import Boom, Kit, program

ALL = ["updates", "values", "custom", "tasks"]


@program
def tasks_one_after_the_other(kit: Kit) -> None:
    @kit.task
    def double(x: int, *, times: int = 1) -> int:
        kit.lib.get_stream_writer()({"in": x})
        return x * 2 * times

    @kit.entrypoint()
    def flow(x: int) -> list[int]:
        first = double(x).result()
        return [first, double(first, times=3).result()]

    at = kit.thread()
    kit.stream(flow, 3, at, ALL)
    kit.state(flow, at)
    kit.tell(flow.invoke(4, at), list(flow.stream(5, kit.thread())))
    kit.tell([(s.values, s.next, s.metadata["step"], s.metadata["source"]) for s in flow.get_state_history(at)])
    kit.tell(flow.get_state(kit.thread()).values)
    kit.attempt(lambda: flow.invoke(None, kit.thread()))


@program
def tasks_side_by_side(kit: Kit) -> None:
    @kit.task
    def square(x: int) -> int:
        return x * x

    @kit.entrypoint()
    def flow(most: int) -> int:
        return sum(f.result() for f in [square(n) for n in range(most)])

    kit.stream(flow, 6, kit.thread(), ALL, unordered=True)


@program
def questions_in_entrypoint_and_task(kit: Kit) -> None:
    ran: list[str] = []

    @kit.task
    def double(x: int) -> int:
        ran.append("double")
        return x * 2

    @kit.task
    def ask(question: str) -> Any:
        ran.append("ask")
        return kit.lib.interrupt(question)

    @kit.entrypoint()
    def flow(x: int) -> dict[str, Any]:
        doubled = double(x).result()
        outer = kit.lib.interrupt({"doubled": doubled})
        return {"outer": outer, "inner": ask("inner").result()}

    at = kit.thread()
    kit.stream(flow, 3, at, ALL)
    kit.state(flow, at)
    kit.stream(flow, kit.lib.Command(resume="one"), at, ALL)
    kit.state(flow, at)
    kit.stream(flow, kit.lib.Command(resume="two"), at, ALL)
    kit.state(flow, at)
    kit.tell(ran)
    at = kit.thread()
    kit.tell(flow.invoke(3, at), flow.invoke(kit.lib.Command(resume=1), at))
    kit.tell(flow.invoke(kit.lib.Command(resume=2), at))


@program
def questions_side_by_side(kit: Kit) -> None:
    ran: list[str] = []

    @kit.task
    def ask(question: str) -> Any:
        return [question, kit.lib.interrupt(question)]

    @kit.task
    def work(x: int) -> int:
        ran.append("work")
        return x

    @kit.entrypoint()
    def flow(x: int) -> list[Any]:
        futures = [ask("p"), work(x), ask("q")]
        return [f.result() for f in futures]

    at = kit.thread()
    flow.invoke(1, at)
    asked = {i.value: i.id for i in flow.get_state(at).tasks[0].interrupts}
    kit.attempt(lambda: flow.invoke(kit.lib.Command(resume="to which?"), at))
    while set(asked) != {"p", "q"}:  # LangGraph shows one after the other
        flow.invoke(kit.lib.Command(resume={i: f"answer {q}" for q, i in asked.items()}), at)
        asked |= {i.value: i.id for i in flow.get_state(at).tasks[0].interrupts}
    kit.tell(flow.invoke(kit.lib.Command(resume={i: f"answer {q}" for q, i in asked.items()}), at), ran)


@program
def asks_until_the_answer_is_valid(kit: Kit) -> None:
    @kit.task
    def check(answer: Any) -> bool:
        return isinstance(answer, int)

    @kit.entrypoint()
    def flow(question: str) -> int:
        while not check(answer := kit.lib.interrupt(question)).result():
            question = f"{answer!r} is no number"
        return int(answer)

    at = kit.thread()
    kit.stream(flow, "age?", at)
    kit.stream(flow, kit.lib.Command(resume="old"), at)
    kit.stream(flow, kit.lib.Command(resume="older"), at)
    kit.stream(flow, kit.lib.Command(resume=30), at, ALL[:1])


@program
def wrong_programs(kit: Kit) -> None:
    @kit.task
    def work(x: int) -> int:
        return x

    def generator(x: int) -> Any:
        yield x

    kit.attempt(lambda: work(1))
    kit.attempt(lambda: kit.entrypoint(saver=None)(generator))
    kit.attempt(lambda: kit.entrypoint(saver=None)(lambda: 1))
    kit.attempt(lambda: kit.task(timeout=1)(lambda x: x))
    kit.attempt(lambda: kit.task(timeout=-1)(lambda x: x))
    kit.attempt(lambda: kit.final[int])

    @kit.entrypoint(saver=None)
    def asks(x: int) -> Any:
        raise Boom("not now")

    kit.attempt(lambda: asks.invoke(1))


@program
def one_superstep_is_enough(kit: Kit) -> None:
    @kit.entrypoint()
    def flow(x: int) -> int:
        return x

    kit.tell(flow.invoke(1, kit.thread() | {"recursion_limit": 1}))
    kit.attempt(lambda: flow.invoke(1, kit.thread() | {"recursion_limit": 0}))


@program
def breakpoints_and_time_travel(kit: Kit) -> None:
    ran: list[int] = []

    @kit.task
    def double(x: int) -> int:
        ran.append(x)
        return x * 2

    @kit.entrypoint()
    def flow(x: int, *, previous: Any = None) -> Any:
        return [double(x).result(), previous, kit.lib.interrupt("more?")]

    at = kit.thread()
    kit.tell(flow.invoke(1, at, interrupt_before=["flow"]), flow.get_state(at).next, ran)
    flow.invoke(None, at)
    kit.tell(flow.invoke(kit.lib.Command(resume="a"), at), ran)
    before = next(s for s in flow.get_state_history(at) if s.next == ("flow",))
    kit.tell([i.value for i in flow.invoke(None, before.config)["__interrupt__"]])
    kit.tell(flow.invoke(kit.lib.Command(resume="b"), at), ran)
    kit.tell([flow.invoke(value, kit.thread()) for value in (0, [], "")])


__all__ = ["ALL"]
