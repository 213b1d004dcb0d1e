"""Programs that keep values in stores."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from .kit import Kit, program

WORDS = ("cat", "dog", "tax")


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Counts words."""
    return [[float(text.count(word)) for word in WORDS] for text in texts]


def shown(item: Any) -> Any:
    """An item without its times."""
    if item is None:
        return None
    score = getattr(item, "score", None)
    about = [list(item.namespace), item.key, item.value]
    return about if score is None else [*about, round(score, 6)]


@program
def items_of_a_store(kit: Kit) -> None:
    store = kit.store()
    store.put(("users", "ann"), "color", {"name": "red", "size": 3})
    store.put(("users", "bob"), "color", {"name": "blue", "size": 5})
    store.put(("users", "ann"), "food", {"name": "rice", "tags": ["a", "b"], "more": {"hot": True, "level": 2}})
    store.put(("other",), "color", {"name": "red"})
    kit.tell(shown(store.get(("users", "ann"), "color")), shown(store.get(("users", "ann"), "none")))
    kit.tell([shown(i) for i in store.search(("users",))], [shown(i) for i in store.search(())])
    kit.tell([shown(i) for i in store.search(("users",), limit=1, offset=1)])
    store.put(("users", "ann"), "color", {"name": "green", "size": 3})
    store.delete(("users", "bob"), "color")
    store.delete(("users", "bob"), "none")
    kit.tell([shown(i) for i in store.search(("users",))])
    item = store.get(("users", "ann"), "color")
    kit.tell(sorted(item.dict()), item.created_at <= item.updated_at, item == store.get(("users", "ann"), "color"))
    store.put(("users", "ann"), 7, {"key": "a number"})
    kit.tell(shown(store.get(("users", "ann"), "7")))


@program
def filters_of_searches(kit: Kit) -> None:
    store = kit.store()
    for n in range(5):
        value = {"n": n, "even": n % 2 == 0, "in": {"n": n, "text": str(n)}, "list": [n, {"n": n}], "none": None}
        store.put(("numbers",), str(n), value)

    def find(wanted: Any) -> Any:
        return kit.attempt(lambda: [i.key for i in store.search(("numbers",), filter=wanted)])

    for wanted in (
        {"n": 3},
        {"n": {"$eq": 3}},
        {"n": {"$ne": 3}},
        {"n": {"$gt": 1, "$lte": 3}},
        {"n": {"$gte": "2"}, "even": True},
        {"n": {"$lt": 0}},
        {"in": {"n": 2}},
        {"in": {"n": {"$gt": 2}, "text": "4"}},
        {"list": [1, {"n": 1}]},
        {"list": [1]},
        {"list": [{"$gt": 2}, {"n": 3}]},
        {"missing": None},
        {"none": None},
        {"missing": {"$ne": 1}},
        {"missing": {"$gt": 1}},
        {"even": {"n": 1}},
        {"in": {"text": {"$gt": "x"}}},
        {"n": {"$in": [1]}},
        {},
    ):
        find(wanted)


@program
def namespaces_of_a_store(kit: Kit) -> None:
    store = kit.store()
    for path in ("a/b/c", "a/b/d/e", "a/b/d/i", "a/b/f", "a/c/f", "z"):
        store.put(tuple(path.split("/")), "key", {"n": 1})

    def listed(**wanted: Any) -> Any:
        return kit.attempt(lambda: store.list_namespaces(**wanted))

    listed()
    listed(prefix=("a", "b"), max_depth=3)
    listed(prefix=("a", "*", "f"))
    listed(suffix=("f",))
    listed(suffix=("*", "f"), prefix=("a", "b"))
    listed(max_depth=1)
    listed(limit=2, offset=1)
    listed(prefix=("b",))
    listed(suffix=("a", "b", "c", "d", "e"))
    listed(prefix=("a.b",))


@program
def searches_by_meaning(kit: Kit) -> None:
    store = kit.store(index={"dims": 3, "embed": embed, "fields": ["text", "notes[*].text"]})
    store.put(("docs",), "cats", {"text": "cat cat cat", "kind": "pet"})
    store.put(("docs",), "dogs", {"text": "dog", "kind": "pet"})
    store.put(("docs",), "both", {"text": "no animals", "notes": [{"text": "cat dog"}, {"text": "dog tax"}]})
    store.put(("docs",), "plain", {"text": "cat"}, index=False)
    store.put(("docs",), "other", {"body": "tax tax cat"}, index=["body"])

    def find(query: str, **wanted: Any) -> None:
        kit.tell(
            [
                [i.key, None if i.score is None else round(i.score, 6)]
                for i in store.search(("docs",), query=query, **wanted)
            ]
        )

    find("cat")
    find("dog", limit=2)
    find("tax", filter={"kind": "pet"})
    find("cat", limit=1, offset=1)
    find("nothing")
    kit.tell([i.score for i in store.search(("docs",))])
    store.put(("docs",), "dogs", {"text": "tax"})
    store.delete(("docs",), "cats")
    find("tax", limit=1)
    without = kit.store()
    without.put(("docs",), "a", {"text": "cat"}, index=["text"])
    kit.tell([[i.key, i.score] for i in without.search((), query="dog")])
    whole = kit.store(index={"dims": 3, "embed": embed})
    whole.put(("docs",), "a", {"x": {"y": "cat"}})
    kit.tell([[i.key, i.score] for i in whole.search((), query="cat")])


@program
def texts_at_paths(kit: Kit) -> None:
    value = {
        "title": "t",
        "n": 3,
        "yes": True,
        "none": None,
        "in": {"a": {"b": "deep"}, "c": [1, 2]},
        "list": [{"x": "one", "y": ["p", "q"]}, {"x": "two", "y": ["r"]}, "text"],
    }
    for path in (
        "$",
        "title",
        "n",
        "yes",
        "none",
        "missing",
        "in.a.b",
        "in.a",
        "in.c",
        "in.c[0]",
        "in.c[-1]",
        "in.c[9]",
        "in.c[x]",
        "list[*].x",
        "list[*].y[*]",
        "list[0].y[1]",
        "list[2]",
        "in.*",
        "list.*.x",
        "{title,in.a.b}",
        "{missing,n}",
        "title.more",
        "title[0]",
    ):
        kit.tell([path, kit.stores.tokenize_path(path), kit.stores.get_text_at_path(value, path)])


@program
def batches_and_async_stores(kit: Kit) -> None:
    base = kit.stores

    async def aembed(texts: Sequence[str]) -> list[list[float]]:
        return embed(texts)

    store = kit.store(index={"dims": 3, "embed": aembed, "fields": ["text"]})

    async def work() -> None:
        await store.aput(("a",), "one", {"text": "cat"})
        await store.aput(("a", "b"), "two", {"text": "dog"})
        kit.tell(shown(await store.aget(("a",), "one")), await store.alist_namespaces())
        kit.tell([shown(i) for i in await store.asearch(("a",), query="dog")])
        results = await store.abatch(
            [
                base.PutOp(("a",), "three", {"text": "tax"}),
                base.GetOp(("a",), "three"),
                base.SearchOp(("a",), {"text": "cat"}),
                base.ListNamespacesOp((base.MatchCondition("suffix", ("b",)),)),
                base.PutOp(("a",), "one", None),
            ]
        )
        kit.tell([r if not isinstance(r, list) else [shown(i) if hasattr(i, "key") else i for i in r] for r in results])
        kit.tell(shown(await store.aget(("a",), "three")), await store.aget(("a",), "one"))
        await store.adelete(("a",), "three")
        kit.tell(await store.aget(("a",), "three"))

    asyncio.run(work())
    kit.attempt(lambda: store.put(("a",), "x", {"text": "plain calls need a plain function"}))


@program
def wrong_uses_of_stores(kit: Kit) -> None:
    store = kit.store()
    for namespace in ((), ("a.b",), ("",), (1,), ("langgraph", "a"), ("a\x00b",)):
        kit.attempt(lambda namespace=namespace: store.put(namespace, "k", {"x": 1}))
    kit.attempt(lambda: store.get(("a.b",), "k"))
    kit.attempt(lambda: store.search(("a.b",)))
    kit.attempt(lambda: store.put(("a",), "k", {"x": 1}, ttl=5))
    kit.attempt(lambda: store.put(("a",), "k", {"x": 1}, ttl=None))
    kit.attempt(lambda: store.batch([1]))
    kit.attempt(lambda: kit.store(index={"dims": 3}))
    kit.attempt(lambda: kit.lib.get_store())


@program
def stores_of_graphs(kit: Kit) -> None:
    store = kit.store()

    def by_parameter(state: Log, *, store) -> dict[str, Any]:  # type: ignore[no-untyped-def]
        store.put(("seen",), "one", {"n": len(state["log"])})
        return {"log": ["parameter"]}

    def by_runtime(state: Log, runtime) -> dict[str, Any]:  # type: ignore[no-untyped-def]
        return {"log": [shown(runtime.store.get(("seen",), "one"))]}

    def by_call(state: Log) -> dict[str, Any]:
        kit.lib.get_store().put(("seen",), "two", {"n": 2})
        return {"log": [kit.lib.interrupt("go on?")]}

    inner = kit.lib.StateGraph(Log)
    inner.add_node("by_call", by_call)
    inner.add_edge("__start__", "by_call")
    builder = kit.lib.StateGraph(Log)
    for name, node in (("by_parameter", by_parameter), ("by_runtime", by_runtime), ("inner", inner.compile())):
        builder.add_node(name, node)
    for edge in (("__start__", "by_parameter"), ("by_parameter", "by_runtime"), ("by_runtime", "inner")):
        builder.add_edge(*edge)
    graph = kit.compile(builder, store=store)
    at = kit.thread()
    graph.invoke({"log": ["in"]}, at)
    result = graph.invoke(kit.lib.Command(resume="yes"), at)
    kit.tell(result["log"][:3], result["log"][-1], [shown(i) for i in store.search(())], graph.store is store)


@program
def stores_of_entrypoints(kit: Kit) -> None:
    store = kit.store()

    @kit.task
    def remember(what: str) -> int:
        memory = kit.lib.get_store()
        count = len(memory.search(("facts",)))
        memory.put(("facts",), what, {"n": count})
        return count

    @kit.entrypoint(saver=None)
    def inner(what: str) -> Any:
        return shown(kit.lib.get_store().get(("facts",), what))

    @kit.entrypoint(store=store)
    def flow(facts: list[str], *, store) -> Any:  # type: ignore[no-untyped-def]
        counts = [remember(fact).result() for fact in facts]
        return [counts, kit.lib.interrupt("more?"), inner.invoke(facts[0]), len(store.search(("facts",)))]

    @kit.entrypoint(saver=None)
    def without(x: int) -> Any:
        return kit.lib.get_runtime().store

    at = kit.thread()
    kit.tell(flow.invoke(["a", "b"], at), flow.invoke(kit.lib.Command(resume="no"), at))
    kit.tell(without.invoke(1), [shown(i) for i in store.search(())])
