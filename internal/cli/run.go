package cli

import (
	"context"
	"crypto/rand"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// RunOptions are the flags of `run`.
type RunOptions struct {
	Graph    string // NAME or NAME@VERSION
	Thread   string // "" = made by the server
	Input    string // "" = go on with what the thread has left to do
	Context  string
	From     string // checkpoint to run again from
	Events   []string
	Before   []string // breakpoints
	After    []string
	Metadata []string // KEY=VALUE
	OnBusy   string
	OnOpen   string

	StepLimit uint32
	Timeout   time.Duration
	Detach    bool
	RequestID string
}

// Run starts a run and shows it until it stops.
func (s *Session) Run(ctx context.Context, o RunOptions) error {
	spec, err := s.runSpec(o)
	if err != nil {
		return err
	}
	chosen, err := s.selection(o.Events)
	if err != nil {
		return err
	}
	id := requestID(o.RequestID)
	if o.Detach {
		run, err := s.Graphs.StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: id})
		if err != nil {
			return err
		}
		return s.detached(run)
	}
	req := &graphdv1.StreamRequest{Run: spec, Filter: chosen.filter, RequestId: id}
	return s.stream(ctx, chosen, func(ctx context.Context) (eventStream, error) {
		return s.Graphs.Stream(ctx, req)
	})
}

// requestID makes a call repeatable, so that it may be tried again when the
// answer was lost.
func requestID(given string) string {
	if given == "" {
		return rand.Text()
	}
	return given
}

func (s *Session) runSpec(o RunOptions) (*graphdv1.RunSpec, error) {
	spec := &graphdv1.RunSpec{
		ThreadId: o.Thread, CreateThread: true, StepLimit: o.StepLimit,
		InterruptBefore: o.Before, InterruptAfter: o.After,
	}
	spec.Graph, spec.GraphVersion = graphName(o.Graph)
	if o.Timeout > 0 {
		spec.RunTimeout = durationpb.New(o.Timeout)
	}
	if o.Input != "" && o.From != "" {
		return nil, Usagef("--input and --from-checkpoint do not go together")
	}
	if o.Input != "" {
		input, err := s.Value("--input", o.Input)
		if err != nil {
			return nil, err
		}
		spec.Start = &graphdv1.RunSpec_Input{Input: input}
	}
	if o.From != "" {
		spec.Start = &graphdv1.RunSpec_ReplayFrom{ReplayFrom: &graphdv1.CheckpointRef{CheckpointId: o.From}}
	}
	var err error
	if o.Context != "" {
		if spec.Context, err = s.Value("--context", o.Context); err != nil {
			return nil, err
		}
	}
	if spec.Metadata, err = labels("--metadata", o.Metadata); err != nil {
		return nil, err
	}
	if spec.Concurrency, err = busyPolicy(o.OnBusy); err != nil {
		return nil, err
	}
	spec.OpenInterrupts, err = openPolicy(o.OnOpen)
	return spec, err
}

// stream follows one run from its opening and ends as the run stands.
func (s *Session) stream(
	ctx context.Context, chosen selection, open func(context.Context) (eventStream, error),
) error {
	f := &follow{selection: chosen, ofRun: true}
	end, err := s.follow(ctx, f, open)
	if err != nil {
		return err
	}
	return s.concluded(ctx, f.thread, end)
}

// detached shows a run that nobody follows yet.
func (s *Session) detached(run *graphdv1.Run) error {
	if s.Format != Text {
		return s.message(run)
	}
	p := s.page()
	p.line("thread %s  run %s  %s", run.GetThreadId(), run.GetRunId(), stateWord(run.GetState()))
	p.line("follow it with\n  %s", s.Self.Command("watch", run.GetThreadId(), "--run", run.GetRunId()))
	return p.err
}
