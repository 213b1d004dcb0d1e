package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/transport"
)

func TestBadRunSpecs(t *testing.T) {
	for name, c := range map[string]struct {
		spec   *graphdv1.RunSpec
		reason string
		field  string
	}{
		"no spec":         {nil, "INVALID_FIELD", "run"},
		"thread id":       {&graphdv1.RunSpec{ThreadId: "a b"}, "INVALID_FIELD", "run.thread_id"},
		"long id":         {&graphdv1.RunSpec{ThreadId: strings.Repeat("x", 129)}, "INVALID_FIELD", "run.thread_id"},
		"run id":          {&graphdv1.RunSpec{RunId: "ä"}, "INVALID_FIELD", "run.run_id"},
		"graph name":      {&graphdv1.RunSpec{Graph: strings.Repeat("x", 129)}, "INVALID_FIELD", "run.graph"},
		"policy":          {&graphdv1.RunSpec{Concurrency: 99}, "INVALID_FIELD", "run.concurrency"},
		"open policy":     {&graphdv1.RunSpec{OpenInterrupts: 4}, "INVALID_FIELD", "run.open_interrupts"},
		"negative":        {&graphdv1.RunSpec{RunTimeout: durationpb.New(-1)}, "INVALID_FIELD", "run.run_timeout"},
		"zero timeout":    {&graphdv1.RunSpec{RunTimeout: durationpb.New(0)}, "INVALID_FIELD", "run.run_timeout"},
		"step limit":      {&graphdv1.RunSpec{StepLimit: 1 << 31}, "INVALID_FIELD", "run.step_limit"},
		"empty node":      {&graphdv1.RunSpec{InterruptBefore: []string{""}}, "INVALID_FIELD", "run.interrupt_before[0]"},
		"no target":       {&graphdv1.RunSpec{GotoTargets: []*graphdv1.Goto{{}}}, "INVALID_FIELD", "run.goto_targets[0]"},
		"empty label":     {&graphdv1.RunSpec{Metadata: map[string]string{"": "x"}}, "INVALID_FIELD", "run.metadata"},
		"no body":         {newSpecWithInput(&graphdv1.Payload{}), "INVALID_FIELD", "run.input"},
		"bytes":           {newSpecWithInput(&graphdv1.Payload{Body: &graphdv1.Payload_Data{}}), "FEATURE_DISABLED", "run.input.data"},
		"broken JSON":     {newSpecWithInput(newJSONPayload(`{"a":}`)), "INVALID_PAYLOAD_JSON", "run.input"},
		"two values":      {newSpecWithInput(newJSONPayload(`{} {}`)), "INVALID_PAYLOAD_JSON", "run.input"},
		"repeated key":    {newSpecWithInput(newJSONPayload(`{"a":1,"a":2}`)), "INVALID_PAYLOAD_JSON", "run.input"},
		"too deep":        {newSpecWithInput(newJSONPayload(strings.Repeat("[", 129) + strings.Repeat("]", 129))), "INVALID_PAYLOAD_JSON", "run.input"},
		"too large":       {newSpecWithInput(newJSONPayload(`"` + strings.Repeat("x", 1<<20) + `"`)), "PAYLOAD_TOO_LARGE", "run.input"},
		"bad context":     {&graphdv1.RunSpec{Context: newJSONPayload("nul")}, "INVALID_PAYLOAD_JSON", "run.context"},
		"replay nothing":  {&graphdv1.RunSpec{Start: &graphdv1.RunSpec_ReplayFrom{}}, "INVALID_FIELD", "run.replay_from.checkpoint_id"},
		"input at":        {&graphdv1.RunSpec{InputAt: &graphdv1.CheckpointRef{CheckpointId: "c"}}, "INVALID_FIELD", "run.input_at"},
		"input at none":   {newSpecWithInputAt(&graphdv1.CheckpointRef{}), "INVALID_FIELD", "run.input_at.checkpoint_id"},
		"input inside":    {newSpecWithInputAt(&graphdv1.CheckpointRef{CheckpointId: "c", Namespace: []string{"a"}}), "INVALID_FIELD", "run.input_at.namespace"},
		"media type":      {newSpecWithInput(&graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "1"}, MediaType: "text/csv"}), "INVALID_FIELD", "run.input.media_type"},
		"metadata":        {newSpecWithInput(&graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "1"}, Metadata: map[string]string{"k": "v"}}), "FEATURE_DISABLED", "run.input.metadata"},
		"namespace":       {&graphdv1.RunSpec{Start: &graphdv1.RunSpec_ReplayFrom{ReplayFrom: &graphdv1.CheckpointRef{CheckpointId: "c", Namespace: []string{"a|b"}}}}, "INVALID_FIELD", "run.replay_from.namespace"},
		"send to nowhere": {&graphdv1.RunSpec{GotoTargets: []*graphdv1.Goto{{Target: &graphdv1.Goto_Send{}}}}, "INVALID_FIELD", "run.goto_targets[0].send.node"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			c2 := startServer(t, e)
			_, err := c2.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: c.spec})
			require.Equal(t, c.reason, requireErrorInfo(t, err).GetReason(), "%v", err)
			require.Equal(t, c.field, requireErrorInfo(t, err).GetMetadata()["field"])
			require.Empty(t, e.requests, "the runtime was asked")

			stream, err := c2.Stream(t.Context(), &graphdv1.StreamRequest{Run: c.spec})
			require.NoError(t, err)
			_, err = stream.Recv()
			require.Equal(t, c.reason, requireErrorInfo(t, err).GetReason())
			require.Empty(t, e.requests, "the runtime was asked")
		})
	}
}

func newSpecWithInputAt(at *graphdv1.CheckpointRef) *graphdv1.RunSpec {
	spec := newSpecWithInput(newJSONPayload("{}"))
	spec.InputAt = at
	return spec
}

func newSpecWithInput(p *graphdv1.Payload) *graphdv1.RunSpec {
	return &graphdv1.RunSpec{Start: &graphdv1.RunSpec_Input{Input: p}}
}

func TestAllBadFieldsAreReportedAtOnce(t *testing.T) {
	c := startServer(t, newFakeEngine())
	_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{
		Run: &graphdv1.RunSpec{ThreadId: "a b", RunId: "c d"}, RequestId: "e f",
	})
	var fields []string
	for _, v := range fieldViolations(t, err) {
		fields = append(fields, v.GetField())
	}
	require.ElementsMatch(t, []string{"run.thread_id", "run.run_id", "request_id"}, fields)
}

func TestPayloadErrorsNameTheirLimits(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Limits = payload.Limits{MaxBytes: 10, MaxDepth: 2} })
	start := func(text string) map[string]string {
		_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: newSpecWithInput(newJSONPayload(text))})
		return requireErrorInfo(t, err).GetMetadata()
	}
	require.Equal(t, map[string]string{
		"field": "run.input", "sizeBytes": "12", "limitBytes": "10", "violations": "1",
		"limit": "max-payload", "most": "10", "need": "12",
	}, start(`"1234567890"`))
	require.Equal(t, "2", start(`[1x]`)["offset"])
	require.Equal(t, "2", start(`[[[]]]`)["offset"])
}

func TestBadAnswers(t *testing.T) {
	value := &graphdv1.InterruptResponse_Value{Value: newJSONPayload("null")}
	answer := func(id string) *graphdv1.InterruptResponse {
		return &graphdv1.InterruptResponse{InterruptId: id, Outcome: value}
	}
	for name, c := range map[string]struct {
		spec  *graphdv1.ResumeSpec
		field string
	}{
		"no spec":      {nil, "resume"},
		"no thread":    {&graphdv1.ResumeSpec{}, "resume.thread_id"},
		"no id":        {&graphdv1.ResumeSpec{ThreadId: "t", Responses: []*graphdv1.InterruptResponse{answer("")}}, "resume.responses[0].interrupt_id"},
		"no outcome":   {&graphdv1.ResumeSpec{ThreadId: "t", Responses: []*graphdv1.InterruptResponse{{InterruptId: "i"}}}, "resume.responses[0]"},
		"twice":        {&graphdv1.ResumeSpec{ThreadId: "t", Responses: []*graphdv1.InterruptResponse{answer("i"), answer("i")}}, "resume.responses[1].interrupt_id"},
		"both":         {&graphdv1.ResumeSpec{ThreadId: "t", Responses: []*graphdv1.InterruptResponse{answer("i")}, Single: answer("")}, "resume.single"},
		"single by id": {&graphdv1.ResumeSpec{ThreadId: "t", Single: answer("i")}, "resume.single.interrupt_id"},
		"etag":         {&graphdv1.ResumeSpec{ThreadId: "t", Single: &graphdv1.InterruptResponse{Outcome: value, Etag: "old"}}, "resume.single.etag"},
		"coverage":     {&graphdv1.ResumeSpec{ThreadId: "t", Coverage: 9}, "resume.coverage"},
		"value":        {&graphdv1.ResumeSpec{ThreadId: "t", Single: &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{}}}, "resume.single.value"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			_, err := startServer(t, e).ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: c.spec})
			require.Equal(t, "INVALID_FIELD", requireErrorInfo(t, err).GetReason(), "%v", err)
			require.Equal(t, c.field, requireErrorInfo(t, err).GetMetadata()["field"])
			require.Empty(t, e.requests)
		})
	}
}

func TestBadFieldsOfOtherCalls(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	ctx := t.Context()
	for name, call := range map[string]struct {
		do    func() error
		field string
	}{
		"create with outputs": {func() error {
			_, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{Thread: &graphdv1.Thread{RunId: "r"}})
			return err
		}, "thread.run_id"},
		"two thread ids": {func() error {
			_, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "x"}})
			return err
		}, "thread.thread_id"},
		"ttl of nothing": {func() error {
			_, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{Thread: &graphdv1.Thread{
				Expiration: &graphdv1.Thread_Ttl{Ttl: durationpb.New(0)},
			}})
			return err
		}, "thread.ttl"},
		"keep less than nothing": {func() error {
			_, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{Thread: &graphdv1.Thread{KeepCheckpoints: -2}})
			return err
		}, "thread.keep_checkpoints"},
		"update nothing": {func() error {
			_, err := c.UpdateThread(ctx, &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "t"}})
			return err
		}, "update_mask"},
		"update the state": {func() error {
			_, err := c.UpdateThread(ctx, &graphdv1.UpdateThreadRequest{
				Thread: &graphdv1.Thread{ThreadId: "t"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"values.x"}},
			})
			return err
		}, "update_mask"},
		"the other expiration": {func() error {
			_, err := c.UpdateThread(ctx, &graphdv1.UpdateThreadRequest{
				Thread: &graphdv1.Thread{
					ThreadId: "t", Expiration: &graphdv1.Thread_ExpireTime{ExpireTime: timestamppb.Now()},
				},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"ttl"}},
			})
			return err
		}, "update_mask"},
		"prune everything": {func() error {
			_, err := c.PruneThread(ctx, &graphdv1.PruneThreadRequest{ThreadId: "t"})
			return err
		}, "keep_checkpoints"},
		"copy nothing": {func() error {
			_, err := c.CopyThread(ctx, &graphdv1.CopyThreadRequest{ThreadId: "t"})
			return err
		}, "source_thread_id"},
		"fork a subgraph": {func() error {
			_, err := c.ForkThread(ctx, &graphdv1.ForkThreadRequest{
				SourceThreadId: "t", At: &graphdv1.CheckpointRef{Namespace: []string{"n"}},
			})
			return err
		}, "at.namespace"},
		"update without values": {func() error {
			_, err := c.UpdateState(ctx, &graphdv1.UpdateStateRequest{ThreadId: "t"})
			return err
		}, "values"},
		"bulk update of nothing": {func() error {
			_, err := c.BulkUpdateState(ctx, &graphdv1.BulkUpdateStateRequest{ThreadId: "t"})
			return err
		}, "supersteps"},
		"superstep of nothing": {func() error {
			_, err := c.BulkUpdateState(ctx, &graphdv1.BulkUpdateStateRequest{
				ThreadId: "t", Supersteps: []*graphdv1.StateSuperstep{{}},
			})
			return err
		}, "supersteps[0].updates"},
		"write without values": {func() error {
			_, err := c.BulkUpdateState(ctx, &graphdv1.BulkUpdateStateRequest{
				ThreadId: "t", Supersteps: []*graphdv1.StateSuperstep{{Updates: []*graphdv1.StateUpdate{{AsNode: "n"}}}},
			})
			return err
		}, "supersteps[0].updates[0].values"},
		"page size": {func() error {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: -1})
			return err
		}, "page_size"},
		"negative offset": {func() error {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Offset: -1})
			return err
		}, "offset"},
		"large offset": {func() error {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Offset: 100_001})
			return err
		}, "offset"},
		"offset and page token": {func() error {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Offset: 1, PageToken: "x"})
			return err
		}, "offset"},
		"value of uuid in a filter": {func() error {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `uuid = "yes"`})
			return err
		}, "filter"},
		"unknown field in a filter": {func() error {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `values.x = "1"`})
			return err
		}, "filter"},
		"unknown state in a filter": {func() error {
			_, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `state = "WAITING"`})
			return err
		}, "filter"},
		"thread twice": {func() error {
			_, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: "a", Filter: "thread_id = b"})
			return err
		}, "filter"},
		"interrupt mask": {func() error {
			_, err := c.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
				Interrupt:  &graphdv1.Interrupt{ThreadId: "t", InterruptId: "i"},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"response"}},
			})
			return err
		}, "update_mask"},
		"cancel": {func() error {
			_, err := c.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: "t", Action: 7})
			return err
		}, "action"},
		"graph of nothing": {func() error {
			_, err := c.PutGraph(ctx, &graphdv1.PutGraphRequest{})
			return err
		}, "definition"},
		"enum inside a graph": {func() error {
			_, err := c.PutGraph(ctx, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Spec{
				Spec: &graphdv1.GraphSpec{Nodes: []*graphdv1.NodeSpec{
					{}, {Kind: &graphdv1.NodeSpec_Ask{Ask: &graphdv1.AskSpec{ExpiryAction: 9}}},
				}},
			}})
			return err
		}, "spec.nodes[1].ask.expiry_action"},
		"no graph": {func() error {
			_, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{})
			return err
		}, "graph"},
		"delete etag": {func() error {
			_, err := c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: "t", Etag: "-1"})
			return err
		}, "etag"},
	} {
		t.Run(name, func(t *testing.T) {
			err := call.do()
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			require.Equal(t, "INVALID_FIELD", requireErrorInfo(t, err).GetReason(), "%v", err)
			require.Equal(t, call.field, requireErrorInfo(t, err).GetMetadata()["field"], "%v", err)
		})
	}
	require.Empty(t, e.requests)
}

func TestBadWatches(t *testing.T) {
	for name, c := range map[string]struct {
		req    *graphdv1.WatchRequest
		reason string
	}{
		"no thread":    {&graphdv1.WatchRequest{}, "INVALID_FIELD"},
		"no log":       {newWatchAfter("", 1), "INVALID_FIELD"},
		"other log":    {newWatchAfter("log-0", 1), "INVALID_CURSOR"},
		"ahead":        {newWatchAfter("log-1", 21), "CURSOR_AHEAD"},
		"trimmed":      {newWatchAfter("log-1", 3), "CURSOR_TRIMMED"},
		"run trimmed":  {&graphdv1.WatchRequest{ThreadId: "t1", RunId: "run-1"}, "CURSOR_TRIMMED"},
		"two starts":   {&graphdv1.WatchRequest{ThreadId: "t1", SnapshotFirst: true, Start: &graphdv1.WatchRequest_Now{}}, "INVALID_FIELD"},
		"no channel":   {&graphdv1.WatchRequest{ThreadId: "t1", Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{0}}}, "INVALID_FIELD"},
		"new channel":  {&graphdv1.WatchRequest{ThreadId: "t1", Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{99}}}, "INVALID_FIELD"},
		"no namespace": {&graphdv1.WatchRequest{ThreadId: "t1", Filter: &graphdv1.EventFilter{Namespaces: []*graphdv1.Namespace{{}}}}, "INVALID_FIELD"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			e.head.FirstEvent, e.head.LastEvent = 5, 20
			stream, err := startServer(t, e).Watch(t.Context(), c.req)
			require.NoError(t, err)
			_, err = stream.Recv()
			require.Equal(t, c.reason, requireErrorInfo(t, err).GetReason(), "%v", err)
			if status.Code(err) == codes.OutOfRange {
				require.Equal(t, "5", requireErrorInfo(t, err).GetMetadata()["oldestSequence"])
				require.Equal(t, "20", requireErrorInfo(t, err).GetMetadata()["headSequence"])
			}
		})
	}
}

func newWatchAfter(log string, seq uint64) *graphdv1.WatchRequest {
	return &graphdv1.WatchRequest{
		ThreadId: "t1", Start: &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: log, Sequence: seq}},
	}
}

func TestMessageBeyondTheLimitIsRefused(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxMessageBytes = 1 << 10 })
	_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{
		Run: newSpecWithInput(newJSONPayload(`"` + strings.Repeat("x", 2<<10) + `"`)),
	})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

func TestTooManyStreams(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e, func(o *transport.Options) { o.MaxStreams = 1; o.Heartbeat = time.Hour })
	first, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = first.Recv()
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"Watch": func() error {
			second, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
			require.NoError(t, err)
			_, err = second.Recv()
			return err
		},
		"WatchInterrupts": func() error {
			second, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
			require.NoError(t, err)
			_, err = second.Recv()
			return err
		},
		"WaitRun": func() error {
			_, err := c.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1", RunId: "r1"})
			return err
		},
		"StartRun": func() error {
			_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{Graph: "g"}, Wait: durationpb.New(time.Hour)})
			return err
		},
		"CancelRun": func() error {
			_, err := c.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: "t1", RunId: "r1", Wait: true})
			return err
		},
	} {
		err := call()
		require.Equal(t, codes.ResourceExhausted, status.Code(err), name)
		require.Equal(t, "TOO_MANY_SUBSCRIBERS", requireErrorInfo(t, err).GetReason(), name)
		require.Equal(t, "1", requireErrorInfo(t, err).GetMetadata()["limit"], name)
		require.Contains(t, fmt.Sprint(status.Convert(err).Details()), "retry_delay", name)
	}
}

func TestTooManyStreamsOfOneKind(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxThreadStreams, o.MaxInboxStreams = 1, 1 })
	watch := func(thread string) error {
		s, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: thread, Follow: true})
		require.NoError(t, err)
		_, err = s.Recv()
		return err
	}
	require.NoError(t, watch("t1"))
	require.Equal(t, "TOO_MANY_SUBSCRIBERS", requireErrorInfo(t, watch("t1")).GetReason())
	require.NoError(t, watch("t2"))
	inbox := func() error {
		s, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		return err
	}
	require.NoError(t, inbox())
	require.Equal(t, "TOO_MANY_SUBSCRIBERS", requireErrorInfo(t, inbox()).GetReason())
}

// Many calls at once are answered, each with a stream or with the limit, and
// streams that end make room.
func TestManyWatchesAtOnce(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxStreams = 100 })
	const crowd = 400
	ctx, leave := context.WithCancel(t.Context())
	answers := make(chan error, crowd)
	for range crowd {
		go func() {
			s, err := c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
			if err == nil {
				_, err = s.Recv()
			}
			answers <- err
		}()
	}
	opened := 0
	for range crowd {
		if err := <-answers; err == nil {
			opened++
		} else {
			require.Equal(t, "TOO_MANY_SUBSCRIBERS", requireErrorInfo(t, err).GetReason())
		}
	}
	require.Equal(t, 100, opened)
	leave()
	require.Eventually(t, func() bool {
		s, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
		require.NoError(t, err)
		_, err = s.Recv()
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
}
