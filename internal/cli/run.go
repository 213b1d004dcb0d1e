package cli

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// RunOptions are the flags of `run`.
type RunOptions struct {
	Graph    string // NAME or NAME@VERSION
	Thread   string // "" = made by the server
	Input    string // "" = continue with the next nodes of the thread
	Ask      bool   // for the input, at the terminal
	Context  string
	From     string // checkpoint from which to run again
	Events   []string
	Before   []string // breakpoints
	After    []string
	Metadata []string // KEY=VALUE
	OnBusy   string
	OnOpen   string

	StepLimit uint32
	Timeout   time.Duration
	Delay     time.Duration
	Detach    bool
	RequestID string
}

// Run starts a run and shows it until it stops. Errors: *exit.UsageError, gRPC
// statuses, and those of Viewer.ShowRun.
func (s *Session) Run(ctx context.Context, o RunOptions) error {
	spec, err := buildRunSpec(s.In, o)
	if err != nil {
		return err
	}
	chosen, err := stream.NewSelection(o.Events, s.Format)
	if err != nil {
		return err
	}
	if o.Ask {
		if spec.Start, err = s.askInput(ctx, o.Graph); err != nil {
			return err
		}
	}
	id := requestIDOrNew(o.RequestID)
	if o.Detach {
		run, err := s.Graphs.StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: id})
		if err != nil {
			return err
		}
		return s.showDetached(run)
	}
	req := &graphdv1.StreamRequest{Run: spec, Filter: chosen.Filter, RequestId: id}
	return s.newViewer().ShowRun(ctx, chosen, func(ctx context.Context) (stream.EventStream, error) {
		return s.Graphs.Stream(ctx, req)
	})
}

// requestIDOrNew returns the given request id or a new id, so that the call can be
// repeated when its answer was lost.
func requestIDOrNew(given string) string {
	if given == "" {
		return rand.Text()
	}
	return given
}

// buildRunSpec makes the request that the options describe. The error is an
// *exit.UsageError for options that do not go together.
func buildRunSpec(in io.Reader, o RunOptions) (*graphdv1.RunSpec, error) {
	spec := &graphdv1.RunSpec{
		ThreadId: o.Thread, CreateThread: true, StepLimit: o.StepLimit,
		InterruptBefore: o.Before, InterruptAfter: o.After,
	}
	spec.Graph, spec.GraphVersion = argument.SplitGraphName(o.Graph)
	if o.Timeout > 0 {
		spec.RunTimeout = durationpb.New(o.Timeout)
	}
	if o.Delay > 0 {
		spec.BeginAfter = durationpb.New(o.Delay)
	}
	if o.Input != "" {
		input, err := argument.ReadValue(in, "--input", o.Input)
		if err != nil {
			return nil, err
		}
		spec.Start = &graphdv1.RunSpec_Input{Input: input}
	}
	if from := (&graphdv1.CheckpointRef{CheckpointId: o.From}); o.From != "" && (o.Input != "" || o.Ask) {
		spec.InputAt = from
	} else if o.From != "" {
		spec.Start = &graphdv1.RunSpec_ReplayFrom{ReplayFrom: from}
	}
	var err error
	if o.Context != "" {
		if spec.Context, err = argument.ReadValue(in, "--run-context", o.Context); err != nil {
			return nil, err
		}
	}
	if spec.Metadata, err = argument.ParseLabels("--metadata", o.Metadata); err != nil {
		return nil, err
	}
	if spec.Concurrency, err = argument.ParseBusyPolicy(o.OnBusy); err != nil {
		return nil, err
	}
	spec.OpenInterrupts, err = argument.ParseOpenPolicy(o.OnOpen)
	return spec, err
}

// showDetached shows a run that is not followed.
func (s *Session) showDetached(run *graphdv1.Run) error {
	if s.Format != output.Text {
		return s.ShowMessage(run)
	}
	p := s.NewPrinter()
	p.PrintLine("thread %s  run %s  %s", run.GetThreadId(), run.GetRunId(), output.RunStateName(run.GetState()))
	p.PrintLine("follow it with\n  %s", s.Invocation.CommandLine("watch", run.GetThreadId(), "--run", run.GetRunId()))
	return p.WriteError()
}
