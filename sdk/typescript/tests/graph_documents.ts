/** Graphs whose nodes the server runs itself. */

/** Asks whether to refund. */
export const REFUND = `
graph: refund
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
`;

/** Counts down, a superstep for each number. */
export const COUNT = `
graph: count
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
`;
