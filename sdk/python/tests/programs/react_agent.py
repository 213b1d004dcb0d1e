"""A ReAct agent: a model calls tools and reads their results, with a prompt, a memory and an answer in a form."""

from typing import Annotated, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState, create_react_agent
from langgraph.prebuilt.chat_agent_executor import AgentStateWithStructuredResponse
from pydantic import BaseModel

out: list[Any] = []
PRICES = {"plums": 3, "pears": 4}


class Offer(BaseModel):
    total: int
    text: str


class Basket(AgentStateWithStructuredResponse):
    customer: str


class Grocer(BaseChatModel):
    """Looks up what the last question names, then adds it up."""

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        system = messages[0].content
        if last.type == "human":
            names = [word for word in last.content.split() if word in (*PRICES, "figs")]
            calls = [{"name": "find_price", "args": {"fruit": n}, "id": f"{n}-{len(messages)}"} for n in names]
            calls += [{"name": "greet", "args": {}, "id": f"greet-{len(messages)}"}] if "hello" in last.content else []
            said = AIMessage("" if calls else f"{system}: {len(messages)} messages", tool_calls=calls)
        else:
            turn = next(n for n, m in enumerate(reversed(messages)) if m.type == "human")
            said = AIMessage(f"{system}: {' + '.join(m.content for m in messages[-turn:] if m.type == 'tool')}")
        return ChatResult(generations=[ChatGeneration(message=said)])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        return RunnableLambda(lambda messages: schema(total=len(messages), text=messages[-1].content))

    @property
    def _llm_type(self) -> str:
        return "grocer"


@tool
def find_price(fruit: str) -> int:
    """Finds the price of a fruit."""
    return PRICES[fruit]


@tool
def greet(customer: Annotated[str, InjectedState("customer")]) -> str:
    """Greets the customer."""
    return f"hello {customer}"


agent: Any = create_react_agent(
    Grocer(),
    [find_price, greet],
    prompt=lambda state: [SystemMessage(f"serve {state['customer']}"), *state["messages"]],
    response_format=Offer,
    state_schema=Basket,
    checkpointer=InMemorySaver(),
)
config: Any = {"configurable": {"thread_id": "shop"}}
for text, customer in (("plums and pears", "Ada"), ("hello and plums", "Ben"), ("thank you", "Cy")):
    state = agent.invoke({"messages": [("user", text)], "customer": customer}, config)
    out.append([[m.type, m.content, m.name] for m in state["messages"]])
    out.append([state["customer"], state["structured_response"].model_dump()])
out.append([list(chunk) for chunk in agent.stream({"messages": [("user", "pears")], "customer": "Di"}, config)])
