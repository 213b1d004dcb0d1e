"""Graphs in expressions: the server runs their nodes itself."""

from __future__ import annotations

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
