package cli

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// reconnectTimeout is how long a stream waits for a server that went away.
const reconnectTimeout = 30 * time.Second

// showStream shows a stream in the session's format and returns how it ended.
func (s *Session) showStream(
	ctx context.Context, f *follower, open func(context.Context) (eventStream, error),
) (*graphdv1.EndOfStream, error) {
	f.graphs, f.reconnectTimeout = s.Graphs, reconnectTimeout
	var one sync.Mutex // says something at a time
	lost := false
	f.onReconnect = func(err error) {
		one.Lock()
		defer one.Unlock()
		if s.Format == Text && !lost {
			s.printNote("%s", explainReconnect(err))
		}
		lost = true
	}
	show := f.onEvent
	if show == nil {
		show = s.eventHandler(!f.followsRun && f.run == "", f.showsTasks)
	}
	looking, stop := context.WithCancel(ctx)
	quiet := startStoreWatcher(looking, s.Health, func(reason string) {
		one.Lock()
		defer one.Unlock()
		if s.Format == Text {
			s.printNote("%s", explainRefusal(reason))
		}
	})
	defer quiet.waitStopped()
	defer stop()
	f.onEvent = func(e *graphdv1.Event) error {
		quiet.recordEvent(e)
		one.Lock()
		defer one.Unlock()
		lost = false
		return show(e)
	}
	end, err := f.followToEnd(ctx, open)
	if err != nil && ctx.Err() != nil {
		return nil, s.endLeft(f)
	}
	return end, err
}

// explainReconnect says why a stream is opened again.
func explainReconnect(err error) string {
	r := newStatusReport(err)
	switch {
	case r == nil:
		return fmt.Sprintf("the connection broke (%v); looking for the server again", err)
	case r.Reason == "STORE_UNAVAILABLE":
		return "the server's store does not answer (STORE_UNAVAILABLE); trying again"
	case r.Reason == "STORE_BUSY":
		return "the server's store has more changes to write than it can (STORE_BUSY); trying again"
	case r.Reason == "TOO_MANY_RUNS", r.Reason == "TOO_MANY_SUBSCRIBERS", r.Reason == "TOO_MANY_REQUESTS":
		return fmt.Sprintf("the server is full (%s); trying again", r.reasonWithLimit())
	case r.Reason == "OUTCOME_UNKNOWN":
		return "the store did not say what became of the call (OUTCOME_UNKNOWN); asking again with the same request id"
	case r.Reason != "":
		return fmt.Sprintf("the stream ended (%s); looking for the server again", r.reasonWithLimit())
	}
	return fmt.Sprintf("the connection broke (%s); looking for the server again", r.Code)
}

// eventHandler returns what shows events in the session's format.
func (s *Session) eventHandler(allRuns, tasks bool) func(*graphdv1.Event) error {
	switch s.Format {
	case JSONL:
		return func(e *graphdv1.Event) error { return s.showMessage(e) }
	case JSON:
		return func(*graphdv1.Event) error { return nil }
	case Text:
	}
	shown := &eventPrinter{printer: s.newPrinter(), showsRuns: allRuns, showsTasks: tasks}
	return shown.printEvent
}

func (s *Session) newPrinter() *printer { return &printer{out: s.Out, hasColor: s.HasColor} }

// endLeft tells a person who interrupts a stream that only the stream has ended. To
// stop watching a thread is no failure; a run was to be followed to its end.
func (s *Session) endLeft(f *follower) error {
	if f.thread == "" {
		return &ExitCodeError{Code: ExitError}
	}
	args := []string{"watch", f.thread}
	if f.run != "" {
		args = append(args, "--run", f.run)
	}
	if f.cursor != nil {
		args = append(args, "--from", formatCursor(f.cursor))
	}
	s.printNote("only the watching has stopped; go on with\n  %s", s.Invocation.CommandLine(args...))
	if f.run == "" {
		return &ExitCodeError{Code: ExitDone}
	}
	return &ExitCodeError{Code: ExitError}
}

// showEnd shows how a run stands when its stream has ended, and turns that
// into the exit code.
func (s *Session) showEnd(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	if s.Format == JSON {
		if err := s.showRunJSON(ctx, thread, end); err != nil {
			return err
		}
	}
	if s.Format == Text {
		if err := s.printEnd(ctx, thread, end); err != nil {
			return err
		}
	}
	return exitErrorOf(end)
}

// showRunJSON shows the run as it stands, one that waits with its questions.
func (s *Session) showRunJSON(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	run := end.GetRun()
	if run == nil {
		return s.showMessage(end)
	}
	if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		return s.showMessage(run)
	}
	questions, err := s.listOpenInterrupts(ctx, thread)
	if err != nil {
		return err
	}
	asked := marshalWithEmptyLists(&graphdv1.ListInterruptsResponse{Interrupts: questions})
	text := append(bytes.TrimSuffix(Marshal(run), []byte("}")), ',')
	return WriteJSON(s.Out, Indent(append(text, bytes.TrimPrefix(asked, []byte("{"))...)))
}

// exitErrorOf returns the error with the exit code of a stream that has ended.
func exitErrorOf(end *graphdv1.EndOfStream) error {
	if end.GetRun() == nil {
		if end.GetCause() == graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
			return &ExitCodeError{Code: ExitError}
		}
		return nil
	}
	switch state := end.GetRun().GetState(); {
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		return &ExitCodeError{Code: ExitWaiting}
	case isFinal(state) && state != graphdv1.RunState_RUN_STATE_SUCCEEDED:
		return &ExitCodeError{Code: ExitFailed}
	}
	return nil
}

func isFinal(state graphdv1.RunState) bool {
	return state >= graphdv1.RunState_RUN_STATE_SUCCEEDED
}

func (s *Session) printEnd(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	p := s.newPrinter()
	run := end.GetRun()
	switch cause, state := end.GetCause(), run.GetState(); {
	case cause == graphdv1.EndOfStream_CAUSE_THREAD_DELETED:
		p.printLine("%s", p.colorize(red, "the thread was deleted"))
	case cause == graphdv1.EndOfStream_CAUSE_LOG_END:
		p.printLine("%s", p.colorize(dim, "end of the log, cursor "+formatCursor(end.GetResumeAt())))
	case state == graphdv1.RunState_RUN_STATE_SUCCEEDED:
		p.printLine("%s", p.colorize(green, "succeeded"))
		p.printMembers("  ", splitObject(run.GetOutput().GetJson()))
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		questions, err := s.listOpenInterrupts(ctx, thread)
		if err != nil {
			return err
		}
		s.printResumeCommand(p, thread, questions)
	default:
		p.printLine("%s", p.colorize(red, runStateName(state)))
		if run.GetFailure() != nil {
			p.printFailure("  ", run.GetFailure())
		}
		if run.GetFailure().GetReason() == "NON_DETERMINISTIC_NODE" {
			s.printReplayCommand(ctx, p, run)
		}
	}
	return p.err
}

// printReplayCommand prints the command that leads out of a run whose code no longer
// fits what was answered.
func (s *Session) printReplayCommand(ctx context.Context, p *printer, run *graphdv1.Run) {
	thread, err := s.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: run.GetThreadId()})
	at := thread.GetCheckpoint().GetCheckpointId()
	if err != nil || at == "" {
		at = "CHECKPOINT"
	}
	p.printLine("%s", p.colorize(yellow, "run on, it fails again as long as the node asks something else; ask anew from where the thread stands with"))
	p.printLine("  %s", s.Invocation.CommandLine("run", run.GetGraph(), "--thread", run.GetThreadId(), "--from-checkpoint", at))
}

// printResumeCommand prints the command that resumes.
func (s *Session) printResumeCommand(p *printer, thread string, questions []*graphdv1.Interrupt) {
	p.printLine("%s", p.colorize(yellow, "waiting for a person; go on with"))
	p.printLine("  %s", s.Invocation.CommandLine(resumeArgs(thread, questions)...))
}

// resumeArgs are the arguments of a resume that fits the questions.
func resumeArgs(thread string, questions []*graphdv1.Interrupt) []string {
	args := []string{"resume", thread}
	asked := withoutBreakpoints(questions)
	for _, q := range asked {
		example := parseForm(q.GetResponseSchema().GetJson()).exampleText()
		if len(asked) == 1 && len(questions) == 1 {
			return append(args, "--value", example)
		}
		args = append(args, "--answer", q.GetInterruptId()+"="+example)
	}
	return args
}

func withoutBreakpoints(questions []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	var asked []*graphdv1.Interrupt
	for _, q := range questions {
		if q.GetReason() != "breakpoint" {
			asked = append(asked, q)
		}
	}
	return asked
}

// listOpenInterrupts lists what a thread waits for.
func (s *Session) listOpenInterrupts(ctx context.Context, thread string) ([]*graphdv1.Interrupt, error) {
	var all []*graphdv1.Interrupt
	req := &graphdv1.ListInterruptsRequest{ThreadId: thread}
	for {
		resp, err := s.Interrupts.ListInterrupts(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, resp.GetInterrupts()...)
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			return all, nil
		}
	}
}
