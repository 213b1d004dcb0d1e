package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// paymentsGraph asks about a call of pay(amount: int, to: str, note: str = ""), with the schema that
// ToolApproval of the Python SDK builds for it.
const paymentsGraph = `graph: payments
channels: {decision: {}}
nodes:
  tools:
    ask:
      reason: tool_call
      message: "'Call the tool pay?'"
      value:
        profile: "'tool-approval/1'"
        tool_call_id: "'call-1'"
        name: "'pay'"
        args: "{'amount': 120, 'to': 'ana'}"
      schema: {
        "type": "object", "required": ["type"], "properties": {
          "type": {"enum": ["approve", "edit", "reject", "respond"]},
          "args": {"description": "The arguments to use", "additionalProperties": false, "properties": {
            "amount": {"title": "Amount", "type": "integer"}, "to": {"title": "To", "type": "string"},
            "note": {"default": "", "title": "Note", "type": "string"}},
            "required": ["amount", "to"], "type": "object"},
          "name": {"const": "pay", "description": "The tool, which can't be changed"},
          "message": {"type": "string", "description": "What the model is told"}},
        "additionalProperties": false,
        "if": {"properties": {"type": {"const": "edit"}}, "required": ["type"]},
        "then": {"properties": {"type": true, "args": true, "name": true},
          "additionalProperties": false, "required": ["args"]},
        "allOf": [
          {"if": {"properties": {"type": {"const": "approve"}}, "required": ["type"]},
            "then": {"properties": {"type": true}, "additionalProperties": false}},
          {"if": {"properties": {"type": {"const": "reject"}}, "required": ["type"]},
            "then": {"properties": {"type": true, "message": true}, "additionalProperties": false}},
          {"if": {"properties": {"type": {"const": "respond"}}, "required": ["type"]},
            "then": {"properties": {"type": true, "message": true}, "additionalProperties": false,
              "required": ["message"]}}]}
      update: {decision: answer}
edges:
- START -> tools
`

// A person decides about the call of a tool without writing JSON.
func TestACallOfAToolIsDecidedAtATerminal(t *testing.T) {
	c := startServer(t, "memory")
	file := filepath.Join(t.TempDir(), "payments.yaml")
	require.NoError(t, os.WriteFile(file, []byte(paymentsGraph), 0o600))
	require.Equal(t, exit.CodeDone, c.runCommand(t, "graph", "put", file).code)
	for thread, test := range map[string]struct{ typed, decision string }{
		"approve": {"1\ny\n", `{"type":"approve"}`},
		"edit":    {"2\n90\n:done\ny\n", `{"type":"edit","args":{"amount":90,"to":"ana"}}`},
		"reject":  {"3\ntoo much\ny\n", `{"type":"reject","message":"too much"}`},
		"respond": {"4\npaid already\ny\n", `{"type":"respond","message":"paid already"}`},
	} {
		t.Run(thread, func(t *testing.T) {
			r := c.runCommand(t, "run", "payments", "--thread", thread, "--input", "{}")
			require.Equal(t, exit.CodeWaiting, r.code, r.err)
			require.Contains(t, r.out, "    call of  pay\n      amount  120\n      to      \"ana\"\n")
			require.Contains(t, c.runCommand(t, "inbox", "show", thread).out, "  call of  pay\n    amount  120\n")

			c.isTerminal, c.stdin = true, test.typed
			r = c.runCommand(t, "resume", thread)
			require.Equal(t, exit.CodeDone, r.code, r.out+r.err)
			c.isTerminal = false
			r = c.runCommand(t, "state", thread, "-o", "jsonl")
			require.Contains(t, r.out, `"decision":`+test.decision)
		})
	}
}
