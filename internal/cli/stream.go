package cli

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// patience is how long a stream waits for a server that went away.
const patience = 30 * time.Second

// follow shows a stream in the session's format and returns how it ended.
func (s *Session) follow(
	ctx context.Context, f *follow, open func(context.Context) (eventStream, error),
) (*graphdv1.EndOfStream, error) {
	f.graphs, f.patience = s.Graphs, patience
	var one sync.Mutex // says something at a time
	lost := false
	f.lost = func(err error) {
		one.Lock()
		defer one.Unlock()
		if s.Format == Text && !lost {
			s.note("%s", why(err))
		}
		lost = true
	}
	show := f.show
	if show == nil {
		show = s.shower(!f.ofRun && f.run == "", f.tasks)
	}
	looking, stop := context.WithCancel(ctx)
	quiet := explainSilence(looking, s.Health, func(reason string) {
		one.Lock()
		defer one.Unlock()
		if s.Format == Text {
			s.note("%s", noChanges(reason))
		}
	})
	defer quiet.wait()
	defer stop()
	f.show = func(e *graphdv1.Event) error {
		quiet.noteEvent(e)
		one.Lock()
		defer one.Unlock()
		lost = false
		return show(e)
	}
	end, err := f.to(ctx, open)
	if err != nil && ctx.Err() != nil {
		return nil, s.left(f)
	}
	return end, err
}

// why says why a stream is opened again.
func why(err error) string {
	r := refusal(err)
	switch {
	case r == nil:
		return fmt.Sprintf("the connection broke (%v); looking for the server again", err)
	case r.Reason == "STORE_UNAVAILABLE":
		return "the server's store does not answer (STORE_UNAVAILABLE); trying again"
	case r.Reason == "STORE_BUSY":
		return "the server's store has more changes to write than it can (STORE_BUSY); trying again"
	case r.Reason == "TOO_MANY_RUNS", r.Reason == "TOO_MANY_SUBSCRIBERS", r.Reason == "TOO_MANY_REQUESTS":
		return fmt.Sprintf("the server is full (%s); trying again", r.cause())
	case r.Reason == "OUTCOME_UNKNOWN":
		return "the store did not say what became of the call (OUTCOME_UNKNOWN); asking again with the same request id"
	case r.Reason != "":
		return fmt.Sprintf("the stream ended (%s); looking for the server again", r.cause())
	}
	return fmt.Sprintf("the connection broke (%s); looking for the server again", r.Code)
}

// shower returns what shows events in the session's format.
func (s *Session) shower(allRuns, tasks bool) func(*graphdv1.Event) error {
	switch s.Format {
	case JSONL:
		return func(e *graphdv1.Event) error { return s.message(e) }
	case JSON:
		return func(*graphdv1.Event) error { return nil }
	case Text:
	}
	shown := &events{page: s.page(), allRuns: allRuns, tasks: tasks}
	return shown.show
}

func (s *Session) page() *page { return &page{w: s.Out, color: s.Color} }

// left tells whoever interrupts a stream that only the stream has ended. To
// stop watching a thread is no failure; a run was to be followed to its end.
func (s *Session) left(f *follow) error {
	if f.thread == "" {
		return &EndedError{Code: ExitError}
	}
	args := []string{"watch", f.thread}
	if f.run != "" {
		args = append(args, "--run", f.run)
	}
	if f.cursor != nil {
		args = append(args, "--from", cursorText(f.cursor))
	}
	s.note("only the watching has stopped; go on with\n  %s", s.Self.Command(args...))
	if f.run == "" {
		return &EndedError{Code: ExitDone}
	}
	return &EndedError{Code: ExitError}
}

// concluded shows how a run stands when its stream has ended, and turns that
// into the exit code.
func (s *Session) concluded(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	if s.Format == JSON {
		if err := s.document(ctx, thread, end); err != nil {
			return err
		}
	}
	if s.Format == Text {
		if err := s.conclude(ctx, thread, end); err != nil {
			return err
		}
	}
	return verdict(end)
}

// document shows the run as it stands, one that waits with its questions.
func (s *Session) document(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	run := end.GetRun()
	if run == nil {
		return s.message(end)
	}
	if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		return s.message(run)
	}
	questions, err := s.openQuestions(ctx, thread)
	if err != nil {
		return err
	}
	asked := marshalWhole(&graphdv1.ListInterruptsResponse{Interrupts: questions})
	text := append(bytes.TrimSuffix(Marshal(run), []byte("}")), ',')
	return WriteJSON(s.Out, Indent(append(text, bytes.TrimPrefix(asked, []byte("{"))...)))
}

// verdict is the exit code of a stream that has ended.
func verdict(end *graphdv1.EndOfStream) error {
	if end.GetRun() == nil {
		if end.GetCause() == graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
			return &EndedError{Code: ExitError}
		}
		return nil
	}
	switch state := end.GetRun().GetState(); {
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		return &EndedError{Code: ExitWaiting}
	case final(state) && state != graphdv1.RunState_RUN_STATE_SUCCEEDED:
		return &EndedError{Code: ExitFailed}
	}
	return nil
}

func final(state graphdv1.RunState) bool {
	return state >= graphdv1.RunState_RUN_STATE_SUCCEEDED
}

func (s *Session) conclude(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	p := s.page()
	run := end.GetRun()
	switch cause, state := end.GetCause(), run.GetState(); {
	case cause == graphdv1.EndOfStream_CAUSE_THREAD_DELETED:
		p.line("%s", p.paint(red, "the thread was deleted"))
	case cause == graphdv1.EndOfStream_CAUSE_LOG_END:
		p.line("%s", p.paint(dim, "end of the log, cursor "+cursorText(end.GetResumeAt())))
	case state == graphdv1.RunState_RUN_STATE_SUCCEEDED:
		p.line("%s", p.paint(green, "succeeded"))
		p.pairs("  ", members(run.GetOutput().GetJson()))
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		questions, err := s.openQuestions(ctx, thread)
		if err != nil {
			return err
		}
		s.howToAnswer(p, thread, questions)
	default:
		p.line("%s", p.paint(red, stateWord(state)))
		if run.GetFailure() != nil {
			p.failure("  ", run.GetFailure())
		}
		if run.GetFailure().GetReason() == "NON_DETERMINISTIC_NODE" {
			s.howToAskAnew(ctx, p, run)
		}
	}
	return p.err
}

// howToAskAnew prints the command that leads out of a run whose code no longer
// fits what was answered.
func (s *Session) howToAskAnew(ctx context.Context, p *page, run *graphdv1.Run) {
	thread, err := s.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: run.GetThreadId()})
	at := thread.GetCheckpoint().GetCheckpointId()
	if err != nil || at == "" {
		at = "CHECKPOINT"
	}
	p.line("%s", p.paint(yellow, "run on, it fails again as long as the node asks something else; ask anew from where the thread stands with"))
	p.line("  %s", s.Self.Command("run", run.GetGraph(), "--thread", run.GetThreadId(), "--from-checkpoint", at))
}

// howToAnswer prints the command that resumes.
func (s *Session) howToAnswer(p *page, thread string, questions []*graphdv1.Interrupt) {
	p.line("%s", p.paint(yellow, "waiting for a person; go on with"))
	p.line("  %s", s.Self.Command(answerArgs(thread, questions)...))
}

// answerArgs are the arguments of a resume that fits the questions.
func answerArgs(thread string, questions []*graphdv1.Interrupt) []string {
	args := []string{"resume", thread}
	asked := withoutBreakpoints(questions)
	for _, q := range asked {
		example := formOf(q.GetResponseSchema().GetJson()).example()
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

// openQuestions lists what a thread waits for.
func (s *Session) openQuestions(ctx context.Context, thread string) ([]*graphdv1.Interrupt, error) {
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
