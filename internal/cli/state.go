package cli

import (
	"context"
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// StateOptions are the flags of `state`.
type StateOptions struct {
	Thread     string
	Checkpoint string // "" = the newest
	Keys       []string
	Subgraphs  bool
}

// ShowState shows the state of a thread and what comes next.
func (s *Session) ShowState(ctx context.Context, o StateOptions) error {
	req := &graphdv1.GetStateRequest{ThreadId: o.Thread, Keys: o.Keys, Subgraphs: o.Subgraphs}
	if o.Checkpoint != "" {
		req.At = &graphdv1.CheckpointRef{CheckpointId: o.Checkpoint}
	}
	state, err := s.Threads.GetState(ctx, req)
	if err != nil {
		return err
	}
	return s.showSnapshot(ctx, state)
}

// UpdateOptions are the flags of `update`.
type UpdateOptions struct {
	Thread     string
	Values     string
	AsNode     string
	Checkpoint string // to build on, "" = the newest
	Supersede  bool
	RequestID  string
}

// UpdateState writes to the state of a thread and shows the new one.
func (s *Session) UpdateState(ctx context.Context, o UpdateOptions) error {
	values, err := readValue(s.In, "--values", o.Values)
	if err != nil {
		return err
	}
	req := &graphdv1.UpdateStateRequest{
		ThreadId: o.Thread, Values: values, AsNode: o.AsNode,
		SupersedeInterrupts: o.Supersede, RequestId: requestIDOrNew(o.RequestID),
	}
	if o.Checkpoint != "" {
		req.At = &graphdv1.CheckpointRef{CheckpointId: o.Checkpoint}
	}
	state, err := s.Threads.UpdateState(ctx, req)
	if err != nil {
		return err
	}
	return s.showSnapshot(ctx, state)
}

func (s *Session) showSnapshot(ctx context.Context, state *graphdv1.StateSnapshot) error {
	if s.Format != Text {
		return s.showMessage(state)
	}
	p := s.newPrinter()
	p.recordReplaced(s.fetchReplaced(ctx, state.GetInterrupts())...)
	p.printSnapshot("", state)
	return p.writeError()
}

func (p *printer) printSnapshot(indent string, state *graphdv1.StateSnapshot) {
	if state.GetCheckpoint() == nil {
		p.printLine("%s%s", indent, p.colorize(dim, "no checkpoint yet"))
	} else {
		p.printLine("%s%s", indent, p.colorize(dim, "checkpoint "+state.GetCheckpoint().GetCheckpointId()+
			"  step "+formatInteger(state.GetStep())+"  "+sourceName(state.GetSource())+"  "+formatTime(state.GetCreateTime())))
	}
	p.printMembers(indent, splitObject(state.GetValues().GetJson()))
	next := strings.Join(state.GetNext(), ", ")
	p.printLine("%s%s %s", indent, p.colorize(bold, "next:"), orDash(next))
	p.printFailures(indent+"  ", state.GetTasks())
	for _, t := range state.GetTasks() {
		if t.GetResult() != nil {
			p.printLine("%s  %s is done: %s", indent, t.GetNode(), p.formatValue(indent+"    ", t.GetResult().GetJson()))
		}
		if t.GetState() != nil {
			p.printLine("%s  %s", indent, p.colorize(bold, nodePath(t.GetNamespace(), "")))
			p.printSnapshot(indent+"    ", t.GetState())
		}
	}
	for _, q := range state.GetInterrupts() {
		p.printInterrupt(q)
	}
}

// printFailures shows why tasks failed; what failed for the same reason is told once,
// with the names of all its nodes.
func (p *printer) printFailures(indent string, tasks []*graphdv1.SnapshotTask) {
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
		p.printFailure(indent, f)
	}
}

// HistoryOptions are the flags of `history`.
type HistoryOptions struct {
	Thread string
	Limit  int // 0 = all
	Values bool
}

// ShowHistory lists the checkpoints of a thread, newest first.
func (s *Session) ShowHistory(ctx context.Context, o HistoryOptions) error {
	all, err := s.listCheckpoints(ctx, o.Thread, o.Limit, o.Values)
	if err != nil {
		return err
	}
	if s.Format != Text {
		return showList(&s.Output, &graphdv1.ListCheckpointsResponse{Checkpoints: all}, all)
	}
	p := s.newPrinter()
	p.printHistory(all, o.Values)
	return p.writeError()
}

func (p *printer) printHistory(all []*graphdv1.StateSnapshot, values bool) {
	rows := [][]string{{"STEP", "SOURCE", "CHECKPOINT", "PARENT", "TIME", "NEXT"}}
	for _, c := range all {
		rows = append(rows, []string{
			formatInteger(c.GetStep()), sourceName(c.GetSource()), c.GetCheckpoint().GetCheckpointId(),
			orDash(c.GetParent().GetCheckpointId()), formatTime(c.GetCreateTime()),
			orDash(strings.Join(c.GetNext(), ", ")),
		})
	}
	if !values {
		p.printTable(rows)
		return
	}
	for i, c := range all {
		p.printTable([][]string{rows[0], rows[i+1]})
		p.printMembers("  ", splitObject(c.GetValues().GetJson()))
	}
}

