package client

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Run is what to run.
type Run struct {
	// Graph is run on a thread, which is made if it is not there. "" = the graph of the thread.
	Graph string
	// Thread is its id. "" = a new thread.
	Thread string
	// Input is written to the state first; a json.RawMessage is taken as it is. nil = the thread goes
	// on from its state.
	Input any
	// RequestID makes the call repeatable, also by another process: the same id with the same content
	// starts one run. "" = an id of its own for each call.
	RequestID string
	// Change changes the request where these fields are not enough; nil = nothing.
	Change func(*graphdv1.RunSpec)
}

// request returns the request of a run, and its id.
func (r *Run) request() (*graphdv1.RunSpec, string, error) {
	s := &graphdv1.RunSpec{ThreadId: r.Thread, CreateThread: true, Graph: r.Graph}
	input, err := encodePayload("run.input", r.Input)
	if err != nil {
		return nil, "", err
	}
	if input != nil {
		s.Start = &graphdv1.RunSpec_Input{Input: input}
	}
	if r.Change != nil {
		r.Change(s)
	}
	return s, requestID(r.RequestID), nil
}

// requestID returns an id, or one of its own for a call without: a call that is repeated over a
// broken connection must not begin a second run.
func requestID(given string) string {
	if given != "" {
		return given
	}
	return rand.Text()
}

// Start starts a run, and returns when it is stored.
func (c *Client) Start(ctx context.Context, r Run) (*graphdv1.Run, error) {
	spec, id, err := r.request()
	if err != nil {
		return nil, err
	}
	return repeat(ctx, c, func() (*graphdv1.Run, error) {
		return c.Graphs().StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: id})
	})
}

// waitTime is how long a call waits on the server for the end of a run. A run that takes longer is
// waited for again.
const waitTime = 5 * time.Minute

// Invoke starts a run, and waits until it has ended or asks, also over broken connections. A run
// that has failed is no error of the call: see [Outcome.Err] and [Output].
func (c *Client) Invoke(ctx context.Context, r Run) (*Outcome, error) {
	spec, id, err := r.request()
	if err != nil {
		return nil, err
	}
	run, err := repeat(ctx, c, func() (*graphdv1.Run, error) {
		return c.Graphs().StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: id, Wait: durationpb.New(waitTime), View: graphdv1.RunView_RUN_VIEW_INTERRUPTS})
	})
	if err != nil {
		return nil, err
	}
	return c.waitForStop(ctx, run)
}

// Wait waits until a run has ended or asks. "" = the newest run of the thread.
func (c *Client) Wait(ctx context.Context, thread, run string) (*Outcome, error) {
	return c.waitForStop(ctx, &graphdv1.Run{ThreadId: thread, RunId: run})
}

func (c *Client) waitForStop(ctx context.Context, run *graphdv1.Run) (*Outcome, error) {
	for !isStopped(run.GetState()) {
		var err error
		request := &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId(), View: graphdv1.RunView_RUN_VIEW_INTERRUPTS}
		if run, err = repeat(ctx, c, func() (*graphdv1.Run, error) { return c.Graphs().WaitRun(ctx, request) }); err != nil {
			return nil, err
		}
	}
	o := &Outcome{Run: run}
	if !o.Waits() {
		return o, nil
	}
	if len(run.GetInterrupts()) == len(run.GetOpenInterruptIds()) && len(run.GetInterrupts()) < mostInRun {
		o.Questions = slices.DeleteFunc(slices.Clone(run.GetInterrupts()), isBreakpoint)
		return o, nil
	}
	var err error
	o.Questions, err = c.listQuestions(ctx, run.GetThreadId())
	return o, err
}

// mostInRun is how many interrupts a run has in a message at most.
const mostInRun = 500

func isStopped(s graphdv1.RunState) bool {
	switch s {
	case graphdv1.RunState_RUN_STATE_INTERRUPTED, graphdv1.RunState_RUN_STATE_SUCCEEDED, graphdv1.RunState_RUN_STATE_FAILED,
		graphdv1.RunState_RUN_STATE_CANCELLED, graphdv1.RunState_RUN_STATE_TIMED_OUT, graphdv1.RunState_RUN_STATE_SUPERSEDED:
		return true
	default:
		return false
	}
}
