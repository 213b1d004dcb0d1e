"""Building graphs."""

from graphd.constants import END, START
from graphd.graph.message import MessageGraph, MessagesState, add_messages, push_message
from graphd.graph.state import StateGraph

__all__ = ["END", "START", "MessageGraph", "MessagesState", "StateGraph", "add_messages", "push_message"]
