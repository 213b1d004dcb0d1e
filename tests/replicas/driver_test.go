package replicas_test

import (
	"context"
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

// client is one server as a caller sees it.
type client struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
}

// patience is how long a caller waits for one answer before it asks elsewhere.
const patience = 4 * time.Second

// insist asks a server, and then any server, until one says yes or no.
func insist[Resp any](ctx context.Context, d *driver, ask func(context.Context, client) (Resp, error)) (Resp, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, patience)
		resp, err := ask(limited, d.any())
		cancel()
		switch status.Code(err) {
		case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		default:
			return resp, err
		}
		d.tally.add("calls repeated")
		d.tally.add("refused with " + reason(err))
		if !pause(ctx, 20*time.Millisecond) {
			return resp, fmt.Errorf("%w, last: %w", ctx.Err(), err)
		}
	}
}

func reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return status.Code(err).String()
}

func text(json string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: json}}
}

// A sent answer is what one of two people who answer the same question did,
// and what they heard.
type sent struct {
	request, note string
	after         uint64 // the event that the acknowledgement names
	run           string
}

// driver takes one thread from its input to its end.
type driver struct {
	*plan

	servers  []client
	choose   func(int) int // of the servers
	thread   string
	tally    *tally
	progress *progress

	question string
	run      string
	answers  [2]sent
	live     []uint64 // durable events that a follower saw
}

// plan is what was drawn for a thread.
type plan struct {
	n            int
	begins       time.Duration // after the test
	thinks       time.Duration // after the question
	sameRequest  bool          // the second answer is the first one sent again
	when         int           // the second answer comes: with the first, after it, after the run
	startsTwice  bool
	contradicted bool // somebody says something else
	followed     bool
}

const (
	together = iota
	afterwards
	afterTheEnd
)

func newPlan(n int, seed uint64, over time.Duration) *plan {
	r := rand.New(rand.NewPCG(seed, uint64(n)+1000))
	return &plan{
		n: n, begins: draw(r, 0, over/2), thinks: draw(r, 0, over/2), sameRequest: r.IntN(2) == 0, when: r.IntN(3),
		startsTwice: r.IntN(3) == 0, contradicted: r.IntN(4) == 0, followed: r.IntN(4) == 0,
	}
}

func (d *driver) any() client { return d.servers[d.choose(len(d.servers))] }

func (p *plan) word() string { return fmt.Sprintf("word-%d", p.n) }

// drive runs the thread to its end and returns the run.
func (d *driver) drive(ctx context.Context) (*graphdv1.Run, error) {
	if !pause(ctx, d.begins) {
		return nil, ctx.Err()
	}
	if err := d.start(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	followed := make(chan error, 1)
	if d.followed {
		go func() { followed <- d.follow(ctx) }()
	} else {
		followed <- nil
	}
	run, err := d.wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for the question: %w", err)
	}
	if len(run.GetOpenInterruptIds()) != 1 {
		return run, fmt.Errorf("not one question is open but %v, %s: %s", run.GetOpenInterruptIds(), run.GetState(), run.GetFailure())
	}
	d.question = run.GetOpenInterruptIds()[0]
	d.progress.asked.Add(1)
	pause(ctx, d.thinks)
	run, err = d.answerTwice(ctx)
	if err != nil {
		return run, err
	}
	d.progress.ended.Add(1)
	return run, <-followed
}

func (d *driver) start(ctx context.Context) error {
	times := 1
	if d.startsTwice {
		times = 2
	}
	for range times {
		run, err := insist(ctx, d, func(ctx context.Context, c client) (*graphdv1.Run, error) {
			return c.StartRun(ctx, &graphdv1.StartRunRequest{
				RequestId: "start-" + d.thread,
				Run: &graphdv1.RunSpec{
					ThreadId: d.thread, CreateThread: true, Graph: "claim",
					Start: &graphdv1.RunSpec_Input{Input: text(fmt.Sprintf(`{"n":%d}`, d.n))},
				},
			})
		})
		if err != nil {
			return err
		}
		if d.run != "" && d.run != run.GetRunId() {
			return fmt.Errorf("the same request began run %s and then %s", d.run, run.GetRunId())
		}
		d.run = run.GetRunId()
	}
	return nil
}

// wait waits until the run stops.
func (d *driver) wait(ctx context.Context) (*graphdv1.Run, error) {
	for {
		run, err := insist(ctx, d, func(ctx context.Context, c client) (*graphdv1.Run, error) {
			return c.WaitRun(ctx, &graphdv1.WaitRunRequest{
				ThreadId: d.thread, RunId: d.run, Wait: durationpb.New(patience / 2),
			})
		})
		if err != nil || run.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED || ended(run.GetState()) {
			return run, err
		}
	}
}

// answerTwice lets two people say the same, and waits for the end.
func (d *driver) answerTwice(ctx context.Context) (*graphdv1.Run, error) {
	for i := range d.answers {
		d.answers[i] = sent{request: fmt.Sprintf("answer-%s-%d", d.thread, i), note: fmt.Sprintf("person %d", i)}
		if d.sameRequest {
			d.answers[i] = sent{request: "answer-" + d.thread, note: "person 0"}
		}
	}
	second := make(chan error, 1)
	if d.when == together {
		go func() { second <- d.answer(ctx, 1) }()
	}
	if err := d.answer(ctx, 0); err != nil {
		return nil, fmt.Errorf("the first answer: %w", err)
	}
	if d.when == afterwards {
		second <- d.answer(ctx, 1)
	}
	if d.contradicted {
		if err := d.contradict(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := d.wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for the end: %w", err)
	}
	if d.when == afterTheEnd {
		second <- d.answer(ctx, 1)
	}
	if err := <-second; err != nil {
		return nil, fmt.Errorf("the second answer: %w", err)
	}
	return d.wait(ctx)
}

func (d *driver) answer(ctx context.Context, i int) error {
	run, err := d.send(ctx, d.answers[i].request, d.answers[i].note, d.word())
	d.answers[i].run, d.answers[i].after = run.GetRunId(), run.GetAppliedThrough().GetSequence()
	return err
}

// contradict sends another answer, which must be refused.
func (d *driver) contradict(ctx context.Context) error {
	_, err := d.send(ctx, "other-"+d.thread, "person 2", "something else")
	if reason(err) != "INTERRUPT_ALREADY_RESOLVED" {
		return fmt.Errorf("another answer was not refused as it should be: %w", err)
	}
	d.tally.add("other answers refused")
	return nil
}

func (d *driver) send(ctx context.Context, request, note, word string) (*graphdv1.Run, error) {
	return insist(ctx, d, func(ctx context.Context, c client) (*graphdv1.Run, error) {
		return c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{
			RequestId: request,
			Resume: &graphdv1.ResumeSpec{ThreadId: d.thread, Responses: []*graphdv1.InterruptResponse{{
				InterruptId: d.question, Note: note,
				Outcome: &graphdv1.InterruptResponse_Value{Value: text(fmt.Sprintf(`{"word":%q}`, word))},
			}}},
		})
	})
}

// allKinds shows everything that is stored.
var allKinds = &graphdv1.EventFilter{Channels: []graphdv1.Channel{
	graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES,
	graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS, graphdv1.Channel_CHANNEL_CHECKPOINTS,
}}

// follow watches the thread on one server after the other until its run has
// ended.
func (d *driver) follow(ctx context.Context) error {
	var cursor *graphdv1.Cursor
	for {
		req := &graphdv1.WatchRequest{ThreadId: d.thread, Filter: allKinds, Follow: true}
		if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); cursor != nil {
			req.Start = &graphdv1.WatchRequest_After{After: cursor}
		}
		// Nobody waits for ever at a server that says nothing.
		limited, cancel := context.WithTimeout(ctx, 2*patience)
		done, err := d.watch(limited, d.any(), req, func(e *graphdv1.Event) {
			cursor = e.GetCursor()
			if !e.GetEphemeral() {
				d.live = append(d.live, cursor.GetSequence())
			}
		})
		cancel()
		switch status.Code(err) {
		case codes.OK:
			if done {
				return nil
			}
		case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
			d.tally.add("streams taken up again")
		default:
			return fmt.Errorf("follow: %w", err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("follow: %w", ctx.Err())
		}
	}
}

// watch reads one stream; done says that the run has ended.
func (d *driver) watch(ctx context.Context, c client, req *graphdv1.WatchRequest, see func(*graphdv1.Event)) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Watch(ctx, req)
	if err != nil {
		return false, err
	}
	for {
		e, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, err
		case e.GetCursor() != nil && e.GetOpened() == nil:
			see(e)
		}
		if done = ended(e.GetRunState().GetState()); done && req.GetFollow() {
			return true, nil
		}
	}
}

func ended(s graphdv1.RunState) bool {
	return slices.Contains([]graphdv1.RunState{
		graphdv1.RunState_RUN_STATE_SUCCEEDED, graphdv1.RunState_RUN_STATE_FAILED, graphdv1.RunState_RUN_STATE_CANCELLED,
	}, s)
}
