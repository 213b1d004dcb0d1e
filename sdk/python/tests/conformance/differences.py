"""What graphd does differently on purpose, by name.

Each decision is a row of a table in the documents. Cases name the decisions that they show, and the oracle
draws around them, or takes them out of what LangGraph shows.
"""

from __future__ import annotations

from dataclasses import dataclass

CONCEPTS, PYTHON = "docs/concepts.md", "docs/python.md"


@dataclass(frozen=True)
class Difference:
    """One decision: the page with its row, and how the row begins."""

    page: str
    row: str


DIFFERENCES = {
    "an id per question": Difference(CONCEPTS, "several questions of a task share an id"),
    "an id per question of a node": Difference(PYTHON, "several questions of a node share an id"),
    "answers fit the question": Difference(CONCEPTS, "a replayed node uses an answer for any question at its place"),
    "answers fit the question of a node": Difference(PYTHON, "a replayed node uses an answer for any question"),
    "no stray answers": Difference(CONCEPTS, "an answer without an open question is accepted"),
    "no stray answers of programs": Difference(PYTHON, "an answer without an open question is kept"),
    "one answer, one question": Difference(CONCEPTS, "a plain answer with several open questions"),
    "one answer, one question of a node": Difference(PYTHON, "a single answer for several open questions"),
    "null is an answer": Difference(CONCEPTS, "`None` cannot be an answer"),
    "unknown targets": Difference(CONCEPTS, "an unknown target of goto, send or a branch"),
    "unknown targets of programs": Difference(PYTHON, "`goto` and `Send` to unknown nodes"),
    "failed edges are decided again": Difference(CONCEPTS, "a failed conditional edge is skipped"),
    "strict inputs": Difference(CONCEPTS, "unknown input keys disappear"),
    "unknown keys of updates": Difference(CONCEPTS, "unknown keys of `update_state` disappear"),
    "unknown checkpoints": Difference(CONCEPTS, "an unknown checkpoint id starts from nothing"),
    "one writer": Difference(CONCEPTS, "two runs on a thread fork it silently"),
    "one writer of programs": Difference(PYTHON, "two runs of a thread at once mix their states"),
    "finished siblings in subgraphs": Difference(CONCEPTS, "finished siblings inside a subgraph run again"),
    "finished siblings in subgraphs of programs": Difference(PYTHON, "finished siblings inside a subgraph run again"),
    "lists are stored as additions": Difference(CONCEPTS, "list channels are stored whole"),
    "values are JSON": Difference(PYTHON, "values are pickled or msgpack"),
    "updates withdraw questions": Difference(PYTHON, "a question survives `update_state`"),
    "waiting nodes wait": Difference(PYTHON, "a node that still waits runs again"),
    "questions can't be swallowed": Difference(PYTHON, "catching the exception of `interrupt`"),
    "stored before shown": Difference(PYTHON, "`durability` says when to store"),
    "run ids": Difference(PYTHON, "a `run_id` is a label"),
    "overwrites show as values": Difference(PYTHON, "an update shows an `Overwrite`"),
    "a goto is due": Difference(CONCEPTS, "the target of a `Command` given as input is not in `next`"),
    "a replay of the end": Difference(CONCEPTS, "a replay of a finished state"),
    "commands stop at breakpoints": Difference(CONCEPTS, "a `Command` given as input passes breakpoints"),
    "updates of finished threads": Difference(CONCEPTS, "an update given to a finished thread"),
    "finished siblings survive updates": Difference(CONCEPTS, "`update_state` drops what finished siblings"),
    "work of error handlers": Difference(CONCEPTS, "`get_state` hides error handlers"),
    "kept subgraphs get their input": Difference(CONCEPTS, "a subgraph that persists and is due"),
    "a refused superstep can be read": Difference(CONCEPTS, "a superstep whose writes are refused"),
    "questions of graphs that store nothing": Difference(CONCEPTS, "a question of a subgraph that stores nothing"),
    "short-lived keys of finished siblings": Difference(CONCEPTS, "`get_state` hides short-lived keys"),
    "namespaces of kept subgraphs": Difference(PYTHON, "the config of a subgraph with `checkpointer=True`"),
    "states of called graphs": Difference(PYTHON, "`get_state(subgraphs=True)` shows called graphs"),
}
