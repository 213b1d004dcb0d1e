package main

import (
	"context"
	"fmt"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/graphd-dev/graphd/bench/workload"
)

// anyone is a graph whose question has no policy.
const anyone = "anyone"

// mostOfPolicy is how many times as long a question with a policy of two tags may take as one without.
const mostOfPolicy = 1.08

// withPolicy is a question for a user and a group of whom no other question is, beside one without a
// policy.
func (b *inbox) withPolicy() operation {
	q := question{graph: review, users: []string{"carl"}, groups: []string{"carls"}}
	without := q
	without.graph = anyone
	return operation{name: "a question is asked, with two tags", call: b.askAndEnd(q), limit: b.askAndEnd(without), goalRatio: mostOfPolicy}
}

// askAndEnd asks a question again and again, and ends its run outside of the time: the inbox stays as
// it is.
func (b *inbox) askAndEnd(q question) workload.One {
	asked := 0
	return func(ctx context.Context, _ int, times *workload.Times) error {
		asked++
		request := newAsk(fmt.Sprintf("ended-%s-%d", q.graph, asked), q)
		var run graphdv1.Run
		if err := call(ctx, b.one, 0, graphs+"StartRun", request, &run, times); err != nil {
			return err
		}
		if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
			return fmt.Errorf("the question of %s does not wait, its run is %s: %v", run.GetThreadId(), run.GetState(), run.GetFailure())
		}
		end := &graphdv1.CancelRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId(), Wait: true}
		return call(ctx, b.one, 0, graphs+"CancelRun", end, nil, nil)
	}
}

// newAsk starts a run on a new thread and waits until its question is open.
func newAsk(thread string, q question) *graphdv1.StartRunRequest {
	return &graphdv1.StartRunRequest{
		Run: &graphdv1.RunSpec{
			ThreadId: thread, CreateThread: true, Graph: q.graph, Start: &graphdv1.RunSpec_Input{Input: text(q.state())},
		},
		Wait: durationpb.New(patience),
	}
}
