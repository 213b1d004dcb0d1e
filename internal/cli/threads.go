package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// ThreadsOptions are the flags of `threads list`.
type ThreadsOptions struct {
	State  string // idle, busy, interrupted, failed; "" = any
	Filter string
	Limit  int // 0 = all
}

// ListThreads lists threads, last changed first, with a filter last created first. Errors:
// *exit.UsageError, gRPC statuses, and those of the output.
func (s *Session) ListThreads(ctx context.Context, o ThreadsOptions) error {
	filter := o.Filter
	if o.State != "" {
		n, err := argument.ParseEnum("--state", o.State, graphdv1.ThreadState_value, "THREAD_STATE_")
		if err != nil {
			return err
		}
		word := strings.TrimPrefix(graphdv1.ThreadState(n).String(), "THREAD_STATE_")
		filter = argument.JoinConditions(filter, "state = "+strconv.Quote(word))
	}
	all, err := client.CollectPages(o.Limit, func(token string, size int32) ([]*graphdv1.Thread, string, error) {
		resp, err := s.Threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{
			PageSize: size, PageToken: token, Filter: filter,
		})
		return resp.GetThreads(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return output.ShowList(&s.Output, &graphdv1.ListThreadsResponse{Threads: all}, all)
	}
	p := s.NewPrinter()
	rows := [][]string{{"THREAD", "STATE", "GRAPH", "VERSION", "CHANGED", "LABELS"}}
	for _, t := range all {
		rows = append(rows, []string{
			t.GetThreadId(), output.ThreadStateName(t.GetState()) + formatFault(t.GetFault()), output.OrDash(t.GetGraph()), output.OrDash(t.GetGraphVersion()),
			output.FormatAge(t.GetUpdateTime(), time.Now()) + " ago", output.FormatLabels(t.GetMetadata()),
		})
	}
	p.PrintTable(rows)
	return p.WriteError()
}

// formatFault returns a description of the fault of a thread, "" if it has none.
func formatFault(f *graphdv1.ThreadFault) string {
	if f == nil {
		return ""
	}
	return ", put off after " + strconv.Itoa(int(f.GetFailures())) + " failures"
}

// DeleteThread removes a thread. Errors: gRPC statuses, and those of the output.
func (s *Session) DeleteThread(ctx context.Context, thread string, force bool) error {
	_, err := s.Threads.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: thread, Force: force})
	if err != nil {
		return err
	}
	if s.Format == output.Text {
		p := s.NewPrinter()
		p.PrintLine("deleted %s", thread)
		return p.WriteError()
	}
	return nil
}

// ForkOptions are the flags of `threads fork`.
type ForkOptions struct {
	Source     string
	Checkpoint string // "" = the newest
	Thread     string // "" = made by the server
	RequestID  string
}

// ForkThread copies a thread up to a checkpoint. Errors: gRPC statuses, and those
// of the output.
func (s *Session) ForkThread(ctx context.Context, o ForkOptions) error {
	req := &graphdv1.ForkThreadRequest{
		SourceThreadId: o.Source, ThreadId: o.Thread, RequestId: requestIDOrNew(o.RequestID),
	}
	if o.Checkpoint != "" {
		req.At = &graphdv1.CheckpointRef{CheckpointId: o.Checkpoint}
	}
	t, err := s.Threads.ForkThread(ctx, req)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(t)
	}
	p := s.NewPrinter()
	from := "its newest checkpoint"
	if o.Checkpoint != "" {
		from = "checkpoint " + o.Checkpoint
	}
	p.PrintLine("thread %s continues %s from %s, as checkpoint %s",
		t.GetThreadId(), o.Source, from, output.OrDash(t.GetCheckpoint().GetCheckpointId()))
	return p.WriteError()
}

// CopyOptions are the flags of `threads copy`.
type CopyOptions struct {
	Source    string
	Thread    string // "" = made by the server
	RequestID string
}

// CopyThread copies a thread as it is. Errors: gRPC statuses, and those of the
// output.
func (s *Session) CopyThread(ctx context.Context, o CopyOptions) error {
	t, err := s.Threads.CopyThread(ctx, &graphdv1.CopyThreadRequest{
		SourceThreadId: o.Source, ThreadId: o.Thread, RequestId: requestIDOrNew(o.RequestID),
	})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(t)
	}
	p := s.NewPrinter()
	p.PrintLine("thread %s is a copy of %s, %s", t.GetThreadId(), o.Source, output.ThreadStateName(t.GetState()))
	return p.WriteError()
}

// PruneThread removes the oldest part of a history. Errors: gRPC statuses, and
// those of the output.
func (s *Session) PruneThread(ctx context.Context, thread string, keep int32) error {
	t, err := s.Threads.PruneThread(ctx, &graphdv1.PruneThreadRequest{ThreadId: thread, KeepCheckpoints: keep})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(t)
	}
	p := s.NewPrinter()
	p.PrintLine("pruned %s", thread)
	return p.WriteError()
}

// CancelOptions are the flags of `cancel`.
type CancelOptions struct {
	Thread   string
	Run      string // "" = the active run
	Rollback bool
	Drain    bool
	Pause    bool
	Reason   string
	NoWait   bool
}

// CancelRun asks a run to stop. Errors: gRPC statuses, and those of the output.
func (s *Session) CancelRun(ctx context.Context, o CancelOptions) error {
	req := &graphdv1.CancelRunRequest{
		ThreadId: o.Thread, RunId: o.Run, Reason: o.Reason, Wait: !o.NoWait,
		Action: graphdv1.CancelRunRequest_ACTION_KEEP,
	}
	switch {
	case o.Rollback:
		req.Action = graphdv1.CancelRunRequest_ACTION_ROLLBACK
	case o.Drain:
		req.Action = graphdv1.CancelRunRequest_ACTION_DRAIN
	case o.Pause:
		req.Action = graphdv1.CancelRunRequest_ACTION_PAUSE
	}
	run, err := s.Graphs.CancelRun(ctx, req)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(run)
	}
	p := s.NewPrinter()
	switch state := run.GetState(); {
	case stream.IsFinal(state) && state != graphdv1.RunState_RUN_STATE_CANCELLED && !o.Drain && !o.Pause:
		p.PrintLine("run %s of thread %s had already %s; nothing to cancel", run.GetRunId(), run.GetThreadId(), output.RunStateName(state))
	default:
		p.PrintLine("run %s of thread %s is %s", run.GetRunId(), run.GetThreadId(), output.RunStateName(state))
	}
	return p.WriteError()
}
