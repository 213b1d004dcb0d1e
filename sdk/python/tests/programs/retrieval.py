"""Retrieval: an agent looks documents up, grades them, asks again in other words, and answers with its sources."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

out: list[Any] = []
SHELF = [
    Document("Bees dance to tell the way to flowers", metadata={"page": 3}),
    Document("Wasps make paper of wood", metadata={"page": 8}),
    Document("Honey keeps for years", metadata={"page": 12}),
]


class Shelf(BaseRetriever):
    """Finds the documents that share a word with the query."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        words = set(query.lower().split())
        return [document for document in SHELF if words & set(document.page_content.lower().split())]


class Search(TypedDict, total=False):
    question: str
    queries: Annotated[list[str], operator.add]
    found: list[dict[str, Any]]
    answer: str


retriever = Shelf()
WORDS = {"insects": "bees wasps", "sweet": "honey", "paper": "paper"}


def retrieve(state: Search) -> Search:
    query = state["queries"][-1] if state.get("queries") else state["question"]
    found = retriever.invoke(query)
    return {"found": [{"text": d.page_content, "page": d.metadata["page"]} for d in found]}


def grade(state: Search) -> Literal["generate", "rewrite", "give_up"]:
    if state["found"]:
        return "generate"
    return "rewrite" if len(state.get("queries", [])) < 2 else "give_up"


def rewrite(state: Search) -> Search:
    known = [synonym for word, synonym in WORDS.items() if word in state["question"]]
    return {"queries": [" ".join(known[len(state.get("queries", [])) :]) or "anything else"]}


def generate(state: Search) -> Search:
    facts = "; ".join(document["text"] for document in state["found"])
    model = GenericFakeChatModel(messages=iter([AIMessage(f"As books say: {facts}")]))
    pages = sorted(document["page"] for document in state["found"])
    return {"answer": f"{model.invoke([HumanMessage(state['question'])]).content} (pages {pages})"}


builder = StateGraph(Search)
for node in (retrieve, rewrite, generate):
    builder.add_node(node)
builder.add_node("give_up", lambda state: {"answer": f"nothing after {len(state['queries'])} more queries"})
builder.add_edge(START, "retrieve")
builder.add_conditional_edges("retrieve", grade)
builder.add_edge("rewrite", "retrieve")
builder.add_edge("generate", END)
builder.add_edge("give_up", END)
graph = builder.compile(checkpointer=InMemorySaver())

for question in ("how do bees talk?", "which insects work?", "what sweet food lasts?", "who won?", "is paper old?"):
    config: Any = {"configurable": {"thread_id": question}}
    out.append([list(chunk) for chunk in graph.stream({"question": question}, config)])
    state = graph.get_state(config).values
    out.append([question, state.get("queries"), state["answer"]])
