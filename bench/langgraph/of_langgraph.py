"""The graphs as ``langgraph dev`` loads them: see langgraph.json."""

from graphs import Declaration
from langgraph import graph
from langgraph.types import interrupt

declared = Declaration(graph, interrupt)
question = declared.question().compile(name="question")
chain = declared.chain().compile(name="chain")
