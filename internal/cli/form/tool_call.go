package form

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// ToolCall is the call of a tool that a question is about.
type ToolCall struct {
	Name      string
	Arguments string // JSON, an object
	Rest      []jsontext.Member
}

// The questions about calls of tools, as the Python SDK asks them with ToolApproval.
const (
	toolCallReason  = "tool_call"
	toolCallProfile = "tool-approval/1"
)

// ParseToolCall returns the call of a tool that a question is about, and false for any other
// question.
func ParseToolCall(q *graphdv1.Interrupt) (ToolCall, bool) {
	if q.GetReason() != toolCallReason {
		return ToolCall{}, false
	}
	var call ToolCall
	hasProfile, hasName := false, false
	for _, m := range jsontext.SplitObject(q.GetValue().GetJson()) {
		switch m.Key {
		case "profile":
			profile, _ := jsontext.UnquoteString(m.Value)
			hasProfile = profile == toolCallProfile
		case "name":
			call.Name, hasName = jsontext.UnquoteString(m.Value)
		case "args":
			call.Arguments = m.Value
		default:
			call.Rest = append(call.Rest, m)
		}
	}
	return call, hasProfile && hasName && jsontext.SplitObject(call.Arguments) != nil
}
