package transport_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/stream"
)

// startAsking serves an engine.
func startAsking(t *testing.T, e *engine.Engine, change ...func(*transport.Options)) testClient {
	t.Helper()
	options := append([]func(*transport.Options){func(o *transport.Options) {
		o.Engine = e
		o.Follow = func(r runtime.FollowRequest) stream.Follower { return e.Follow(r) }
	}}, change...)
	return startServer(t, newFakeEngine(), options...)
}

func startWaiting(thread string, view graphdv1.RunView) *graphdv1.StartRunRequest {
	return &graphdv1.StartRunRequest{
		Run: &graphdv1.RunSpec{
			ThreadId: thread, CreateThread: true, Graph: "g", Start: &graphdv1.RunSpec_Input{Input: newJSONPayload(`{"text":"a"}`)},
		},
		RequestId: "start-" + thread, Wait: durationpb.New(time.Hour), View: view,
	}
}

// TestRunViews: each call shows as much of a run that waits as its view says, whether this process
// has seen it stop or reads it from the store.
func TestRunViews(t *testing.T) {
	e := newEngineOf(t, nodeFuncs{"first": askOnce(`{"pay":100}`), "second": askOnce(`{"pay":100}`)}, engine.Options{})
	c := startAsking(t, e)
	_, err := c.StartRun(t.Context(), startWaiting("t1", 0))
	require.NoError(t, err)
	listed, err := c.ListInterrupts(t.Context(), &graphdv1.ListInterruptsRequest{ThreadId: "t1"})
	require.NoError(t, err)
	require.Len(t, listed.GetInterrupts(), 2)
	for view := range graphdv1.RunView_name {
		view := graphdv1.RunView(view)
		calls := map[string]func() (*graphdv1.Run, error){
			"StartRun": func() (*graphdv1.Run, error) {
				return c.StartRun(t.Context(), startWaiting("live-"+view.String(), view))
			},
			"repeated StartRun": func() (*graphdv1.Run, error) { return c.StartRun(t.Context(), startWaiting("t1", view)) },
			"ResumeRun": func() (*graphdv1.Run, error) {
				open, err := c.StartRun(t.Context(), startWaiting("resumed-"+view.String(), view))
				require.NoError(t, err)
				return c.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{
					Resume: &graphdv1.ResumeSpec{
						ThreadId: open.GetThreadId(), Coverage: graphdv1.ResumeCoverage_RESUME_COVERAGE_PARTIAL,
						Responses: []*graphdv1.InterruptResponse{{
							InterruptId: open.GetOpenInterruptIds()[0], Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload(`"yes"`)},
						}},
					},
					Wait: durationpb.New(time.Hour), View: view,
				})
			},
			"WaitRun": func() (*graphdv1.Run, error) {
				return c.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1", View: view})
			},
			"GetRun": func() (*graphdv1.Run, error) {
				return c.GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", View: view})
			},
		}
		for name, call := range calls {
			t.Run(view.String()+"/"+name, func(t *testing.T) {
				run, err := call()
				require.NoError(t, err)
				require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
				requireView(t, c, run, view, name == "GetRun" || name == "WaitRun")
			})
		}
	}
}

// requireView requires that a run which waits shows what a view says, and as lists of interrupts do.
func requireView(t *testing.T, c testClient, run *graphdv1.Run, view graphdv1.RunView, hasEtags bool) {
	t.Helper()
	if view == graphdv1.RunView_RUN_VIEW_FULL {
		require.JSONEq(t, `{"text":"a"}`, run.GetOutput().GetJson())
	} else {
		require.Nil(t, run.GetOutput())
	}
	if view < graphdv1.RunView_RUN_VIEW_INTERRUPTS {
		require.Empty(t, run.GetInterrupts())
		return
	}
	listed, err := c.ListInterrupts(t.Context(), &graphdv1.ListInterruptsRequest{ThreadId: run.GetThreadId()})
	require.NoError(t, err)
	require.Len(t, run.GetOpenInterruptIds(), len(listed.GetInterrupts()))
	require.Len(t, run.GetInterrupts(), len(listed.GetInterrupts()))
	for i, want := range listed.GetInterrupts() {
		require.Equal(t, want.GetInterruptId(), run.GetOpenInterruptIds()[i])
		if !hasEtags {
			want.Etag = ""
		}
		require.Truef(t, proto.Equal(want, run.GetInterrupts()[i]), "%v\n%v", want, run.GetInterrupts()[i])
	}
}

// readCounter counts how often the interrupts or the output of a run are read.
type readCounter struct {
	*engine.Engine

	reads atomic.Int64
}

func (c *readCounter) OpenInterrupts(
	ctx context.Context, memory *runtime.CallMemory, thread string, most int,
) ([]checkpoint.Interrupt, bool, error) {
	c.reads.Add(1)
	return c.Engine.OpenInterrupts(ctx, memory, thread, most)
}

func (c *readCounter) OutputOfWaiting(ctx context.Context, memory *runtime.CallMemory, run *checkpoint.Run) (payload.JSON, error) {
	c.reads.Add(1)
	return c.Engine.OutputOfWaiting(ctx, memory, run)
}

// TestRunViewOfAWaitReadsNothing: a call that waits for the stop of a run shows what this process has
// made of it.
func TestRunViewOfAWaitReadsNothing(t *testing.T) {
	e := &readCounter{Engine: newEngineOf(t, nodeFuncs{"only": askOnce(`{"pay":100}`)}, engine.Options{})}
	c := startAsking(t, e.Engine, func(o *transport.Options) { o.Engine = e })
	run, err := c.StartRun(t.Context(), startWaiting("t1", graphdv1.RunView_RUN_VIEW_FULL))
	require.NoError(t, err)
	require.Len(t, run.GetInterrupts(), 1)
	require.JSONEq(t, `{"text":"a"}`, run.GetOutput().GetJson())
	require.Zero(t, e.reads.Load())
}

// TestRunViewThatFindsNoRoom: a run is told without its large questions when calls hold all
// memory, and when they are larger than a message may be.
func TestRunViewThatFindsNoRoom(t *testing.T) {
	e := newCrowdedEngine(t)
	full := &graphdv1.GetRunRequest{ThreadId: "asks", View: graphdv1.RunView_RUN_VIEW_FULL}
	small := startAsking(t, e, func(o *transport.Options) { o.MaxMessageBytes = 256 << 10 })
	run, err := small.GetRun(t.Context(), full)
	require.NoError(t, err)
	require.Empty(t, run.GetInterrupts())
	require.Len(t, run.GetOpenInterruptIds(), 2)

	var other runtime.CallMemory
	_, err = e.State(t.Context(), runtime.StateRequest{Thread: "large", Memory: &other})
	require.NoError(t, err)
	defer other.Release()
	run, err = startAsking(t, e).GetRun(t.Context(), full)
	require.NoError(t, err)
	require.Empty(t, run.GetInterrupts())
	require.Len(t, run.GetOpenInterruptIds(), 2)
}

// TestRunViewOfARunUnderWay: questions are shown while other tasks of the run still work, and
// named when they are too large.
func TestRunViewOfARunUnderWay(t *testing.T) {
	e := newFakeEngine()
	e.run.State = checkpoint.RunRunning
	e.interrupts = []checkpoint.Interrupt{{ID: "q1", Thread: "t1", Run: "run-1", State: checkpoint.InterruptOpen}}
	run, err := startServer(t, e).GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", View: graphdv1.RunView_RUN_VIEW_INTERRUPTS})
	require.NoError(t, err)
	require.Len(t, run.GetInterrupts(), 1)
	require.Equal(t, []string{"q1"}, run.GetOpenInterruptIds())

	e.hasLargeInterrupts = true
	run, err = startServer(t, e).GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", View: graphdv1.RunView_RUN_VIEW_INTERRUPTS})
	require.NoError(t, err)
	require.Empty(t, run.GetInterrupts())
	require.Equal(t, []string{"q1"}, run.GetOpenInterruptIds())
}

// TestRunViewOfQuestionsThatAFailedRunLeaves: they are open, and the next run waits for them.
func TestRunViewOfQuestionsThatAFailedRunLeaves(t *testing.T) {
	var e *engine.Engine
	fails := true
	nodes := nodeFuncs{"ask": askOnce(`"go on?"`), "break": func(*runtime.Task) pregel.Result {
		if !fails {
			return pregel.Result{Update: `{}`}
		}
		fails = false
		assert.Eventually(t, func() bool {
			open, err := e.OpenInterruptIDs(t.Context(), "t1", 1)
			return err == nil && len(open) > 0
		}, time.Minute, time.Millisecond, "the question is stored")
		return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Reason: "NODE_FAILED", Message: "broken"}}}
	}}
	e = newEngineOf(t, nodes, engine.Options{})
	c := startAsking(t, e)
	run, err := c.StartRun(t.Context(), startWaiting("t1", graphdv1.RunView_RUN_VIEW_FULL))
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, run.GetState())
	require.Len(t, run.GetInterrupts(), 1)
	run, err = c.GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", View: graphdv1.RunView_RUN_VIEW_INTERRUPTS})
	require.NoError(t, err)
	require.Len(t, run.GetInterrupts(), 1)

	next := startWaiting("t1", graphdv1.RunView_RUN_VIEW_FULL)
	next.RequestId, next.Run.Start = "next", nil
	run, err = c.StartRun(t.Context(), next)
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	require.Len(t, run.GetInterrupts(), 1)
	require.Len(t, run.GetOpenInterruptIds(), 1)
}

// TestRunViewIsTheSameLater compares what a call that waits returns with what is read later: beside a
// node that is done, at breakpoints, and with values that are not kept.
func TestRunViewIsTheSameLater(t *testing.T) {
	c := startAsking(t, newEngineOf(t, nodeFuncs{"ask": askOnce(`"go on?"`), "done": func(*runtime.Task) pregel.Result {
		return pregel.Result{Update: `{"text":"changed","token":"not kept"}`}
	}}, engine.Options{}, graph.ChannelSpec{Name: "token", Reducer: "untracked"}))
	for _, before := range [][]string{nil, {"ask"}, {"done"}} {
		for _, after := range [][]string{nil, {"done"}} {
			thread := "t-" + strings.Join(before, "") + "-" + strings.Join(after, "")
			start := startWaiting(thread, graphdv1.RunView_RUN_VIEW_FULL)
			start.Run.InterruptBefore, start.Run.InterruptAfter = before, after
			run, err := c.StartRun(t.Context(), start)
			require.NoError(t, err)
			later, err := c.GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: thread, View: graphdv1.RunView_RUN_VIEW_FULL})
			require.NoError(t, err)
			require.NotEmpty(t, run.GetOutput().GetJson(), thread)
			require.Equal(t, later.GetOutput().GetJson(), run.GetOutput().GetJson(), thread)
			require.Len(t, run.GetInterrupts(), len(later.GetInterrupts()), thread)
		}
	}
}
