package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/graphd-dev/graphd/bench/browser"
	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Goals of the page in milliseconds and bytes.
const (
	goalOfRows     = 1000
	goalOfQuestion = 300
	goalOfAnswer   = 50 // more than over gRPC
	mostOfTab      = 60e6
)

const bytesOfTab = "objects of a tab with the inbox"

// inPage is the page in a browser, of ana.
type inPage struct {
	*inbox

	browser *browser.Browser
	// tab shows the inbox all the time.
	tab    *browser.Tab
	names  workload.Names
	series measure.Series
	began  time.Time
}

// longestDue is before any of the questions of the store is due.
const longestDue = 20 * time.Hour

// measureInPage measures the page, in rounds of its own: what it follows would cost other
// operations time. There are no operations without a browser.
func (s *session) measureInPage(ctx context.Context) error {
	p := &inPage{inbox: s.inbox, names: workload.Names{Prefix: "in-page-"}, series: s.series, began: time.Now()}
	var err error
	p.browser, err = browser.Start(ctx, s.options.chromium)
	if errors.Is(err, browser.ErrNoChromium) && s.options.size != smoke {
		fmt.Fprintf(os.Stderr, "inbox: the page is not measured: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer p.browser.Stop()
	if p.tab, err = p.browser.OpenTab(); err != nil {
		return err
	}
	if err := p.tab.Open(p.address()); err != nil {
		return err
	}
	if _, _, err := p.tab.WaitUntil(hasRows); err != nil {
		return err
	}
	s.inPage = p.operations()
	return s.rounds(ctx, "page", s.cells(s.inPage, s.options))
}

// operations are those of a person in the page.
func (p *inPage) operations() []operation {
	return []operation{
		{name: "the first rows in a new tab", call: p.openInbox, goal50: goalOfRows, goal99: goalOfRows},
		{
			name: "from the start of a run until its question is shown", call: p.showQuestion, limit: p.askOverGRPC,
			goal50: goalOfQuestion, goal99: goalOfQuestion,
		},
		{
			name: "from the key until the node has run", call: p.answerInPage, limit: p.answerOverGRPC, goalOver: goalOfAnswer,
		},
	}
}

// address is that of the inbox, with the token of ana.
func (p *inPage) address() string { return p.server.PageURL() + "/inbox#t=" + p.token }

const (
	hasRows  = `document.querySelector(".rows [role=option]")`
	hasForm  = `document.querySelector(".rows [aria-selected=true]#q-%s") && document.querySelector(".decide") && !document.querySelector(".decide :checked")`
	isChosen = `document.querySelector(".decide :checked")`
)

// openInbox loads the inbox in a tab that has nothing of it.
func (p *inPage) openInbox(_ context.Context, _ int, times *workload.Times) error {
	tab, err := p.browser.OpenTab()
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Open(p.address()); err != nil {
		return err
	}
	_, age, err := tab.WaitUntil(hasRows)
	if err != nil {
		return err
	}
	times.Note(age)
	bytes, err := tab.Heap()
	p.series.Add(p.key(bytesOfTab, graphd), workload.Sample{Rate: bytes})
	return err
}

// showQuestion times from the call that starts a run until its question is in the list of the page.
func (p *inPage) showQuestion(ctx context.Context, lane int, times *workload.Times) error {
	thread, began := p.names.Next(), time.Now()
	q, err := p.ask(ctx, lane, thread, nil)
	if err != nil {
		return err
	}
	at, _, err := p.tab.WaitUntil(isShown(q))
	if err != nil {
		return err
	}
	times.Note(at.Sub(began))
	return p.respond(ctx, lane, q)
}

// askOverGRPC times the call that starts a run and returns when its question is open.
func (p *inPage) askOverGRPC(ctx context.Context, lane int, times *workload.Times) error {
	q, err := p.ask(ctx, lane, p.names.Next(), times)
	if err != nil {
		return err
	}
	return p.respond(ctx, lane, q)
}

// isShown is whether a question is in the list of the page.
func isShown(q target) string { return fmt.Sprintf("document.getElementById(%q)", "q-"+q.id) }

// answerInPage times from the key that sends an answer until the node that asked has run.
func (p *inPage) answerInPage(ctx context.Context, lane int, times *workload.Times) error {
	return p.answer(ctx, lane, times, func(q target) error {
		for _, step := range []func() error{
			func() error { _, _, err := p.tab.WaitUntil(isShown(q)); return err },
			func() error { return p.tab.Click("#q-" + q.id) },
			func() error { _, _, err := p.tab.WaitUntil(fmt.Sprintf(hasForm, q.id)); return err },
			func() error { return p.tab.Press("1") },
			func() error { _, _, err := p.tab.WaitUntil(isChosen); return err },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}, func(target) error { return p.tab.PressControlEnter() })
}

// answerOverGRPC times from the call that answers until the node that asked has run.
func (p *inPage) answerOverGRPC(ctx context.Context, lane int, times *workload.Times) error {
	return p.answer(ctx, lane, times, func(target) error { return nil }, func(q target) error { return p.respond(ctx, lane, q) })
}

// answer asks a question, prepares its answer and gives it. It times from then until a client that
// follows the thread over gRPC has the update of the node.
func (p *inPage) answer(ctx context.Context, lane int, times *workload.Times, prepare, give func(target) error) error {
	q, err := p.ask(ctx, lane, p.names.Next(), nil)
	if err != nil {
		return err
	}
	if err := prepare(q); err != nil {
		return err
	}
	f, err := p.followThread(ctx, q.thread)
	if err != nil {
		return err
	}
	defer f.stop()
	began := time.Now()
	if err := give(q); err != nil {
		return err
	}
	at, err := f.waitForUpdate(ctx)
	if err == nil {
		times.Note(at.Sub(began))
	}
	return err
}

// ask starts a run, and returns its open question.
func (p *inPage) ask(ctx context.Context, lane int, thread string, times *workload.Times) (target, error) {
	var run graphdv1.Run
	if err := call(ctx, p.many, lane, graphs+"StartRun", &graphdv1.StartRunRequest{
		Run: &graphdv1.RunSpec{
			ThreadId: thread, CreateThread: true, Graph: approve, Start: &graphdv1.RunSpec_Input{Input: p.nextInput()},
		},
		Wait: durationpb.New(patience),
	}, &run, times); err != nil {
		return target{}, err
	}
	var open graphdv1.ListInterruptsResponse
	if err := call(ctx, p.many, lane, interrupts+"ListInterrupts", &graphdv1.ListInterruptsRequest{ThreadId: thread}, &open, nil); err != nil {
		return target{}, err
	}
	if n := len(open.GetInterrupts()); n != 1 {
		return target{}, fmt.Errorf("the run of %s is %s with %d questions", thread, run.GetState(), n)
	}
	return target{thread, open.GetInterrupts()[0].GetInterruptId()}, nil
}

// nextInput returns the input of a run whose question is due before those of all earlier runs. It
// stands first in the page, which makes rows only for what is seen and keeps that of an answered
// question for two seconds.
func (p *inPage) nextInput() *graphdv1.Payload {
	due := longestDue - 2*time.Since(p.began)
	return text(fmt.Sprintf(`{"users":[%q],"due":%.3f}`, ana, due.Seconds()))
}

// respond answers a question over gRPC.
func (p *inPage) respond(ctx context.Context, lane int, q target) error {
	return call(ctx, p.many, lane, graphs+"ResumeRun", &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: q.thread,
		Responses: []*graphdv1.InterruptResponse{{
			InterruptId: q.id, Outcome: &graphdv1.InterruptResponse_Value{Value: text(`{"decision":"approved"}`)},
		}},
	}}, nil, nil)
}

// follower waits for the next update of a thread.
type follower struct {
	updated chan time.Time
	ended   chan error
	stop    func()
}

// followThread returns when the follower hears of what comes.
func (p *inPage) followThread(ctx context.Context, thread string) (*follower, error) {
	request, err := proto.Marshal(&graphdv1.WatchRequest{ThreadId: thread, Start: &graphdv1.WatchRequest_Now{Now: &emptypb.Empty{}}, Follow: true})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	f := &follower{updated: make(chan time.Time, 1), ended: make(chan error, 1), stop: stop}
	opened := make(chan struct{}, 1)
	go func() {
		f.ended <- p.watching.Stream(ctx, 0, graphs+"Watch", request, func(message []byte) error {
			e, err := wire.Look(message)
			switch {
			case err != nil:
				return err
			case e.Kind == wire.Opened:
				opened <- struct{}{}
			case e.Kind == wire.Update:
				f.updated <- time.Now()
				return io.EOF
			}
			return nil
		})
	}()
	select {
	case <-opened:
		return f, nil
	case err := <-f.ended:
		stop()
		return nil, fmt.Errorf("the thread %s can't be followed: %w", thread, err)
	}
}

func (f *follower) waitForUpdate(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case at := <-f.updated:
		return at, nil
	case err := <-f.ended:
		select {
		case at := <-f.updated:
			return at, nil
		default:
			return time.Time{}, fmt.Errorf("the stream ended without an update: %w", err)
		}
	case <-ctx.Done():
		return time.Time{}, errors.New("no update came after the answer")
	}
}
