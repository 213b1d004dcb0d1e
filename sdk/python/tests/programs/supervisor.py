"""A supervisor of teams: it hands work to one worker after the other, and the teams are graphs of their own."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

out: list[Any] = []


class Project(TypedDict, total=False):
    goal: str
    next: str
    facts: Annotated[list[str], operator.add]
    text: str
    trace: Annotated[list[str], operator.add]


class Team(TypedDict, total=False):
    goal: str
    facts: list[str]
    draft: str


def supervise(state: Project) -> Command[Literal["researcher", "writing_team", "__end__"]]:
    facts = state.get("facts", [])
    if len(facts) < 2:
        return Command(goto="researcher", update={"next": "researcher", "trace": ["supervisor: find facts"]})
    if not state.get("text"):
        return Command(goto="writing_team", update={"next": "writing_team", "trace": ["supervisor: write"]})
    return Command(goto=END, update={"next": "nobody", "trace": ["supervisor: done"]})


def research(state: Project) -> Command[Literal["supervisor"]]:
    number = len(state.get("facts", [])) + 1
    found = f"fact {number} about {state['goal']}"
    return Command(goto="supervisor", update={"facts": [found], "trace": [f"researcher: {found}"]})


def draft(state: Team) -> Team:
    return {"draft": f"{state['goal']}: {', '.join(state['facts'])}"}


def edit(state: Team) -> Team:
    return {"draft": state["draft"].replace("fact", "truth")}


team = StateGraph(Team)
team.add_sequence([draft, edit])
team.add_edge(START, "draft")
team_graph = team.compile(name="team")


def call_team(state: Project) -> Command[Literal["supervisor"]]:
    result = team_graph.invoke({"goal": state["goal"], "facts": state["facts"]})
    return Command(goto="supervisor", update={"text": result["draft"], "trace": ["team: written"]})


builder = StateGraph(Project)
builder.add_node("supervisor", supervise)
builder.add_node("researcher", research)
builder.add_node("writing_team", call_team)
builder.add_edge(START, "supervisor")
graph = builder.compile(checkpointer=InMemorySaver(), name="project")

config: Any = {"configurable": {"thread_id": "owls"}}
for namespace, chunk in graph.stream({"goal": "owls"}, config, subgraphs=True):
    out.append([[level.split(":")[0] for level in namespace], chunk])
out.append(graph.get_state(config).values)
out.append([[list(s.next), s.values.get("next")] for s in graph.get_state_history(config)])
# The next goal finds what the thread knows already.
out.append(graph.invoke({"goal": "bats", "text": ""}, config)["trace"])
out.append(sorted(edge[:2] for edge in graph.get_graph().edges))
