package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// largeStates are many calls at once on threads that hold 7 MB each: answers, streams
// of answers and updates of the state.
func largeStates(ctx context.Context, a *attack) {
	threads, calls := a.scaleCount(30, 50), a.scaleCount(90, 1500)
	a.requireGraph(ctx, "asks-much", hoardGraph(`{ ask: { message: "'?'", update: { i: "1" } } }`, "true"))
	name := func(i int) string { return fmt.Sprint("asks-much-", i) }
	seed := strings.Repeat("x", 115_000)
	for i := range threads {
		for waits := false; !waits && ctx.Err() == nil; {
			_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{RequestId: name(i), Run: &graphdv1.RunSpec{
				Graph: "asks-much", ThreadId: name(i), CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":"` + seed + `"}`)},
			}})
			a.recordAnswer("StartRun", err)
			run, err := a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: name(i), Wait: durationpb.New(30 * time.Second)})
			a.recordAnswer("WaitRun", err)
			waits = run.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED
		}
	}
	answer := func(thread string) *graphdv1.ResumeSpec {
		return &graphdv1.ResumeSpec{ThreadId: thread, Single: &graphdv1.InterruptResponse{
			Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"yes"`)},
		}}
	}
	a.runConcurrently(ctx, calls, func(i int) {
		thread := name(i % threads)
		switch i % threads % 3 {
		case 0:
			_, err := a.client.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: answer(thread)})
			a.recordAnswer("ResumeRun", err)
		case 1:
			stream, err := a.client.Resume(ctx, &graphdv1.ResumeRequest{Resume: answer(thread)})
			for err == nil {
				_, err = stream.Recv()
			}
			if !errors.Is(err, io.EOF) {
				a.recordAnswer("Resume", err)
			}
		case 2:
			_, err := a.client.UpdateState(ctx, &graphdv1.UpdateStateRequest{
				ThreadId: thread, Values: harness.NewPayload(`{"i":1}`), AsNode: "last", SupersedeInterrupts: true,
			})
			a.recordAnswer("UpdateState", err)
		}
	})
	for i := range threads {
		a.deleteThread(context.WithoutCancel(ctx), name(i))
	}
}
