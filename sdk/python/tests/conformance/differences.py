"""What graphd does differently on purpose, by name.

Each decision is a row of the table of docs/concepts.md, of that of docs/python.md, or of both. Cases show decisions,
and the oracle draws around them or takes them out of what LangGraph shows. test_differences.py holds these together.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One decision: how its rows begin, and the cases that show it."""

    concepts: str = ""
    python: str = ""
    cases: str = ""


DIFFERENCES = {
    # Questions and answers.
    "answers fit the question": Difference(
        "a replayed node uses an answer for any question", "a replayed node uses an answer for any question", "E32 E33"
    ),
    "answers fit the schema": Difference(
        "a node that asks with a class as `response_schema`", "a `response_schema` that is a dict", "L21"
    ),
    "no stray answers": Difference(
        "an answer without an open question is accepted",
        "an answer without an open question is kept",
        "E11 E22 E27 E29 E31 J09",
    ),
    "null is an answer": Difference("`None` cannot be an answer", "`{}` answers nothing", "E10"),
    "answers at the present": Difference(
        "an answer given at an earlier checkpoint", "an answer given at an earlier checkpoint", "J08"
    ),
    "updates withdraw questions": Difference(python="a question survives `update_state`", cases="J09"),
    "waiting nodes wait": Difference(python="a node that still waits runs again", cases="E06 E17"),
    "questions can't be swallowed": Difference(python="catching the exception of `interrupt`", cases="E13"),
    "questions of graphs that store nothing": Difference("a question of a subgraph that stores nothing"),
    "answers count once": Difference("an answer may be lost", cases="H06"),
    # Running.
    "unknown targets": Difference(
        "an unknown target of goto, send or a branch", "`goto` and `Send` to unknown nodes", "B03 C05 D04"
    ),
    "failed edges are decided again": Difference("a failed conditional edge is skipped", cases="H18"),
    "updates of failed nodes": Difference("an update `None` of a node that fails after its answer"),
    "updates are final": Difference(
        "`updates` shows the update of a node whose conditional edge fails", "a node whose edge fails", "L05"
    ),
    "items come once": Difference(python="tokens and custom items before a question come again"),
    "retries keep called tasks": Difference(python="a retry of an entrypoint or of a task"),
    "tasks have names": Difference(python="tasks are matched by the number of the call"),
    "inputs are supersteps": Difference(python="an entrypoint's run begins with its function"),
    "plain entrypoints call async tasks": Difference(python="a plain entrypoint that `invoke` runs"),
    "a retried subgraph goes on": Difference("a subgraph whose node is retried", cases="H07"),
    "work of error handlers": Difference("`get_state` hides error handlers"),
    "kept subgraphs get their input": Difference("a subgraph that persists and is due"),
    "commands stop at breakpoints": Difference("a call that goes on after a failure, or a `Command`"),
    "gone keys hit no breakpoint": Difference("a key that the graph has lost", cases="F14"),
    "a replay of an input": Difference(python="a replay from an input shows the state"),
    "order of due tasks": Difference("the due tasks of a copied checkpoint"),
    "a replay of the end": Difference("a replay of a finished state"),
    "one writer": Difference("two runs on a thread fork it silently", "two runs of a thread at once mix their states"),
    "run ids": Difference(python="a `run_id` is a label", cases="A15"),
    # States and updates.
    "strict inputs": Difference("unknown input keys disappear"),
    "empty commands": Difference("an empty `Command` fails", cases="A05"),
    "unknown keys of updates": Difference("unknown keys of `update_state` disappear"),
    "answered questions are not open": Difference(
        "the state of a thread lists the answered question", cases="E30 P04 P05"
    ),
    "unknown subgraphs": Difference("the state and the history of an unknown subgraph"),
    "unknown checkpoints": Difference("an unknown checkpoint id starts from nothing", cases="G27"),
    "checkpoints of subgraphs": Difference("a run from a checkpoint of a subgraph", cases="K12"),
    "lists are stored as additions": Difference("list channels are stored whole"),
    "values are JSON": Difference(python="values are pickled or msgpack", cases="J15"),
    "serializers of savers": Difference(python="a saver makes bytes of values with its `serde`"),
    "stored before shown": Difference(python="`durability` says when to store"),
    "a goto is due": Difference("the target of a `Command` given as input", cases="E28 J13"),
    "a refused superstep can be read": Difference("a superstep whose writes are refused", cases="B04"),
    "the node that ran last": Difference("`update_state` without `as_node`"),
    "updates of finished threads": Difference("an update given to a finished thread"),
    "finished siblings survive updates": Difference("`update_state` drops what finished siblings", cases="J17"),
    "short-lived keys of finished siblings": Difference("`get_state` hides short-lived keys"),
    "overwrites show as values": Difference(python="an update shows an `Overwrite`", cases="P01"),
    "questions of called graphs in history": Difference("history lists what a persistent graph has asked"),
    "questions of kept subgraphs": Difference("the state of a persistent subgraph lists withdrawn questions"),
    "questions of subgraphs in history": Difference("history lists what a subgraph asked in its last pause"),
    "namespaces of kept subgraphs": Difference(python="the config of a subgraph with `checkpointer=True`"),
    "states of called graphs": Difference(python="`get_state(subgraphs=True)` finds called graphs"),
}
