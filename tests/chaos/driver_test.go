package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// client is what a driver calls.
type client struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient
}

// threadDriver takes one thread from its input to its end, and answers its interrupts.
type threadDriver struct {
	client

	number     int
	thread     string
	random     *rand.Rand
	tally      *tally
	answers    map[string]string // by interrupt id: what was sent, as JSON
	idsByRound map[string]string // by "round/question": the id
	seenEvents []uint64          // durable events that a follower saw
}

func newDriver(c client, n int, seed uint64, t *tally) *threadDriver {
	return &threadDriver{
		client: c, number: n, thread: fmt.Sprintf("t%d", n), random: rand.New(rand.NewPCG(seed, uint64(n)+1000)), tally: t,
		answers: make(map[string]string), idsByRound: make(map[string]string),
	}
}

// callUntilAnswered repeats a call while the server is away, and says whether it had to.
func callUntilAnswered[Req, Resp any](
	ctx context.Context, method func(context.Context, Req) (Resp, error), req Req,
) (resp Resp, repeated bool, err error) {
	for {
		resp, err = method(ctx, req)
		switch status.Code(err) {
		case codes.Unavailable, codes.Aborted:
			repeated = true
		default:
			return resp, repeated, err
		}
		if !sleepContext(ctx, 20*time.Millisecond) {
			return resp, repeated, fmt.Errorf("%w, last: %w", ctx.Err(), err)
		}
	}
}

func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return status.Code(err).String()
}

func newPayload(json string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: json}}
}

// driveThread runs the thread to its end and returns the run.
func (d *threadDriver) driveThread(ctx context.Context) (*graphdv1.Run, error) {
	run, _, err := callUntilAnswered(ctx, d.startRun, &graphdv1.StartRunRequest{
		RequestId: "start-" + d.thread,
		Run: &graphdv1.RunSpec{
			ThreadId: d.thread, CreateThread: true, Graph: "chaos",
			Start: &graphdv1.RunSpec_Input{Input: newPayload(fmt.Sprintf(`{"n":%d,"round":0,"log":[],"count":{}}`, d.number))},
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

func (d *threadDriver) startRun(ctx context.Context, req *graphdv1.StartRunRequest) (*graphdv1.Run, error) {
	return d.StartRun(ctx, req)
}

func (d *threadDriver) waitStopped(ctx context.Context, run *graphdv1.Run) (*graphdv1.Run, error) {
	for {
		stopped, _, err := callUntilAnswered(ctx, func(ctx context.Context, req *graphdv1.WaitRunRequest) (*graphdv1.Run, error) {
			return d.WaitRun(ctx, req)
		}, &graphdv1.WaitRunRequest{
			ThreadId: d.thread, RunId: run.GetRunId(), Wait: durationpb.New(10 * time.Second),
		})
		if status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil {
			continue
		}
		return stopped, err
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
			InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: newPayload(d.answers[id])},
		})
	}
	resume := func(ctx context.Context, req *graphdv1.ResumeRunRequest) (*graphdv1.Run, error) {
		return d.ResumeRun(ctx, req)
	}
	req := &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: d.thread, Responses: responses}}
	next, repeated, err := callUntilAnswered(ctx, resume, req)
	if repeated {
		d.tally.countEvent("answers sent again")
	}
	if err != nil {
		return nil, err
	}
	switch d.random.IntN(6) {
	case 0: // the same again is no second answer
		if _, _, err := callUntilAnswered(ctx, resume, req); err != nil && !isAlreadyAnswered(err) {
			return nil, fmt.Errorf("the same answer again: %w", err)
		}
	case 1: // another one is refused
		other := &graphdv1.InterruptResponse{
			InterruptId: open[0], Outcome: &graphdv1.InterruptResponse_Value{Value: newPayload(`"a second answer"`)},
		}
		_, _, err := callUntilAnswered(ctx, resume, &graphdv1.ResumeRunRequest{
			Resume: &graphdv1.ResumeSpec{ThreadId: d.thread, Responses: []*graphdv1.InterruptResponse{other}},
		})
		if !isAlreadyAnswered(err) {
			return nil, fmt.Errorf("a second answer was not refused: %w", err)
		}
		d.tally.countEvent("second answers refused")
	}
	return next, nil
}

// isAlreadyAnswered reports whether an answer was refused because there is one already.
func isAlreadyAnswered(err error) bool {
	return slices.Contains([]string{"INTERRUPT_ALREADY_RESOLVED", "THREAD_NOT_INTERRUPTED"}, reasonOf(err))
}

// readInterrupt looks at an interrupt that was not seen before and makes up its answer.
func (d *threadDriver) readInterrupt(ctx context.Context, id string) error {
	if _, again := d.answers[id]; again {
		return fmt.Errorf("question %s is open, though it was answered", id)
	}
	q, _, err := callUntilAnswered(ctx, func(ctx context.Context, req *graphdv1.GetInterruptRequest) (*graphdv1.Interrupt, error) {
		return d.GetInterrupt(ctx, req)
	}, &graphdv1.GetInterruptRequest{ThreadId: d.thread, InterruptId: id})
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

// allKinds shows everything that is stored.
var allKinds = &graphdv1.EventFilter{Channels: []graphdv1.Channel{
	graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES,
	graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS, graphdv1.Channel_CHANNEL_CHECKPOINTS,
}}

// followThread watches the thread until its run has ended, over every break.
func (d *threadDriver) followThread(ctx context.Context) error {
	var cursor *graphdv1.Cursor
	for {
		req := &graphdv1.WatchRequest{ThreadId: d.thread, Filter: allKinds, Follow: true}
		if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); cursor != nil {
			req.Start = &graphdv1.WatchRequest_After{After: cursor}
		}
		done, err := d.readStream(ctx, req, func(e *graphdv1.Event) {
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
			d.tally.countEvent("broken streams taken up again")
		default:
			return fmt.Errorf("follow: %w", err)
		}
		if !sleepContext(ctx, 20*time.Millisecond) {
			return fmt.Errorf("follow: %w", ctx.Err())
		}
	}
}

// readStream reads one stream; done says that the run has ended.
func (d *threadDriver) readStream(ctx context.Context, req *graphdv1.WatchRequest, see func(*graphdv1.Event)) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.Watch(ctx, req)
	if err != nil {
		return false, err
	}
	for {
		e, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case e.GetCursor() != nil && e.GetOpened() == nil:
			see(e)
		}
		if isEnded(e.GetRunState().GetState()) {
			return true, nil
		}
	}
}

func isEnded(s graphdv1.RunState) bool {
	return s == graphdv1.RunState_RUN_STATE_SUCCEEDED || s == graphdv1.RunState_RUN_STATE_FAILED ||
		s == graphdv1.RunState_RUN_STATE_CANCELLED
}
