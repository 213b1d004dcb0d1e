package transport_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport"
)

// bigNumberText is a number that a float64 can't hold, in an unusual spelling.
const bigNumberText = `{"b":1.0, "a":9007199254740993}`

func TestStartRunHandsOverEverything(t *testing.T) {
	e := newFakeEngine()
	e.started.After = 11
	c := startServer(t, e, withCallers)
	spec := &graphdv1.RunSpec{
		ThreadId: "t1", CreateThread: true, Graph: "g", GraphVersion: "v1",
		Start:   &graphdv1.RunSpec_Input{Input: newJSONPayload(bigNumberText)},
		Context: newJSONPayload(`null`), Metadata: map[string]string{"user": "u1"},
		InterruptBefore: []string{"*"}, InterruptAfter: []string{"n"}, StepLimit: 7,
		RunTimeout:     durationpb.New(time.Minute),
		Concurrency:    graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ROLLBACK_ACTIVE,
		OpenInterrupts: graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD,
		RunId:          "run-1", ExpectedCheckpointId: "c1", Update: newJSONPayload(`{}`),
		GotoTargets: []*graphdv1.Goto{
			{Target: &graphdv1.Goto_Node{Node: "n"}},
			{Target: &graphdv1.Goto_Send{Send: &graphdv1.Send{Node: "m", Input: newJSONPayload("1")}}},
		},
	}
	run, err := c.StartRun(withHeaders(t, "Bearer token-of-ann"), &graphdv1.StartRunRequest{Run: spec, RequestId: "req-1"})
	require.NoError(t, err)
	require.Equal(t, "run-1", run.GetRunId())
	require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, run.GetState())
	require.Empty(t, run.GetEtag())
	require.Equal(t, "log-1", run.GetAppliedThrough().GetLogId())
	require.Equal(t, uint64(11), run.GetAppliedThrough().GetSequence())

	got, ok := e.lastRequest(t).(runtime.StartRequest)
	require.True(t, ok)
	require.NotEmpty(t, got.Digest)
	got.Digest = ""
	require.Equal(t, runtime.StartRequest{
		Tenant: "default", Thread: "t1", CreateThread: true, Graph: "g", Version: "v1", Run: "run-1",
		Metadata: map[string]string{"user": "u1"}, Concurrency: runtime.RollbackActive, Open: runtime.DiscardOpen,
		RequestID: "req-1", By: runtime.Actor{Name: "ann", How: "jwt", Method: "graphd.v1.GraphService/StartRun"},
		Request: checkpoint.RunRequest{
			Input: bigNumberText, Context: "null", Update: "{}",
			Goto:            []checkpoint.Send{{Node: "n"}, {Node: "m", Input: "1"}},
			InterruptBefore: []string{"*"}, InterruptAfter: []string{"n"},
			StepLimit: 7, Timeout: time.Minute, Expected: "c1", DiscardOpen: true,
		},
	}, got)
}

// The digest belongs to what takes effect: it is the same for both ways to
// start a run, and another one for another run.
func TestDigests(t *testing.T) {
	e := newFakeEngine()
	e.started.Run.State = checkpoint.RunSucceeded
	c := startServer(t, e)
	digest := func(spec *graphdv1.RunSpec) string {
		_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: spec, RequestId: "r"})
		require.NoError(t, err)
		req, ok := e.lastRequest(t).(runtime.StartRequest)
		require.True(t, ok)
		return req.Digest
	}
	labels := map[string]string{}
	for i := range 20 {
		labels[fmt.Sprint("k", i)] = "v"
	}
	one := digest(&graphdv1.RunSpec{ThreadId: "t1", Metadata: labels})
	require.Equal(t, one, digest(&graphdv1.RunSpec{ThreadId: "t1", Metadata: labels}))
	require.NotEqual(t, one, digest(&graphdv1.RunSpec{ThreadId: "t2", Metadata: labels}))

	stream, err := c.Stream(t.Context(), &graphdv1.StreamRequest{
		Run: &graphdv1.RunSpec{ThreadId: "t1", Metadata: labels}, RequestId: "r",
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS}},
	})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	req, ok := e.lastRequest(t).(runtime.StartRequest)
	require.True(t, ok)
	require.Equal(t, one, req.Digest)
}

func TestResumeRunHandsOverAnswers(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	_, err := c.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: "t1", Coverage: graphdv1.ResumeCoverage_RESUME_COVERAGE_COLLECT,
		Responses: []*graphdv1.InterruptResponse{
			{InterruptId: "i1", Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload("null")}, Etag: "3", Note: "n"},
			{InterruptId: "i2", Outcome: &graphdv1.InterruptResponse_Dismissal{Dismissal: &graphdv1.Dismissal{Reason: "no"}}},
		},
	}})
	require.NoError(t, err)
	require.Equal(t, runtime.ResumeRequest{
		Thread: "t1", Coverage: runtime.CoverCollect,
		Responses: []runtime.Response{
			{Interrupt: "i1", Value: "null", Etag: "3", Note: "n"},
			{Interrupt: "i2", Dismissed: true, Note: "no"},
		},
	}, e.lastRequest(t))

	_, err = c.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: "t1",
		Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload(bigNumberText)}},
	}})
	require.NoError(t, err)
	require.Equal(t, runtime.ResumeRequest{Thread: "t1", Single: &runtime.Response{Value: bigNumberText}}, e.lastRequest(t))
}

func TestInterruptedRunNamesItsInterrupts(t *testing.T) {
	e := newFakeEngine()
	e.run.State = checkpoint.RunInterrupted
	e.interrupts = []checkpoint.Interrupt{
		{ID: "i1", State: checkpoint.InterruptOpen}, {ID: "i2", State: checkpoint.InterruptAnswered},
	}
	run, err := startServer(t, e).GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", RunId: "run-1"})
	require.NoError(t, err)
	require.Equal(t, []string{"i1"}, run.GetOpenInterruptIds())
	require.Equal(t, "4", run.GetEtag())
}

func TestFailedRunIsData(t *testing.T) {
	e := newFakeEngine()
	e.run.State = checkpoint.RunFailed
	e.run.Failure = &checkpoint.Failure{
		Reason: runtime.FailedStepLimit, Message: "too many", Node: "n", Type: "T", Attempt: 3, Stack: "s",
		Details: map[string]string{"limit": "25"},
	}
	run, err := startServer(t, e).GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", RunId: "run-1"})
	require.NoError(t, err)
	f := run.GetFailure()
	require.Equal(t, "STEP_LIMIT_EXCEEDED", f.GetReason())
	require.Equal(t, []any{"too many", "n", "T", uint32(3), "s", "25"}, []any{
		f.GetMessage(), f.GetNode(), f.GetType(), f.GetAttempt(), f.GetStack(), f.GetDetails()["limit"],
	})
}

func TestListRunsPagesAndFilters(t *testing.T) {
	e := newFakeEngine()
	for i := range 5 {
		state := checkpoint.RunSucceeded
		if i%2 == 1 {
			state = checkpoint.RunFailed
		}
		e.runs = append(e.runs, checkpoint.Run{ID: fmt.Sprint("r", i), Order: uint64(9 - i), State: state})
	}
	c := startServer(t, e)
	req := &graphdv1.ListRunsRequest{ThreadId: "t1", PageSize: 4, Filter: `state = "FAILED"`}
	page, err := c.ListRuns(t.Context(), req)
	require.NoError(t, err)
	require.Len(t, page.GetRuns(), 2)
	require.Equal(t, runsQuery{"t1", 0, 4}, e.lastRequest(t))

	req.PageToken = page.GetNextPageToken()
	_, err = c.ListRuns(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, runsQuery{"t1", 6, 4}, e.lastRequest(t))

	for _, change := range []func(*graphdv1.ListRunsRequest){
		func(r *graphdv1.ListRunsRequest) { r.Filter = "" },
		func(r *graphdv1.ListRunsRequest) { r.ThreadId = "t2" },
		func(r *graphdv1.ListRunsRequest) { r.PageToken = "x" + r.PageToken },
	} {
		bad := &graphdv1.ListRunsRequest{
			ThreadId: req.GetThreadId(), PageSize: 4, Filter: req.GetFilter(), PageToken: req.GetPageToken(),
		}
		change(bad)
		_, err = c.ListRuns(t.Context(), bad)
		require.Equal(t, "INVALID_PAGE_TOKEN", requireErrorInfo(t, err).GetReason())
	}
}

func TestPageSizes(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	for asked, limit := range map[int32]int{0: 50, 1: 1, 500: 500, 501: 500, 1 << 30: 500} {
		_, err := c.ListRuns(t.Context(), &graphdv1.ListRunsRequest{ThreadId: "t1", PageSize: asked})
		require.NoError(t, err)
		require.Equal(t, runsQuery{"t1", 0, limit}, e.lastRequest(t))
	}
}

func TestWaitRun(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	run, err := c.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1", Wait: durationpb.New(0)})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, run.GetState())
	run, err = c.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1", Wait: durationpb.New(time.Millisecond)})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, run.GetState())

	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventRunState, State: checkpoint.RunInterrupted})
	run, err = c.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1", RunId: "run-1"})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
}

func TestThreadCalls(t *testing.T) {
	e := newFakeEngine()
	e.head.TTL, e.head.Metadata = time.Hour, map[string]string{"user": "u1"}
	e.head.Checkpoint, e.head.Keep = "c9", 12
	e.state = runtime.Snapshot{Values: bigNumberText, Interrupts: []checkpoint.Interrupt{
		{ID: "i1", State: checkpoint.InterruptOpen}, {ID: "i2", State: checkpoint.InterruptAnswered},
	}}
	c := startServer(t, e)
	ctx := t.Context()

	thread, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: "t1", RequestId: "q", Thread: &graphdv1.Thread{
		Graph: "g", GraphVersion: "v1", Metadata: map[string]string{"a": "b"},
		Expiration: &graphdv1.Thread_Ttl{Ttl: durationpb.New(time.Hour)}, KeepCheckpoints: -1,
	}})
	require.NoError(t, err)
	created, ok := e.lastRequest(t).(runtime.CreateThreadRequest)
	require.True(t, ok)
	require.NotEmpty(t, created.Digest)
	created.Digest = ""
	require.Equal(t, runtime.CreateThreadRequest{
		Tenant: "default", Thread: "t1", Graph: "g", Version: "v1", Metadata: map[string]string{"a": "b"},
		Expiration: runtime.Expiration{TTL: time.Hour}, KeepCheckpoints: -1, RequestID: "q",
	}, created)
	require.Equal(t, time.Hour, thread.GetTtl().AsDuration())
	require.Equal(t, "7", thread.GetEtag())
	require.EqualValues(t, 12, thread.GetKeepCheckpoints())
	require.Equal(t, "c9", thread.GetCheckpoint().GetCheckpointId())
	require.Nil(t, thread.GetValues())

	thread, err = c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "t1", View: graphdv1.ThreadView_THREAD_VIEW_FULL})
	require.NoError(t, err)
	require.Equal(t, bigNumberText, thread.GetValues().GetJson())
	require.Len(t, thread.GetInterrupts(), 1)

	_, err = c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: "t1", Etag: "7", Force: true})
	require.NoError(t, err)
	require.Equal(t, deleteCall{"t1", 7, true}, e.lastRequest(t))

	_, err = c.ForkThread(ctx, &graphdv1.ForkThreadRequest{
		SourceThreadId: "t1", ThreadId: "t2", At: &graphdv1.CheckpointRef{CheckpointId: "c1"},
	})
	require.NoError(t, err)
	require.Equal(t, runtime.ForkRequest{Source: "t1", Thread: "t2", Checkpoint: "c1"}, e.lastRequest(t))

	_, err = c.PruneThread(ctx, &graphdv1.PruneThreadRequest{ThreadId: "t1", KeepCheckpoints: 3, Etag: "7"})
	require.NoError(t, err)
	require.Equal(t, runtime.PruneRequest{Thread: "t1", KeepCheckpoints: 3, Etag: 7}, e.lastRequest(t))
	_, err = c.CopyThread(ctx, &graphdv1.CopyThreadRequest{
		SourceThreadId: "t1", ThreadId: "t2", Metadata: map[string]string{"a": "c"}, RequestId: "q",
	})
	require.NoError(t, err)
	copied, ok := e.lastRequest(t).(runtime.CopyRequest)
	require.True(t, ok)
	require.NotEmpty(t, copied.Digest)
	copied.Digest = ""
	require.Equal(t, runtime.CopyRequest{
		Source: "t1", Thread: "t2", Metadata: map[string]string{"a": "c"}, RequestID: "q",
	}, copied)
}

func TestThreadMasks(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	full := &graphdv1.Thread{
		ThreadId: "t1", Etag: "7", RunId: "ignored",
		Metadata:   map[string]string{"a": "1", "b": "2"},
		Expiration: &graphdv1.Thread_ExpireTime{ExpireTime: timestamppb.New(at)}, KeepCheckpoints: 3,
	}
	expires, keep := &runtime.Expiration{At: at}, 3
	for name, c := range map[string]struct {
		paths []string
		want  runtime.UpdateThreadRequest
	}{
		"none":     {nil, runtime.UpdateThreadRequest{Metadata: full.GetMetadata(), ReplaceMetadata: true, Expiration: expires, KeepCheckpoints: &keep}},
		"all":      {[]string{"*"}, runtime.UpdateThreadRequest{Metadata: full.GetMetadata(), ReplaceMetadata: true, Expiration: expires, KeepCheckpoints: &keep}},
		"keep":     {[]string{"keep_checkpoints"}, runtime.UpdateThreadRequest{KeepCheckpoints: &keep}},
		"metadata": {[]string{"metadata"}, runtime.UpdateThreadRequest{Metadata: full.GetMetadata(), ReplaceMetadata: true}},
		"one key":  {[]string{"metadata.a"}, runtime.UpdateThreadRequest{Metadata: map[string]string{"a": "1"}}},
		"drop key": {[]string{"metadata.z"}, runtime.UpdateThreadRequest{DropKeys: []string{"z"}}},
		"expire":   {[]string{"expire_time"}, runtime.UpdateThreadRequest{Expiration: expires}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			_, err := startServer(t, e).UpdateThread(t.Context(), &graphdv1.UpdateThreadRequest{
				Thread: full, UpdateMask: &fieldmaskpb.FieldMask{Paths: c.paths},
			})
			require.NoError(t, err)
			c.want.Thread, c.want.Etag = "t1", 7
			require.Equal(t, c.want, e.lastRequest(t))
		})
	}
	e := newFakeEngine()
	_, err := startServer(t, e).UpdateThread(t.Context(), &graphdv1.UpdateThreadRequest{
		Thread: &graphdv1.Thread{ThreadId: "t1"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"ttl"}},
	})
	require.NoError(t, err)
	require.Equal(t, runtime.UpdateThreadRequest{Thread: "t1", Expiration: &runtime.Expiration{}}, e.lastRequest(t))
}

func TestListThreads(t *testing.T) {
	e := newFakeEngine()
	for i := range 3 {
		e.heads = append(e.heads, checkpoint.Head{Thread: fmt.Sprint("t", i), Updated: time.Unix(7, 0).UTC(), Created: time.Unix(int64(100-i), 5).UTC()})
	}
	c := startServer(t, e)
	req := &graphdv1.ListThreadsRequest{PageSize: 2, Filter: `state = INTERRUPTED AND graph="g" AND metadata.user = 'u"1'`}
	page, err := c.ListThreads(t.Context(), req)
	require.NoError(t, err)
	require.Len(t, page.GetThreads(), 2)
	want := checkpoint.ThreadQuery{
		Tenant: tenant.Default, State: checkpoint.ThreadInterrupted, Graph: "g", Metadata: map[string]string{"user": `u"1`}, Limit: 3,
	}
	require.Equal(t, want, e.lastRequest(t))

	req.PageToken = page.GetNextPageToken()
	_, err = c.ListThreads(t.Context(), req)
	require.NoError(t, err)
	want.Before = checkpoint.ThreadPosition{Created: time.Unix(99, 5).UTC(), Thread: "t1"}
	require.Equal(t, want, e.lastRequest(t))

	page, err = c.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{PageSize: 2})
	require.NoError(t, err)
	_, err = c.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{PageSize: 2, PageToken: page.GetNextPageToken()})
	require.NoError(t, err)
	want = checkpoint.ThreadQuery{Tenant: tenant.Default, Limit: 3, Before: checkpoint.ThreadPosition{Updated: time.Unix(7, 0).UTC(), Thread: "t1"}}
	require.Equal(t, want, e.lastRequest(t))
}

func TestListThreadsAfterAnOffset(t *testing.T) {
	e := newFakeEngine()
	for i := range 3 {
		e.heads = append(e.heads, checkpoint.Head{Thread: fmt.Sprint("t", i), Updated: time.Unix(int64(100-i), 0).UTC()})
	}
	c := startServer(t, e)
	page, err := c.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{PageSize: 2, Offset: 2, Filter: `uuid = "true"`})
	require.NoError(t, err)
	require.Nil(t, page.TotalSize) //nolint:protogetter // it is not asked for
	want := checkpoint.ThreadQuery{
		Tenant: tenant.Default, OnlyUUIDs: true, Limit: 3, Before: checkpoint.ThreadPosition{Updated: time.Unix(99, 0).UTC(), Thread: "t1"},
	}
	require.Equal(t, want, e.lastRequest(t))
	page, err = c.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{Offset: 4, CountTotal: true})
	require.NoError(t, err)
	require.Empty(t, page.GetThreads())
	require.Empty(t, page.GetNextPageToken())
	require.EqualValues(t, 3, page.GetTotalSize())
}

func TestStateCalls(t *testing.T) {
	e := newFakeEngine()
	cp := &checkpoint.Checkpoint{
		ID: "c2", Seq: 2, Parent: "c1", Namespace: "sub:t9", Run: "run-1", Graph: "g", Version: "v1", Step: -1,
		Source: checkpoint.SourceInput, Time: time.Unix(1, 0).UTC(), Metadata: map[string]string{"k": "v"},
	}
	inner := runtime.Snapshot{Values: `{"in":1}`}
	e.state = runtime.Snapshot{
		Values: bigNumberText, Next: []string{"n"}, Checkpoint: cp, LogID: "log-1", LastEvent: 5,
		Tasks: []runtime.SnapshotTask{{
			ID: "k", Node: "n", Namespace: "sub:t9|n:k", Result: "null", State: &inner,
			Failure: &checkpoint.Failure{Reason: "NODE_FAILED"},
		}, {
			ID: "h", Node: "handler", HandledTask: "k",
		}, {
			ID: "s", Node: "n", IsSent: true,
		}},
	}
	c := startServer(t, e)
	ctx := t.Context()
	state, err := c.GetState(ctx, &graphdv1.GetStateRequest{
		ThreadId: "t1", At: &graphdv1.CheckpointRef{CheckpointId: "c2", Namespace: []string{"sub"}},
		Keys: []string{"a"}, Subgraphs: true,
	})
	require.NoError(t, err)
	require.Equal(t, runtime.StateRequest{
		Thread: "t1", Namespace: "sub", Checkpoint: "c2", Keys: []string{"a"}, WithSubgraphs: true, MaxBytes: 8 << 20,
	}, e.lastRequest(t))
	require.Equal(t, bigNumberText, state.GetValues().GetJson())
	require.Equal(t, int32(-1), state.GetStep())
	require.Equal(t, graphdv1.CheckpointSource_CHECKPOINT_SOURCE_INPUT, state.GetSource())
	require.Equal(t, "c1", state.GetParent().GetCheckpointId())
	require.Equal(t, []string{"sub:t9"}, state.GetCheckpoint().GetNamespace())
	require.Equal(t, uint64(5), state.GetAppliedThrough().GetSequence())
	task := state.GetTasks()[0]
	require.Equal(t, []string{"sub:t9", "n:k"}, task.GetNamespace())
	require.Equal(t, "null", task.GetResult().GetJson())
	require.Equal(t, `{"in":1}`, task.GetState().GetValues().GetJson())
	require.Nil(t, task.SendIndex)
	require.Empty(t, task.GetHandledTaskId())
	require.Equal(t, "k", state.GetTasks()[1].GetHandledTaskId())
	require.Equal(t, new(int32), state.GetTasks()[2].SendIndex)

	_, err = c.UpdateState(ctx, &graphdv1.UpdateStateRequest{
		ThreadId: "t1", Values: newJSONPayload(bigNumberText), AsNode: "n", ExpectedCheckpointId: "c2", SupersedeInterrupts: true,
	})
	require.NoError(t, err)
	require.Equal(t, runtime.UpdateStateRequest{
		Thread: "t1", Values: bigNumberText, AsNode: "n", Expected: "c2", SupersedeInterrupts: true,
	}, e.lastRequest(t))

	_, err = c.BulkUpdateState(ctx, &graphdv1.BulkUpdateStateRequest{
		ThreadId: "t1", At: &graphdv1.CheckpointRef{CheckpointId: "c2"}, ExpectedCheckpointId: "c2", SupersedeInterrupts: true,
		Supersteps: []*graphdv1.StateSuperstep{{Updates: []*graphdv1.StateUpdate{
			{Values: newJSONPayload(bigNumberText), AsNode: "n", TaskId: "k"},
			{
				Values: newJSONPayload("null"), AsNode: "m",
				GotoTargets: []*graphdv1.Goto{{Target: &graphdv1.Goto_Node{Node: "n"}}},
			},
		}}},
	})
	require.NoError(t, err)
	require.Equal(t, runtime.BulkUpdateStateRequest{
		Thread: "t1", Checkpoint: "c2", Expected: "c2", SupersedeInterrupts: true,
		Supersteps: [][]runtime.StateWrite{{
			{Values: bigNumberText, AsNode: "n", Task: "k"},
			{Values: "null", AsNode: "m", Goto: []checkpoint.Send{{Node: "n"}}},
		}},
	}, e.lastRequest(t))

	for i := range 3 {
		e.states = append(e.states, runtime.Snapshot{Checkpoint: &checkpoint.Checkpoint{ID: "c", Seq: uint64(9 - i)}})
	}
	page, err := c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "t1", PageSize: 2, IncludeValues: true})
	require.NoError(t, err)
	require.Equal(t, runtime.HistoryQuery{Thread: "t1", Limit: 2, WithValues: true, MaxBytes: 8 << 20}, e.lastRequest(t))
	_, err = c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{
		ThreadId: "t1", PageSize: 2, PageToken: page.GetNextPageToken(),
	})
	require.NoError(t, err)
	require.Equal(t, runtime.HistoryQuery{Thread: "t1", Limit: 2, Before: 8, MaxBytes: 8 << 20}, e.lastRequest(t))
}

func TestStateBeyondTheLimitSaysWhatToDo(t *testing.T) {
	e := newFakeEngine()
	e.state.Values = bigNumberText
	c := startServer(t, e, func(o *transport.Options) { o.MaxMessageBytes = 16 })
	_, err := c.GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t1"})
	require.Equal(t, "PAYLOAD_TOO_LARGE", requireErrorInfo(t, err).GetReason())
	require.ErrorContains(t, err, "fewer keys")
}

func TestDeleteThreads(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	answer, err := c.DeleteThreads(t.Context(), &graphdv1.DeleteThreadsRequest{ThreadIds: []string{"t1", "t2"}, Force: true})
	require.NoError(t, err)
	require.Empty(t, answer.GetFailures())
	require.ElementsMatch(t, []any{deleteCall{Thread: "t1", Force: true}, deleteCall{Thread: "t2", Force: true}}, e.requests)

	e.err = runtime.Errorf(runtime.ReasonThreadBusy, "it is busy")
	answer, err = c.DeleteThreads(t.Context(), &graphdv1.DeleteThreadsRequest{ThreadIds: []string{"t2", "t1"}})
	require.NoError(t, err)
	require.Len(t, answer.GetFailures(), 2)
	require.Equal(t, "t2", answer.GetFailures()[0].GetThreadId())
	require.Equal(t, "THREAD_BUSY", answer.GetFailures()[1].GetReason())
	for _, fatal := range []error{checkpoint.ErrUnavailable, errors.New("a secret")} {
		e.err = fatal
		_, err = c.DeleteThreads(t.Context(), &graphdv1.DeleteThreadsRequest{ThreadIds: []string{"t1"}})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
	for want, ids := range map[string][]string{"has 0 threads": nil, "has 101 threads": make([]string, 101), "name each thread once": {"t1", "t1"}, "thread_ids[1]": {"t1", ""}} {
		_, err = c.DeleteThreads(t.Context(), &graphdv1.DeleteThreadsRequest{ThreadIds: ids})
		require.ErrorContains(t, err, want)
	}
}

func TestServerInfo(t *testing.T) {
	got, err := startServer(t, newFakeEngine()).GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, []any{"v1.2.3", "memory", uint32(8 << 20), uint32(1 << 20), uint32(128), 15 * time.Second}, []any{
		got.GetVersion(), got.GetStore(), got.GetMaxMessageBytes(), got.GetMaxInlinePayloadBytes(),
		got.GetMaxPayloadDepth(), got.GetHeartbeatInterval().AsDuration(),
	})
	require.Nil(t, got.GetCaller(), "the server knows no callers")
}

func TestRequestIDsAreKept(t *testing.T) {
	c := startServer(t, newFakeEngine())
	id := func(sent string) []string {
		ctx := t.Context()
		if sent != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", sent)
		}
		var header metadata.MD
		_, err := c.GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{}, grpc.Header(&header))
		require.NoError(t, err)
		return header.Get("x-request-id")
	}
	require.Equal(t, []string{"abc-1"}, id("abc-1"))
	require.Len(t, id("")[0], 26)
	require.Len(t, id("not fit for a log")[0], 26)
}

func TestMissingOptions(t *testing.T) {
	_, err := transport.NewServer(transport.Options{})
	require.ErrorContains(t, err, "must be set")
}

func TestUnimplementedIsNotInternal(t *testing.T) {
	c := startServer(t, newFakeEngine())
	err := c.conn.Invoke(t.Context(), "/graphd.v1.GraphService/Nothing", &graphdv1.GetRunRequest{}, &graphdv1.Run{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
}
