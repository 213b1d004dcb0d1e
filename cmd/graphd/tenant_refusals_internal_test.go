package main

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// refusals are calls that are refused, by their reasons.
type refusals map[string][]func() error

// provokeErrors makes calls that are refused, each for another reason.
func (c *tenantClient) provokeErrors() {
	var others []string
	for _, list := range []refusals{
		c.listThreadRefusals(), c.listGraphRefusals(), c.listRunRefusals(), c.listQuestionRefusals(), c.listRequestRefusals(),
	} {
		for reason, calls := range list {
			for i, call := range calls {
				err := call()
				if joined, ok := err.(interface{ Unwrap() []error }); ok {
					err = joined.Unwrap()[len(joined.Unwrap())-1]
				}
				if reasonOfRefusal(err) != reason {
					others = append(others, fmt.Sprintf("%s, call %d: %v", reason, i, err))
				}
			}
		}
	}
	require.Empty(c.t, others, "calls with another error")
}

// start starts a run. request is the id of the request, "" = none.
func (c *tenantClient) start(spec *graphdv1.RunSpec, request string) error {
	return errOf(c.StartRun(c.ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: request}))
}

// resume answers questions.
func (c *tenantClient) resume(spec *graphdv1.ResumeSpec) error {
	return errOf(c.ResumeRun(c.ctx, &graphdv1.ResumeRunRequest{Resume: spec}))
}

// yes is the outcome of an answer.
func yes() *graphdv1.InterruptResponse_Value {
	return &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)}
}

func (c *tenantClient) listThreadRefusals() refusals {
	ctx := c.ctx
	return refusals{
		"THREAD_NOT_FOUND": {
			func() error { return c.start(&graphdv1.RunSpec{ThreadId: "none", Graph: "flow"}, "") },
			func() error { return c.resume(&graphdv1.ResumeSpec{ThreadId: "none"}) },
			func() error { _, err := c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: "none"}); return err },
			func() error { return errOf(c.ForkThread(ctx, &graphdv1.ForkThreadRequest{SourceThreadId: "none"})) },
			func() error { return errOf(c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "none"})) },
			func() error { _, err := readAll(c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "none"})); return err },
		},
		"THREAD_EXISTS": {
			func() error {
				return errOf(c.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: "t-flow", Thread: &graphdv1.Thread{Graph: "flow"}}))
			},
			func() error {
				return errOf(c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "t-flow", ThreadId: "t-asking"}))
			},
		},
		"THREAD_BUSY": {
			func() error {
				// The worker of "remote" has gone, and no other takes the task.
				err := c.start(c.newRun("t-busy", "remote"), "")
				return errors.Join(err, c.start(c.newRun("t-busy", "remote"), ""))
			},
			func() error { return errOf(c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "t-busy"})) },
			func() error { return errOf(c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: "t-busy"})) },
		},
		"ETAG_MISMATCH": {
			func() error {
				return errOf(c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: "t-flow", Etag: "99999"}))
			},
		},
		"CHECKPOINT_NOT_FOUND": {
			func() error {
				return errOf(c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "t-flow", At: &graphdv1.CheckpointRef{CheckpointId: "none"}}))
			},
		},
	}
}

func (c *tenantClient) listGraphRefusals() refusals {
	ctx := c.ctx
	return refusals{
		"GRAPH_NOT_FOUND": {
			func() error { return c.start(c.newRun("", "none"), "") },
			func() error { _, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "none"}); return err },
		},
		"GRAPH_VERSION_UNAVAILABLE": {
			func() error { return errOf(c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "flow", Version: "none"})) },
			func() error {
				return errOf(c.DeleteGraphVersion(ctx, &graphdv1.DeleteGraphVersionRequest{Graph: "flow", Version: "none"}))
			},
		},
		"GRAPH_EXISTS": {
			func() error {
				_, first := c.putDocument("graph: pinned\nversion: v1\nchannels: {x: {}}\nnodes: {n: {expr: {}}}\nedges: [START -> n -> END]\n")
				_, err := c.putDocument("graph: pinned\nversion: v1\nchannels: {x: {}}\nnodes: {m: {expr: {}}}\nedges: [START -> m -> END]\n")
				return errors.Join(first, err)
			},
		},
		"ASSISTANT_EXISTS": {
			func() error {
				wanted := &graphdv1.CreateAssistantRequest{AssistantId: "taken", Assistant: &graphdv1.Assistant{Graph: "flow"}}
				return errors.Join(errOf(c.CreateAssistant(ctx, wanted)), errOf(c.CreateAssistant(ctx, wanted)))
			},
		},
		"ASSISTANT_NOT_FOUND": {
			func() error { return errOf(c.GetAssistant(ctx, &graphdv1.GetAssistantRequest{AssistantId: "none"})) },
			func() error {
				return errOf(c.GetAssistant(ctx, &graphdv1.GetAssistantRequest{AssistantId: "taken", Version: 9}))
			},
		},
		"CRON_EXISTS": {
			func() error {
				wanted := newDailyCron("flow")
				wanted.CronId = "taken"
				return errors.Join(errOf(c.CreateCron(ctx, wanted)), errOf(c.CreateCron(ctx, wanted)))
			},
		},
		"CRON_NOT_FOUND": {
			func() error { return errOf(c.GetCron(ctx, &graphdv1.GetCronRequest{CronId: "none"})) },
		},
		"ITEM_NOT_FOUND": {
			func() error {
				return errOf(c.GetItem(ctx, &graphdv1.GetItemRequest{Namespace: []string{"notes"}, Key: "none"}))
			},
		},
		"GRAPH_IN_USE": {
			func() error { _, err := c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "flow"}); return err },
			func() error { _, err := c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "asking"}); return err },
		},
		"INVALID_GRAPH": {
			func() error {
				return errOf(c.putDocument("graph: bad\nchannels: {x: {}}\nnodes: {n: {graph: none}}\nedges: [START -> n -> END]\n"))
			},
			func() error {
				return errOf(c.putDocument("graph: 'a@flow'\nchannels: {x: {}}\nnodes: {n: {expr: {}}}\nedges: [START -> n -> END]\n"))
			},
		},
		"NODE_NOT_FOUND": {
			func() error {
				spec := c.newRun("t-flow", "flow")
				spec.InterruptBefore = []string{"none"}
				return c.start(spec, "")
			},
			func() error {
				return errOf(c.UpdateState(ctx, &graphdv1.UpdateStateRequest{ThreadId: "t-flow", AsNode: "none", Values: jsonPayload(`{}`)}))
			},
		},
	}
}

func (c *tenantClient) listRunRefusals() refusals {
	ctx := c.ctx
	return refusals{
		"RUN_NOT_FOUND": {
			func() error { return errOf(c.GetRun(ctx, &graphdv1.GetRunRequest{ThreadId: "t-flow", RunId: "none"})) },
		},
		"RUN_EXISTS": {
			func() error {
				runs, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "t-parent"})
				if err != nil {
					return err
				}
				spec := c.newRun("t-parent", "parent")
				spec.RunId, spec.Start = runs.GetRuns()[0].GetRunId(), &graphdv1.RunSpec_Input{Input: jsonPayload(`{"x": "other"}`)}
				return c.start(spec, "")
			},
		},
		"REQUEST_ID_CONFLICT": {
			func() error {
				spec := c.newRun("t-flow", "flow")
				spec.Metadata = map[string]string{"other": "content"}
				return c.start(spec, "start-t-flow")
			},
		},
		"CHECKPOINT_CONFLICT": {
			func() error {
				spec := c.newRun("t-flow", "flow")
				spec.ExpectedCheckpointId = "none"
				return c.start(spec, "")
			},
		},
		"INPUT_SCHEMA_MISMATCH": {
			func() error {
				return c.start(&graphdv1.RunSpec{ThreadId: "t-flow", Start: &graphdv1.RunSpec_Input{Input: jsonPayload(`{"x": 1}`)}}, "")
			},
		},
		"THREAD_INTERRUPTED": {func() error { return c.start(c.newRun("t-asking", "asking"), "") }},
		"THREAD_NOT_INTERRUPTED": {
			func() error {
				return c.resume(&graphdv1.ResumeSpec{ThreadId: "t-flow", Single: &graphdv1.InterruptResponse{Outcome: yes()}})
			},
		},
	}
}

func (c *tenantClient) listQuestionRefusals() refusals {
	ctx := c.ctx
	return refusals{
		"INTERRUPT_NOT_FOUND": {
			func() error {
				return errOf(c.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: "t-asking", InterruptId: "none"}))
			},
			func() error {
				return c.resume(&graphdv1.ResumeSpec{ThreadId: "t-asking", Responses: []*graphdv1.InterruptResponse{{InterruptId: "none", Outcome: yes()}}})
			},
		},
		"INTERRUPT_ALREADY_RESOLVED": {
			func() error {
				all, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `thread_id = "t-new" AND state = "*"`})
				if err != nil {
					return err
				}
				_, err = c.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
					Interrupt: &graphdv1.Interrupt{ThreadId: "t-new", InterruptId: all.GetInterrupts()[0].GetInterruptId(), Assignees: []string{"x"}},
				})
				return err
			},
		},
		"RESPONSE_AMBIGUOUS": {
			func() error {
				return c.resume(&graphdv1.ResumeSpec{ThreadId: "t-asking", Single: &graphdv1.InterruptResponse{Outcome: yes()}})
			},
		},
	}
}

func (c *tenantClient) listRequestRefusals() refusals {
	ctx := c.ctx
	return refusals{
		"INVALID_CURSOR": {
			func() error {
				return errOf(readAll(c.Watch(ctx, &graphdv1.WatchRequest{
					ThreadId: "t-flow", Start: &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: "none", Sequence: 1}},
				})))
			},
			func() error {
				return errOf(readAll(c.WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{ResumeToken: "none"})))
			},
		},
		"INVALID_PAGE_TOKEN": {
			func() error { return errOf(c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageToken: "none"})) },
		},
		"INVALID_FIELD": {
			func() error { return c.start(c.newRun("t-flow", "asking"), "") },
			func() error { return c.start(&graphdv1.RunSpec{Graph: "parent"}, "") },
			func() error { return c.start(c.newRun("other@t-flow", "flow"), "") },
			func() error { return c.start(c.newRun("t-flow", "other@flow"), "") },
			func() error {
				return errOf(c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `graph = "other@flow"`}))
			},
		},
		"ACCESS_DENIED": {
			func() error {
				return errOf(c.GetThread(choose(ctx, "other"), &graphdv1.GetThreadRequest{ThreadId: "t-flow"}))
			},
		},
		"TASK_LEASE_LOST": {
			func() error {
				return errOf(c.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{LeaseToken: []byte("none"), Result: c.completed()}))
			},
		},
	}
}
