package cli

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// StateOptions are the flags of `state`.
type StateOptions struct {
	Thread     string
	Checkpoint string // "" = the newest
	Keys       []string
	Subgraphs  bool
}

// ShowState shows the state of a thread and its next nodes. Errors: gRPC statuses,
// and those of the output.
func (s *Session) ShowState(ctx context.Context, o StateOptions) error {
	req := &graphdv1.GetStateRequest{ThreadId: o.Thread, Keys: o.Keys, Subgraphs: o.Subgraphs}
	if o.Checkpoint != "" {
		req.At = &graphdv1.CheckpointRef{CheckpointId: o.Checkpoint}
	}
	state, err := s.Threads.GetState(ctx, req)
	if err != nil {
		return err
	}
	return s.showSnapshot(ctx, o.Thread, state)
}

// UpdateOptions are the flags of `update`.
type UpdateOptions struct {
	Thread     string
	Values     string
	AsNode     string
	Checkpoint string // on which to build, "" = the newest
	Supersede  bool
	RequestID  string
}

// UpdateState writes to the state of a thread and shows the new state. Errors:
// *exit.UsageError, gRPC statuses, and those of the output.
func (s *Session) UpdateState(ctx context.Context, o UpdateOptions) error {
	values, err := argument.ReadValue(s.In, "--values", o.Values)
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
	return s.showSnapshot(ctx, o.Thread, state)
}

func (s *Session) showSnapshot(ctx context.Context, thread string, state *graphdv1.StateSnapshot) error {
	if s.Format != output.Text {
		return s.ShowMessage(state)
	}
	p := s.NewPrinter()
	p.RecordReplaced(s.FetchReplaced(ctx, state.GetInterrupts())...)
	p.PrintSnapshot("", state)
	if state.GetCheckpoint() != nil && state.GetValues() == nil {
		// The answer to an update leaves a state out that it has no room for.
		p.PrintStateOmission("", thread, state.GetCheckpoint(), s.Invocation.CommandLine)
	}
	return p.WriteError()
}

// HistoryOptions are the flags of `history`.
type HistoryOptions struct {
	Thread string
	Limit  int // 0 = all
	Values bool
}

// ShowHistory lists the checkpoints of a thread, newest first. Errors: gRPC
// statuses, and those of the output.
func (s *Session) ShowHistory(ctx context.Context, o HistoryOptions) error {
	all, err := s.ListCheckpoints(ctx, o.Thread, o.Limit, o.Values)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return output.ShowList(&s.Output, &graphdv1.ListCheckpointsResponse{Checkpoints: all}, all)
	}
	p := s.NewPrinter()
	p.PrintHistory(all, o.Values)
	return p.WriteError()
}
