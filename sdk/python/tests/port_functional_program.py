"""A program for LangGraph's functional API: a library that lends books, asks people and remembers readers.

test_port.py runs it twice: as it is, and for graphd, with other imports and nothing else. It tells what it sees in
``out``, as JSON.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store, get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.func import entrypoint, task
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, interrupt

out: list[Any] = []
ran: list[str] = []
store = InMemoryStore()


@dataclass
class Rules:
    most: int = 2


class Busy(Exception):
    pass


@task(retry_policy=RetryPolicy(initial_interval=0.01, jitter=False, retry_on=Busy))
def reserve(title: str) -> str:
    ran.append(f"reserve {title}")
    if ran.count(f"reserve {title}") == 1:
        raise Busy(title)
    return f"{title} is reserved"


@task(cache_policy=CachePolicy())
def look_up(title: str) -> dict[str, Any]:
    ran.append(f"look up {title}")
    return {"title": title, "rare": title.startswith("R")}


@task
def approve(book: dict[str, Any]) -> bool:
    if not book["rare"]:
        return True
    answer = interrupt({"lend": book["title"]})
    get_stream_writer()(f"{book['title']}: {answer}")
    return bool(answer == "yes")


@task
def lend(reader: str, title: str) -> str:
    known = look_up(title).result()
    if not approve(known).result():
        return f"{title} stays"
    get_store().put(("readers", reader), title, {"title": title})
    return reserve(title).result()


@entrypoint(checkpointer=InMemorySaver(), store=store, cache=InMemoryCache(), context_schema=Rules)
def library(wish: dict[str, Any], *, previous: list[str] | None = None) -> Any:
    rules, wanted = get_runtime(Rules).context, wish["titles"]
    if len(wanted) > rules.most:
        wanted = interrupt(f"only {rules.most} of {len(wanted)}: which?")
    told = [lend(wish["reader"], title).result() for title in wanted]
    return entrypoint.final(value=told, save=[*(previous or []), *told])


@task
async def weigh(title: str) -> int:
    await asyncio.sleep(0)
    return len(title)


@entrypoint(checkpointer=InMemorySaver())
async def pack(titles: list[str]) -> Any:
    weights = await asyncio.gather(*[weigh(title) for title in titles])
    box = interrupt({"weight": sum(weights)})
    return {"box": box, "weights": weights}


def show(item: Any) -> Any:
    """An item of a stream, with questions as what they ask."""
    if isinstance(item, dict) and "__interrupt__" in item:
        return [question.value for question in item["__interrupt__"]]
    return item


config: dict[str, Any] = {"configurable": {"thread_id": "1"}}
rules = Rules(most=2)
wish = {"reader": "ann", "titles": ["Rivers", "Lakes", "Roads"]}
for given in (wish, Command(resume=["Rivers", "Lakes"]), Command(resume="yes")):
    for mode, item in library.stream(given, config, context=rules, stream_mode=["updates", "custom"]):
        out.append((mode, show(item)))
    state = library.get_state(config)
    out.append({"next": state.next, "asked": [i.value for i in state.interrupts], "values": state.values})
out.append(library.invoke({"reader": "ann", "titles": ["Lakes"]}, config, context=rules))
out.append(
    library.invoke({"reader": "bob", "titles": ["Rivers"]}, config, context=rules).get("__interrupt__") is not None
)
out.append(library.invoke(Command(resume="no"), config, context=rules))
out.append([(item.namespace, item.key) for item in store.search(("readers",))])
out.append(ran)


async def main() -> None:
    where: dict[str, Any] = {"configurable": {"thread_id": "2"}}
    items = [show(item) async for item in pack.astream(["a", "bb"], where)]
    out.append(sorted(items, key=str))  # tasks that run side by side end in any order
    out.append(await pack.ainvoke(Command(resume="small"), where))


asyncio.run(main())
try:
    weigh("outside")
except GraphBubbleUp:
    out.append("a bubble")
except RuntimeError:
    out.append("refused")
