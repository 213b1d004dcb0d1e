"""Graphs in expressions, whose nodes the server runs itself, and what they ask."""

from __future__ import annotations

from graphd.remote import Client, Question

REFUND = """
graph: client-refund
channels:
  request: {}
  decision: {}
  log: { reducer: append }
input: [request]
nodes:
  read:
    expr:
      update:
        log: ["'read ' + state.request"]
  review:
    ask:
      reason: approval
      message: "'Refund: ' + state.request"
      value: { request: state.request }
      schema:
        type: object
        required: [decision]
        properties:
          decision: { enum: [approved, rejected] }
      update:
        decision: answer.decision
        log: ["'review'"]
  close:
    expr:
      update:
        log: ["'closed: ' + state.decision"]
edges:
  - START -> read -> review -> close -> END
"""

COUNT = """
graph: client-count
channels:
  left: {}
  log: { reducer: append }
input: [left]
nodes:
  step:
    expr:
      update:
        left: state.left - 1
        log: [state.left]
edges: [START -> step]
conditional_edges:
  - from: step
    cases:
      - { when: state.left > 0, to: step }
      - { to: END }
"""

GREET = """
graph: client-greet
channels: { name: {}, greeting: {} }
nodes:
  greet: { expr: { update: { greeting: "context.word + ' ' + state.name" } } }
edges: [START -> greet -> END]
"""

ELSEWHERE = """
graph: client-elsewhere
channels: { log: append }
nodes:
  away: { remote: {} }
edges: [START -> away -> END]
"""
"""No worker has its node: a run of it goes on without end."""


def the_question(client: Client, thread: str) -> Question:
    """The open question of a thread, which has one."""
    (question,) = client.inbox.list(thread_id=thread)
    return question
