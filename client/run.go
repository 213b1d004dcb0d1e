package client

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Run is what to run.
type Run struct {
	// Graph is run on a thread, which is made if it is not there. "" = the graph of the thread.
	Graph  string
	Thread string
	// Input is written to the state first; a json.RawMessage is taken as it is.
	Input any
	// RequestID makes the call repeatable: the same id with the same content starts one run. "" = a
	// repeated call may start another one.
	RequestID string
	// Change changes the request where these fields are not enough; nil = nothing.
	Change func(*graphdv1.RunSpec)
}

func (r *Run) spec() (*graphdv1.RunSpec, error) {
	s := &graphdv1.RunSpec{ThreadId: r.Thread, CreateThread: true, Graph: r.Graph}
	input, err := encodePayload("run.input", r.Input)
	if err != nil {
		return nil, err
	}
	if input != nil {
		s.Start = &graphdv1.RunSpec_Input{Input: input}
	}
	if r.Change != nil {
		r.Change(s)
	}
	return s, nil
}

// Outcome is a run that has stopped: it has ended, or waits for people.
type Outcome struct {
	Run *graphdv1.Run
	// Questions are open: the run goes on with their answers.
	Questions []*graphdv1.Interrupt
}

// Waits reports whether the run waits for people.
func (o *Outcome) Waits() bool {
	return o.Run.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED
}

// Start starts a run, and returns when it is stored.
func (c *Client) Start(ctx context.Context, r Run) (*graphdv1.Run, error) {
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	run, err := c.Graphs().StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: r.RequestID})
	return run, toError(ctx, err)
}

// waitTime is how long a call waits on the server for the end of a run. A run that takes longer is
// waited for again.
const waitTime = 5 * time.Minute

// Invoke starts a run, and waits until it has ended or asks. A run that has failed is no error: its
// state says so.
func (c *Client) Invoke(ctx context.Context, r Run) (*Outcome, error) {
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	run, err := c.Graphs().StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: r.RequestID, Wait: durationpb.New(waitTime)})
	if err != nil {
		return nil, toError(ctx, err)
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
		run, err = c.Graphs().WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
		if err != nil {
			return nil, toError(ctx, err)
		}
	}
	o := &Outcome{Run: run}
	if !o.Waits() {
		return o, nil
	}
	open, err := c.Interrupts().ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: run.GetThreadId()})
	o.Questions = open.GetInterrupts()
	return o, toError(ctx, err)
}

func isStopped(s graphdv1.RunState) bool {
	switch s {
	case graphdv1.RunState_RUN_STATE_INTERRUPTED, graphdv1.RunState_RUN_STATE_SUCCEEDED, graphdv1.RunState_RUN_STATE_FAILED,
		graphdv1.RunState_RUN_STATE_CANCELLED, graphdv1.RunState_RUN_STATE_TIMED_OUT, graphdv1.RunState_RUN_STATE_SUPERSEDED:
		return true
	default:
		return false
	}
}
