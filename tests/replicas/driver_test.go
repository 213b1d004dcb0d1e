package replicas_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// callTimeout is how long a caller waits for one answer before it asks elsewhere.
const callTimeout = 4 * time.Second

// callUntilAnswered asks a server, and then any server, until one says yes or no.
func callUntilAnswered[Resp any](ctx context.Context, d *threadDriver, ask func(context.Context, harness.Client) (Resp, error)) (Resp, error) {
	resp, _, err := harness.RepeatCall(ctx, away, 20*time.Millisecond, func(ctx context.Context) (Resp, error) {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		resp, err := ask(limited, d.anyServer())
		if slices.Contains(away, status.Code(err)) {
			d.tally.CountEvent("calls repeated")
			d.tally.CountEvent("refused with " + harness.ReasonOf(err))
		}
		return resp, err
	})
	return resp, err
}

// away are the codes of calls that another server may answer.
var away = []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}

// A sent answer is what one of two people who answer the same interrupt did, and
// what they were told.
type sentAnswer struct {
	request, note  string
	appliedThrough uint64 // the event that the acknowledgement names
	run            string
}

// threadDriver takes one thread from its input to its end.
type threadDriver struct {
	*threadPlan

	servers      []harness.Client
	chooseServer func(int) int // of the servers
	thread       string
	tally        *harness.Tally
	progress     *progress

	interruptID string
	runID       string
	answers     [2]sentAnswer
	seenEvents  []uint64 // durable events that a follower saw
}

// threadPlan is what was drawn for a thread.
type threadPlan struct {
	number         int
	startDelay     time.Duration // after the test
	answerDelay    time.Duration // after the interrupt
	repeatsRequest bool          // the second answer is the first one sent again
	secondAnswer   int           // the second answer comes: with the first, after it, after the run
	startsTwice    bool
	isContradicted bool // another client says something else
	isFollowed     bool
}

const (
	atTheSameTime = iota
	afterTheFirst
	afterTheRun
)

func newThreadPlan(n int, seed uint64, over time.Duration) *threadPlan {
	r := rand.New(rand.NewPCG(seed, uint64(n)+1000))
	return &threadPlan{
		number: n, startDelay: randomDuration(r, 0, over/2), answerDelay: randomDuration(r, 0, over/2), repeatsRequest: r.IntN(2) == 0, secondAnswer: r.IntN(3),
		startsTwice: r.IntN(3) == 0, isContradicted: r.IntN(4) == 0, isFollowed: r.IntN(4) == 0,
	}
}

func (d *threadDriver) anyServer() harness.Client { return d.servers[d.chooseServer(len(d.servers))] }

func (p *threadPlan) answerWord() string { return fmt.Sprintf("word-%d", p.number) }

// driveThread runs the thread to its end and returns the run.
func (d *threadDriver) driveThread(ctx context.Context) (*graphdv1.Run, error) {
	if !harness.SleepContext(ctx, d.startDelay) {
		return nil, ctx.Err()
	}
	if err := d.startRun(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	followed := make(chan error, 1)
	if d.isFollowed {
		go func() { followed <- d.followThread(ctx) }()
	} else {
		followed <- nil
	}
	run, err := d.waitStopped(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for the question: %w", err)
	}
	if len(run.GetOpenInterruptIds()) != 1 {
		return run, fmt.Errorf("not one question is open but %v, %s: %s", run.GetOpenInterruptIds(), run.GetState(), run.GetFailure())
	}
	d.interruptID = run.GetOpenInterruptIds()[0]
	d.progress.asked.Add(1)
	harness.SleepContext(ctx, d.answerDelay)
	run, err = d.answerTwice(ctx)
	if err != nil {
		return run, err
	}
	d.progress.ended.Add(1)
	return run, <-followed
}

func (d *threadDriver) startRun(ctx context.Context) error {
	times := 1
	if d.startsTwice {
		times = 2
	}
	for range times {
		run, err := callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.Run, error) {
			return c.StartRun(ctx, &graphdv1.StartRunRequest{
				RequestId: "start-" + d.thread,
				Run: &graphdv1.RunSpec{
					ThreadId: d.thread, CreateThread: true, Graph: "claim",
					Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(fmt.Sprintf(`{"n":%d}`, d.number))},
				},
			})
		})
		if err != nil {
			return err
		}
		if d.runID != "" && d.runID != run.GetRunId() {
			return fmt.Errorf("the same request began run %s and then %s", d.runID, run.GetRunId())
		}
		d.runID = run.GetRunId()
	}
	return nil
}

// waitStopped waits until the run stops.
func (d *threadDriver) waitStopped(ctx context.Context) (*graphdv1.Run, error) {
	for {
		run, err := callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.Run, error) {
			return c.WaitRun(ctx, &graphdv1.WaitRunRequest{
				ThreadId: d.thread, RunId: d.runID, Wait: durationpb.New(callTimeout / 2),
			})
		})
		if err != nil || harness.IsStopped(run.GetState()) {
			return run, err
		}
	}
}

// answerTwice lets two people say the same, and waits for the end.
func (d *threadDriver) answerTwice(ctx context.Context) (*graphdv1.Run, error) {
	for i := range d.answers {
		d.answers[i] = sentAnswer{request: fmt.Sprintf("answer-%s-%d", d.thread, i), note: fmt.Sprintf("person %d", i)}
		if d.repeatsRequest {
			d.answers[i] = sentAnswer{request: "answer-" + d.thread, note: "person 0"}
		}
	}
	second := make(chan error, 1)
	if d.secondAnswer == atTheSameTime {
		go func() { second <- d.sendAnswer(ctx, 1) }()
	}
	if err := d.sendAnswer(ctx, 0); err != nil {
		return nil, fmt.Errorf("the first answer: %w", err)
	}
	if d.secondAnswer == afterTheFirst {
		second <- d.sendAnswer(ctx, 1)
	}
	if d.isContradicted {
		if err := d.sendOtherAnswer(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := d.waitStopped(ctx); err != nil {
		return nil, fmt.Errorf("wait for the end: %w", err)
	}
	if d.secondAnswer == afterTheRun {
		second <- d.sendAnswer(ctx, 1)
	}
	if err := <-second; err != nil {
		return nil, fmt.Errorf("the second answer: %w", err)
	}
	return d.waitStopped(ctx)
}

func (d *threadDriver) sendAnswer(ctx context.Context, i int) error {
	run, err := d.resumeRun(ctx, d.answers[i].request, d.answers[i].note, d.answerWord())
	d.answers[i].run, d.answers[i].appliedThrough = run.GetRunId(), run.GetAppliedThrough().GetSequence()
	return err
}

// sendOtherAnswer sends another answer, which must be refused.
func (d *threadDriver) sendOtherAnswer(ctx context.Context) error {
	_, err := d.resumeRun(ctx, "other-"+d.thread, "person 2", "something else")
	if harness.ReasonOf(err) != "INTERRUPT_ALREADY_RESOLVED" {
		return fmt.Errorf("another answer was not refused as it should be: %w", err)
	}
	d.tally.CountEvent("other answers refused")
	return nil
}

func (d *threadDriver) resumeRun(ctx context.Context, request, note, word string) (*graphdv1.Run, error) {
	return callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.Run, error) {
		return c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{
			RequestId: request,
			Resume: &graphdv1.ResumeSpec{ThreadId: d.thread, Responses: []*graphdv1.InterruptResponse{{
				InterruptId: d.interruptID, Note: note,
				Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(fmt.Sprintf(`{"word":%q}`, word))},
			}}},
		})
	})
}

// followThread watches the thread on one server after the other until its run has
// ended.
func (d *threadDriver) followThread(ctx context.Context) error {
	var cursor *graphdv1.Cursor
	for {
		req := &graphdv1.WatchRequest{ThreadId: d.thread, Filter: harness.StoredEvents(), Follow: true}
		if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); cursor != nil {
			req.Start = &graphdv1.WatchRequest_After{After: cursor}
		}
		// No client waits for ever at a silent server.
		limited, cancel := context.WithTimeout(ctx, 2*callTimeout)
		done, err := harness.ReadStream(limited, d.anyServer(), req, func(e *graphdv1.Event) {
			cursor = e.GetCursor()
			if !e.GetEphemeral() {
				d.seenEvents = append(d.seenEvents, cursor.GetSequence())
			}
		})
		cancel()
		switch status.Code(err) {
		case codes.OK:
			if done {
				return nil
			}
		case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
			d.tally.CountEvent("streams taken up again")
		default:
			return fmt.Errorf("follow: %w", err)
		}
		if !harness.SleepContext(ctx, 20*time.Millisecond) {
			return fmt.Errorf("follow: %w", ctx.Err())
		}
	}
}
