"""A handler of orders: each text is a new order or the answer to a question, as the thread says."""

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []
PRICES = {"lamp": 40, "desk": 210}


class Order(TypedDict, total=False):
    text: str
    status: str
    product: str
    price: int


def receive(order: Order) -> Order:
    product = order["text"].split()[-1]
    return {"status": "to be paid", "product": product, "price": PRICES[product]}


def pay(order: Order) -> Order:
    answer = interrupt({"kind": "payment", "product": order["product"], "price": order["price"]})
    if "confirm" in answer.lower():
        return {"status": "paid"}
    return {"status": "cancelled", "product": "", "price": 0}


builder = StateGraph(Order)
builder.add_node("receive", receive)
builder.add_node("pay", pay)
builder.add_edge(START, "receive")
builder.add_edge("receive", "pay")
builder.add_edge("pay", END)
graph = builder.compile(checkpointer=InMemorySaver())


def handle(session: str, text: str) -> Any:
    config = {"configurable": {"thread_id": session}}
    is_asked = bool(graph.get_state(config).next)
    result = graph.invoke(Command(resume=text) if is_asked else {"text": text}, config)
    return [q.value for q in result["__interrupt__"]] if "__interrupt__" in result else result


for session, text in [
    ("ann", "I want a lamp"),
    ("bob", "please send a desk"),
    ("ann", "yes, I confirm"),
    ("bob", "no, thank you"),
    ("ann", "and a desk"),
    ("ann", "Confirm"),
]:
    out.append([session, handle(session, text)])
    snapshot = graph.get_state({"configurable": {"thread_id": session}})
    out.append({"values": snapshot.values, "next": list(snapshot.next)})
    out.append([[task.name, [q.value for q in task.interrupts]] for task in snapshot.tasks])
