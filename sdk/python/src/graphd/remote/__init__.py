"""A client of a server, for programs that have no graph: ``Client`` and ``AsyncClient``, and what they return."""

from graphd.remote.answer_check import AnswerCheck
from graphd.remote.bulk_answer import AnswerOutcome
from graphd.remote.client import AsyncClient, Client
from graphd.remote.cursor import Cursor
from graphd.remote.graphs import Graph
from graphd.remote.link import Link
from graphd.remote.question import Answer, Dismissal, Question, QuestionChange, Revealed
from graphd.remote.question_count import CountFilter, QuestionCount
from graphd.remote.question_statistics import (
    AnswerStatistics,
    DecisionCount,
    QuestionCounts,
    QuestionSeries,
    QuestionStatistics,
)
from graphd.remote.run import Failure, Run
from graphd.remote.run_options import ResumeOptions, RunOptions
from graphd.remote.run_stream import AsyncRunStream, RunStream, StreamItem
from graphd.remote.thread import Thread
from graphd.remote.trail import TrailEntry

__all__ = [
    "Answer",
    "AnswerCheck",
    "AnswerOutcome",
    "AnswerStatistics",
    "AsyncClient",
    "AsyncRunStream",
    "Client",
    "CountFilter",
    "Cursor",
    "DecisionCount",
    "Dismissal",
    "Failure",
    "Graph",
    "Link",
    "Question",
    "QuestionChange",
    "QuestionCount",
    "QuestionCounts",
    "QuestionSeries",
    "QuestionStatistics",
    "ResumeOptions",
    "Revealed",
    "Run",
    "RunOptions",
    "RunStream",
    "StreamItem",
    "Thread",
    "TrailEntry",
]
