package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// threadDriver takes one thread from its input to its end, and answers its interrupts.
type threadDriver struct {
	harness.Client

	number     int
	counts     bool // the workers have the reducer that counts visits
	thread     string
	random     *rand.Rand
	tally      *harness.Tally
	answers    map[string]string // by interrupt id: what was sent, as JSON
	idsByRound map[string]string // by "round/question": the id
	seenEvents []uint64          // durable events that a follower saw
}

func newDriver(c harness.Client, n int, counts bool, seed uint64, t *harness.Tally) *threadDriver {
	return &threadDriver{
		Client: c, number: n, counts: counts, thread: fmt.Sprintf("t%d", n), random: rand.New(rand.NewPCG(seed, uint64(n)+1000)), tally: t,
		answers: make(map[string]string), idsByRound: make(map[string]string),
	}
}

// callUntilAnswered repeats a call while the server is away, and says whether it had to.
func callUntilAnswered[Req, Resp any](
	ctx context.Context, method func(context.Context, Req, ...grpc.CallOption) (Resp, error), req Req,
) (resp Resp, repeated bool, err error) {
	resp, repeats, err := harness.RepeatCall(ctx, away, 20*time.Millisecond, func(ctx context.Context) (Resp, error) {
		return method(ctx, req)
	})
	return resp, repeats > 0, err
}

// away are the codes of calls that no server has answered.
var away = []codes.Code{codes.Unavailable, codes.Aborted}

// driveThread runs the thread to its end and returns the run.
func (d *threadDriver) driveThread(ctx context.Context) (*graphdv1.Run, error) {
	run, _, err := callUntilAnswered(ctx, d.StartRun, &graphdv1.StartRunRequest{
		RequestId: "start-" + d.thread,
		Run: &graphdv1.RunSpec{
			ThreadId: d.thread, CreateThread: true, Graph: "chaos",
			Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(fmt.Sprintf(`{"n":%d,"round":0,"log":[],"count":{}}`, d.number))},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	followed := make(chan error, 1)
	if d.number%4 == 0 {
		go func() { followed <- d.followThread(ctx) }()
	} else {
		followed <- nil
	}
	for {
		run, err = d.waitStopped(ctx, run)
		if err != nil {
			return nil, fmt.Errorf("wait: %w", err)
		}
		if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
			return run, <-followed
		}
		if run, err = d.answerInterrupts(ctx, run); err != nil {
			return nil, fmt.Errorf("answer: %w", err)
		}
	}
}

func (d *threadDriver) waitStopped(ctx context.Context, run *graphdv1.Run) (*graphdv1.Run, error) {
	for {
		stopped, _, err := callUntilAnswered(ctx, d.WaitRun, &graphdv1.WaitRunRequest{
			ThreadId: d.thread, RunId: run.GetRunId(), Wait: durationpb.New(10 * time.Second),
		})
		if err != nil || harness.IsStopped(stopped.GetState()) {
			return stopped, err
		}
	}
}

// answerInterrupts answers some of the open interrupts, each with a text of its own.
func (d *threadDriver) answerInterrupts(ctx context.Context, run *graphdv1.Run) (*graphdv1.Run, error) {
	open := slices.Clone(run.GetOpenInterruptIds())
	if len(open) == 0 {
		return nil, errors.New("the run waits for no question")
	}
	d.random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	if d.random.IntN(3) == 0 {
		open = open[:1+d.random.IntN(len(open))]
	}
	var responses []*graphdv1.InterruptResponse
	for _, id := range open {
		if err := d.readInterrupt(ctx, id); err != nil {
			return nil, err
		}
		responses = append(responses, &graphdv1.InterruptResponse{
			InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(d.answers[id])},
		})
	}
	req := &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: d.thread, Responses: responses}}
	next, repeated, err := callUntilAnswered(ctx, d.ResumeRun, req)
	if repeated {
		d.tally.CountEvent("answers sent again")
	}
	if err != nil {
		return nil, err
	}
	switch d.random.IntN(6) {
	case 0: // the same again is no second answer
		if _, _, err := callUntilAnswered(ctx, d.ResumeRun, req); err != nil && !isAlreadyAnswered(err) {
			return nil, fmt.Errorf("the same answer again: %w", err)
		}
	case 1: // another one is refused
		other := &graphdv1.InterruptResponse{
			InterruptId: open[0], Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"a second answer"`)},
		}
		_, _, err := callUntilAnswered(ctx, d.ResumeRun, &graphdv1.ResumeRunRequest{
			Resume: &graphdv1.ResumeSpec{ThreadId: d.thread, Responses: []*graphdv1.InterruptResponse{other}},
		})
		if !isAlreadyAnswered(err) {
			return nil, fmt.Errorf("a second answer was not refused: %w", err)
		}
		d.tally.CountEvent("second answers refused")
	}
	return next, nil
}

// isAlreadyAnswered reports whether an answer was refused because there is one already.
func isAlreadyAnswered(err error) bool {
	return slices.Contains([]string{"INTERRUPT_ALREADY_RESOLVED", "THREAD_NOT_INTERRUPTED"}, harness.ReasonOf(err))
}

// readInterrupt looks at an interrupt that was not seen before and makes up its answer.
func (d *threadDriver) readInterrupt(ctx context.Context, id string) error {
	if _, again := d.answers[id]; again {
		return fmt.Errorf("question %s is open, though it was answered", id)
	}
	q, _, err := callUntilAnswered(ctx, d.GetInterrupt, &graphdv1.GetInterruptRequest{ThreadId: d.thread, InterruptId: id})
	if err != nil {
		return err
	}
	var asks struct {
		N, Round int
		Ask      string
	}
	if err := json.Unmarshal([]byte(q.GetValue().GetJson()), &asks); err != nil || asks.N != d.number {
		return fmt.Errorf("question %s is not of this thread: %s", id, q.GetValue().GetJson())
	}
	what := fmt.Sprintf("%d/%s", asks.Round, asks.Ask)
	if other, twice := d.idsByRound[what]; twice {
		return fmt.Errorf("%s was asked as %s and again as %s", what, other, id)
	}
	d.idsByRound[what] = id
	d.answers[id] = fmt.Sprintf(`"answer to %s of %d, number %d"`, what, d.number, len(d.answers))
	return nil
}

// followThread watches the thread until its run has ended, over every break.
func (d *threadDriver) followThread(ctx context.Context) error {
	var cursor *graphdv1.Cursor
	for {
		req := &graphdv1.WatchRequest{ThreadId: d.thread, Filter: harness.StoredEvents(), Follow: true}
		if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); cursor != nil {
			req.Start = &graphdv1.WatchRequest_After{After: cursor}
		}
		done, err := harness.ReadStream(ctx, d, req, func(e *graphdv1.Event) {
			cursor = e.GetCursor()
			if !e.GetEphemeral() {
				d.seenEvents = append(d.seenEvents, cursor.GetSequence())
			}
		})
		switch {
		case done:
			return nil
		case err == nil: // the run waits for answers
		case status.Code(err) == codes.Unavailable, status.Code(err) == codes.Aborted:
			d.tally.CountEvent("broken streams taken up again")
		default:
			return fmt.Errorf("follow: %w", err)
		}
		if !harness.SleepContext(ctx, 20*time.Millisecond) {
			return fmt.Errorf("follow: %w", ctx.Err())
		}
	}
}
