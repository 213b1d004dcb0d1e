package output

import (
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// PrintSnapshot prints the state of a thread, and of the subgraphs that run in it.
func (p *Printer) PrintSnapshot(indent string, state *graphdv1.StateSnapshot) {
	if state.GetCheckpoint() == nil {
		p.PrintLine("%s%s", indent, p.Colorize(Dim, "no checkpoint yet"))
	} else {
		p.PrintLine("%s%s", indent, p.Colorize(Dim, "checkpoint "+state.GetCheckpoint().GetCheckpointId()+
			"  step "+FormatInteger(state.GetStep())+"  "+sourceName(state.GetSource())+"  "+FormatTime(state.GetCreateTime())))
	}
	p.PrintMembers(indent, jsontext.SplitObject(state.GetValues().GetJson()))
	next := strings.Join(state.GetNext(), ", ")
	p.PrintLine("%s%s %s", indent, p.Colorize(Bold, "next:"), OrDash(next))
	p.printFailures(indent+"  ", state.GetTasks())
	for _, t := range state.GetTasks() {
		if t.GetResult() != nil {
			p.PrintLine("%s  %s is done: %s", indent, t.GetNode(), p.formatValue(indent+"    ", t.GetResult().GetJson()))
		}
		if t.GetState() != nil {
			p.PrintLine("%s  %s", indent, p.Colorize(Bold, nodePath(t.GetNamespace(), "")))
			p.PrintSnapshot(indent+"    ", t.GetState())
		}
	}
	for _, q := range state.GetInterrupts() {
		p.PrintInterrupt(q)
	}
}

// printFailures prints why tasks failed. Tasks that failed for the same reason
// share a line with the names of their nodes.
func (p *Printer) printFailures(indent string, tasks []*graphdv1.SnapshotTask) {
	var causes []*graphdv1.Failure
	for _, t := range tasks {
		f := t.GetFailure()
		if f == nil {
			continue
		}
		same := slices.IndexFunc(causes, func(c *graphdv1.Failure) bool {
			return c.GetReason() == f.GetReason() && c.GetMessage() == f.GetMessage()
		})
		if same >= 0 {
			causes[same].Node += ", " + t.GetNode()
			continue
		}
		causes = append(causes, &graphdv1.Failure{
			Reason: f.GetReason(), Message: f.GetMessage(), Stack: f.GetStack(), Node: t.GetNode(),
		})
	}
	for _, f := range causes {
		p.PrintFailure(indent, f)
	}
}

// PrintHistory prints checkpoints as a table, or with values each by itself.
func (p *Printer) PrintHistory(all []*graphdv1.StateSnapshot, values bool) {
	rows := [][]string{{"STEP", "SOURCE", "CHECKPOINT", "PARENT", "TIME", "NEXT"}}
	for _, c := range all {
		rows = append(rows, []string{
			FormatInteger(c.GetStep()), sourceName(c.GetSource()), c.GetCheckpoint().GetCheckpointId(),
			OrDash(c.GetParent().GetCheckpointId()), FormatTime(c.GetCreateTime()),
			OrDash(strings.Join(c.GetNext(), ", ")),
		})
	}
	if !values {
		p.PrintTable(rows)
		return
	}
	for i, c := range all {
		p.PrintTable([][]string{rows[0], rows[i+1]})
		p.PrintMembers("  ", jsontext.SplitObject(c.GetValues().GetJson()))
	}
}
