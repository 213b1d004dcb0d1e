package main

import (
	"context"
	"fmt"
	"strconv"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

	"github.com/graphd-dev/graphd/bench/workload"
)

// changes are operations of one change each. What they are measured against is the change
// that an edit of a thread's state makes: a checkpoint, as after a superstep.
func (b *inbox) changes(some []target, edited []string) []operation {
	edit := b.edit(edited)
	return []operation{
		{name: "a claim", call: each(some, b.claim), limit: edit},
		{name: "a comment", call: each(some, b.comment), limit: edit},
		{name: "a vote", call: each(some, b.newVoter()), limit: edit},
		b.withPolicy(),
	}
}

// claim claims a question, and then gives it up: the next claim is a first one again.
func (b *inbox) claim(ctx context.Context, t target, times *workload.Times) error {
	var got graphdv1.Interrupt
	if err := b.inquire(ctx, "ClaimInterrupt", &graphdv1.ClaimInterruptRequest{ThreadId: t.thread, InterruptId: t.id}, &got, times); err != nil {
		return err
	}
	if got.GetClaimedBy() != ana {
		return fmt.Errorf("the question of %s is claimed by %q", t.thread, got.GetClaimedBy())
	}
	return b.inquire(ctx, "ReleaseInterrupt", &graphdv1.ReleaseInterruptRequest{ThreadId: t.thread, InterruptId: t.id}, nil, nil)
}

func (b *inbox) comment(ctx context.Context, t target, times *workload.Times) error {
	request := &graphdv1.CommentInterruptRequest{ThreadId: t.thread, InterruptId: t.id, Text: "Is the receipt the right one?"}
	return b.inquire(ctx, "CommentInterrupt", request, nil, times)
}

// newVoter makes votes, each for another value: all are changes, and none decides.
func (b *inbox) newVoter() func(context.Context, target, *workload.Times) error {
	votes := 0
	return func(ctx context.Context, t target, times *workload.Times) error {
		votes++
		var run graphdv1.Run
		err := call(ctx, b.one, 0, graphs+"ResumeRun", &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
			ThreadId: t.thread,
			Responses: []*graphdv1.InterruptResponse{{
				InterruptId: t.id, Outcome: &graphdv1.InterruptResponse_Value{Value: text(strconv.Itoa(votes))},
			}},
		}}, &run, times)
		if err == nil && run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
			err = fmt.Errorf("the run of %s is %s after a vote that does not decide", t.thread, run.GetState())
		}
		return err
	}
}

// makeThreads makes threads whose state may be edited.
func (b *inbox) makeThreads(ctx context.Context, count int) ([]string, error) {
	var all []string
	for n := range count {
		thread := fmt.Sprintf("edited-%d", n)
		request := &graphdv1.CreateThreadRequest{ThreadId: thread, Thread: &graphdv1.Thread{Graph: "question"}}
		if err := call(ctx, b.one, 0, threads+"CreateThread", request, nil, nil); err != nil {
			return nil, err
		}
		all = append(all, thread)
	}
	return all, nil
}

// edit edits the state of one thread after the other.
func (b *inbox) edit(edited []string) workload.One {
	edits := 0
	return func(ctx context.Context, _ int, times *workload.Times) error {
		thread := edited[edits%len(edited)]
		edits++
		request := &graphdv1.UpdateStateRequest{ThreadId: thread, Values: text(fmt.Sprintf(`{"x":%d}`, edits))}
		return call(ctx, b.one, 0, threads+"UpdateState", request, nil, times)
	}
}
