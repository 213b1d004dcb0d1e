"""graphd: graphs the way LangGraph users write them, run by a server.

The modules have the names of LangGraph's: ``graphd.graph``, ``graphd.types``,
``graphd.errors``, ``graphd.config`` and so on. The most used names are here.
"""

from graphd.checkpoint.memory import InMemorySaver, MemorySaver
from graphd.compatibility.imports import install_finder
from graphd.config import get_config, get_stream_writer
from graphd.constants import END, START
from graphd.dev import DevServer, dev
from graphd.graph import MessagesState, StateGraph, add_messages
from graphd.remote import AsyncClient, Client
from graphd.runtime import Runtime, get_runtime, scope
from graphd.runtime.ask import amemo, interrupt, memo
from graphd.security import Security
from graphd.types import Command, Interrupt, Overwrite, RetryPolicy, Send, StateSnapshot
from graphd.values.people import People
from graphd.values.steps import Escalate, Remind
from graphd.values.worker_limits import WorkerLimits

install_finder()

__all__ = [
    "END",
    "START",
    "AsyncClient",
    "Client",
    "Command",
    "DevServer",
    "Escalate",
    "InMemorySaver",
    "Interrupt",
    "MemorySaver",
    "MessagesState",
    "Overwrite",
    "People",
    "Remind",
    "RetryPolicy",
    "Runtime",
    "Security",
    "Send",
    "StateGraph",
    "StateSnapshot",
    "WorkerLimits",
    "add_messages",
    "amemo",
    "dev",
    "get_config",
    "get_runtime",
    "get_stream_writer",
    "interrupt",
    "memo",
    "scope",
]
