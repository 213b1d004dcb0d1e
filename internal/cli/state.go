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

// State shows the state of a thread and what comes next.
func (s *Session) State(ctx context.Context, o StateOptions) error {
	req := &graphdv1.GetStateRequest{ThreadId: o.Thread, Keys: o.Keys, Subgraphs: o.Subgraphs}
	if o.Checkpoint != "" {
		req.At = &graphdv1.CheckpointRef{CheckpointId: o.Checkpoint}
	}
	state, err := s.Threads.GetState(ctx, req)
	if err != nil {
		return err
	}
	return s.snapshot(ctx, state)
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

// Update writes to the state of a thread and shows the new one.
func (s *Session) Update(ctx context.Context, o UpdateOptions) error {
	values, err := s.Value("--values", o.Values)
	if err != nil {
		return err
	}
	req := &graphdv1.UpdateStateRequest{
		ThreadId: o.Thread, Values: values, AsNode: o.AsNode,
		SupersedeInterrupts: o.Supersede, RequestId: requestID(o.RequestID),
	}
	if o.Checkpoint != "" {
		req.At = &graphdv1.CheckpointRef{CheckpointId: o.Checkpoint}
	}
	state, err := s.Threads.UpdateState(ctx, req)
	if err != nil {
		return err
	}
	return s.snapshot(ctx, state)
}

func (s *Session) snapshot(ctx context.Context, state *graphdv1.StateSnapshot) error {
	if s.Format != Text {
		return s.message(state)
	}
	p := s.page()
	s.lookBack(ctx, p, state.GetInterrupts())
	p.snapshot("", state)
	return p.err
}

func (p *page) snapshot(indent string, state *graphdv1.StateSnapshot) {
	if state.GetCheckpoint() == nil {
		p.line("%s%s", indent, p.paint(dim, "no checkpoint yet"))
	} else {
		p.line("%s%s", indent, p.paint(dim, "checkpoint "+state.GetCheckpoint().GetCheckpointId()+
			"  step "+number(state.GetStep())+"  "+sourceWord(state.GetSource())+"  "+clock(state.GetCreateTime())))
	}
	p.pairs(indent, members(state.GetValues().GetJson()))
	next := strings.Join(state.GetNext(), ", ")
	p.line("%s%s %s", indent, p.paint(bold, "next:"), orDash(next))
	p.failures(indent+"  ", state.GetTasks())
	for _, t := range state.GetTasks() {
		if t.GetResult() != nil {
			p.line("%s  %s is done: %s", indent, t.GetNode(), p.value(indent+"    ", t.GetResult().GetJson()))
		}
		if t.GetState() != nil {
			p.line("%s  %s", indent, p.paint(bold, place(t.GetNamespace(), "")))
			p.snapshot(indent+"    ", t.GetState())
		}
	}
	for _, q := range state.GetInterrupts() {
		p.question(q)
	}
}

// failures shows why tasks failed; what failed for the same reason is told once,
// with the names of all its nodes.
func (p *page) failures(indent string, tasks []*graphdv1.SnapshotTask) {
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
		p.failure(indent, f)
	}
}

// HistoryOptions are the flags of `history`.
type HistoryOptions struct {
	Thread string
	Limit  int // 0 = all
	Values bool
}

// History lists the checkpoints of a thread, newest first.
func (s *Session) History(ctx context.Context, o HistoryOptions) error {
	all, err := s.checkpoints(ctx, o)
	if err != nil {
		return err
	}
	if s.Format != Text {
		return list(s, &graphdv1.ListCheckpointsResponse{Checkpoints: all}, all)
	}
	p := s.page()
	p.history(all, o.Values)
	return p.err
}

func (s *Session) checkpoints(ctx context.Context, o HistoryOptions) ([]*graphdv1.StateSnapshot, error) {
	return collect(o.Limit, func(token string, size int32) ([]*graphdv1.StateSnapshot, string, error) {
		resp, err := s.Threads.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{
			ThreadId: o.Thread, PageSize: size, PageToken: token, IncludeValues: o.Values,
		})
		return resp.GetCheckpoints(), resp.GetNextPageToken(), err
	})
}

func (p *page) history(all []*graphdv1.StateSnapshot, values bool) {
	rows := [][]string{{"STEP", "SOURCE", "CHECKPOINT", "PARENT", "TIME", "NEXT"}}
	for _, c := range all {
		rows = append(rows, []string{
			number(c.GetStep()), sourceWord(c.GetSource()), c.GetCheckpoint().GetCheckpointId(),
			orDash(c.GetParent().GetCheckpointId()), clock(c.GetCreateTime()),
			orDash(strings.Join(c.GetNext(), ", ")),
		})
	}
	if !values {
		p.table(rows)
		return
	}
	for i, c := range all {
		p.table([][]string{rows[0], rows[i+1]})
		p.pairs("  ", members(c.GetValues().GetJson()))
	}
}

// collect reads pages until there are limit elements; 0 = all there are.
func collect[T any](limit int, page func(token string, size int32) ([]T, string, error)) ([]T, error) {
	const most = 500
	all, token := []T{}, ""
	for {
		size := int32(most)
		if left := limit - len(all); limit > 0 && left < most {
			size = int32(left)
		}
		some, next, err := page(token, size)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if token = next; token == "" || (limit > 0 && len(all) >= limit) {
			return all, nil
		}
	}
}
