package output

import (
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// printToolCall prints the call of a tool with its arguments.
func (p *Printer) printToolCall(indent string, call form.ToolCall) {
	p.PrintLine("%s%s  %s", indent, p.Colorize(cyan, "call of"), p.Colorize(Bold, call.Name))
	p.PrintMembers(indent+"  ", jsontext.SplitObject(call.Arguments))
	p.PrintMembers(indent, call.Rest)
}
