package cli

import (
	"context"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// DemoPage is the page on which a demo is answered.
type DemoPage struct {
	URL    string           // of the server's page, without a path
	Open   func(url string) // shows an address in a browser if there is one; called once
	Linger time.Duration    // how long the page can show the end of the run
}

// RunDemoOnPage plays one refund review whose question is answered on the page, or by any other
// client: it shows each update, and the result some time before it ends. The server stores
// nothing. Errors: those of RunDemo; *exit.StatusError with exit.CodeWaiting when ctx ends before
// the run.
func (s *Session) RunDemoOnPage(ctx context.Context, o DemoOptions, page DemoPage) error {
	d := &pageDemo{demo: s.newDemo(o), page: page}
	err := d.playReview(ctx)
	if err != nil && ctx.Err() != nil {
		return d.endEarly()
	}
	if err != nil {
		return err
	}
	if err := d.printOutcome(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	d.waitForReader(ctx)
	if err := d.WriteError(); err != nil {
		return err
	}
	return stream.ExitErrorOf(d.end)
}

type pageDemo struct {
	*demo

	page     DemoPage
	run      string // its id
	isOpened bool   // the page was shown
}

// playReview starts the run, and follows it to its end.
func (d *pageDemo) playReview(ctx context.Context) error {
	run, err := d.prepareRun(ctx)
	if err != nil {
		return err
	}
	started, err := d.Graphs.StartRun(ctx, &graphdv1.StartRunRequest{Run: run, RequestId: requestIDOrNew("")})
	if err != nil {
		return err
	}
	d.run = started.GetRunId()
	req := &graphdv1.WatchRequest{
		ThreadId: d.options.Thread, Follow: true, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
	}
	for d.end == nil {
		part, err := d.followThread(ctx, req)
		if err != nil {
			return err
		}
		if part.GetCause() == graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
			d.PrintLine("%s", d.Colorize(output.Yellow, "the thread was deleted: the demo ends"))
			return &exit.StatusError{Code: exit.CodeError}
		}
		req.Start = &graphdv1.WatchRequest_After{After: part.GetResumeAt()} // the terminal did not take what was shown
	}
	return nil
}

// followThread shows events until the run or the stream has ended. It returns the end of the
// stream, nil after the end of the run.
func (d *pageDemo) followThread(ctx context.Context, req *graphdv1.WatchRequest) (*graphdv1.EndOfStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := d.Graphs.Watch(ctx, req)
	if err != nil {
		return nil, err
	}
	for d.end == nil {
		e, err := events.Recv()
		switch {
		case err != nil:
			return nil, err
		case e.GetEnd() != nil:
			return e.GetEnd(), nil
		case e.GetRunId() != d.run && e.GetOpened() == nil:
			continue // the page may begin further runs of the thread
		}
		if err := d.PrintEvent(e); err != nil {
			return nil, err
		}
		if changed := e.GetRunState(); changed != nil {
			if err := d.takeRunState(ctx, changed); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// takeRunState tells how to answer when the run waits, and notes its end.
func (d *pageDemo) takeRunState(ctx context.Context, changed *graphdv1.RunStateChanged) error {
	state := changed.GetState()
	if stream.IsFinal(state) {
		d.end = &graphdv1.EndOfStream{Run: &graphdv1.Run{RunId: d.run, State: state, Failure: changed.GetFailure()}}
		return nil
	}
	if state != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		return nil
	}
	questions, err := d.ListOpenInterrupts(ctx, d.options.Thread)
	if err != nil {
		return err
	}
	address := d.addressOf("inbox")
	if len(questions) > 0 { // it is answered already otherwise
		address = d.addressOf("inbox", d.options.Thread, questions[0].GetInterruptId())
	}
	d.PrintLine("")
	d.PrintLine("%s", d.Colorize(output.Yellow, "waiting for a person; answer on the page"))
	d.PrintLine("  %s", address)
	d.PrintLine("or without a browser, in another terminal")
	d.PrintLine("  %s", d.Invocation.CommandLine("resume", d.options.Thread))
	d.PrintLine("%s", d.Colorize(output.Dim, "Ctrl-C ends the demo, which stores nothing"))
	d.PrintLine("")
	d.openPage(address)
	return d.WriteError()
}

// openPage opens the page, once.
func (d *pageDemo) openPage(address string) {
	if !d.isOpened {
		d.isOpened = true
		d.page.Open(address)
	}
}

// addressOf returns the address of a place on the page.
func (d *pageDemo) addressOf(path ...string) string {
	var address strings.Builder
	address.WriteString(d.page.URL)
	for _, part := range path {
		address.WriteString("/" + url.PathEscape(part))
	}
	return address.String()
}

// waitForReader keeps the server until the page has shown the end, or the person has seen enough.
func (d *pageDemo) waitForReader(ctx context.Context) {
	address := d.addressOf("threads", d.options.Thread)
	d.PrintLine("")
	d.PrintLine("the page shows it: %s", address)
	d.PrintLine("%s", d.Colorize(output.Dim, "the demo ends in "+d.page.Linger.String()+", Ctrl-C ends it at once"))
	d.openPage(address)
	timer := time.NewTimer(d.page.Linger)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// endEarly tells a person who ends the demo before its run has ended what becomes of it.
func (d *pageDemo) endEarly() error {
	d.PrintLine("")
	d.PrintLine("%s", d.Colorize(output.Yellow, "the demo has ended without an answer, and nothing of it is stored; play another with"))
	d.PrintLine("  %s", shell.Invocation{Program: d.Invocation.Program}.CommandLine(d.options.ResumeArgs...))
	if err := d.WriteError(); err != nil {
		return err
	}
	return &exit.StatusError{Code: exit.CodeWaiting}
}
