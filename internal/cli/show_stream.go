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

// viewer shows streams in the format of a command, and how they end.
type viewer struct {
	Output

	client     *Client
	invocation Invocation
}

// openStream makes the call whose stream is to be shown.
type openStream = func(context.Context) (eventStream, error)

// showRun follows one run from its opening and ends as the run stands.
func (v *viewer) showRun(ctx context.Context, chosen selection, open openStream) error {
	f := &follower{selection: chosen, followsRun: true}
	end, err := v.showStream(ctx, f, open)
	if err != nil {
		return err
	}
	return v.showEnd(ctx, f.thread, end)
}

// showLog shows the log of a thread or of one of its runs: to its present end, or as
// long as it goes on.
func (v *viewer) showLog(ctx context.Context, chosen selection, req *graphdv1.WatchRequest) error {
	f := &follower{selection: chosen, run: req.GetRunId(), endsWithLog: !req.GetFollow()}
	end, err := v.showStream(ctx, f, func(ctx context.Context) (eventStream, error) {
		return v.client.Graphs.Watch(ctx, req)
	})
	if err != nil {
		return err
	}
	return v.showEnd(ctx, req.GetThreadId(), end)
}

// followRun follows one run from its opening, hands every event to onEvent, and
// returns how the stream ended.
func (v *viewer) followRun(
	ctx context.Context, onEvent func(*graphdv1.Event) error, open openStream,
) (*graphdv1.EndOfStream, error) {
	return v.showStream(ctx, &follower{followsRun: true, onEvent: onEvent}, open)
}

// showStream shows a stream and returns how it ended.
func (v *viewer) showStream(ctx context.Context, f *follower, open openStream) (*graphdv1.EndOfStream, error) {
	f.graphs, f.reconnectTimeout = v.client.Graphs, reconnectTimeout
	var one sync.Mutex // says something at a time
	lost := false
	f.onReconnect = func(err error) {
		one.Lock()
		defer one.Unlock()
		if v.Format == Text && !lost {
			v.printNote("%s", explainReconnect(err))
		}
		lost = true
	}
	show := f.onEvent
	if show == nil {
		show = v.eventHandler(!f.followsRun && f.run == "", f.showsTasks)
	}
	looking, stop := context.WithCancel(ctx)
	quiet := startStoreWatcher(looking, v.client.Health, func(reason string) {
		one.Lock()
		defer one.Unlock()
		if v.Format == Text {
			v.printNote("%s", explainRefusal(reason))
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
		return nil, v.endLeft(f)
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

// eventHandler returns what shows events in the command's format.
func (v *viewer) eventHandler(allRuns, tasks bool) func(*graphdv1.Event) error {
	switch v.Format {
	case JSONL:
		return func(e *graphdv1.Event) error { return v.showMessage(e) }
	case JSON:
		return func(*graphdv1.Event) error { return nil }
	case Text:
	}
	shown := &eventPrinter{printer: v.newPrinter(), showsRuns: allRuns, showsTasks: tasks}
	return shown.printEvent
}

// endLeft tells a person who interrupts a stream that only the stream has ended. To
// stop watching a thread is no failure; a run was to be followed to its end.
func (v *viewer) endLeft(f *follower) error {
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
	v.printNote("only the watching has stopped; go on with\n  %s", v.invocation.CommandLine(args...))
	if f.run == "" {
		return &ExitCodeError{Code: ExitDone}
	}
	return &ExitCodeError{Code: ExitError}
}

// showEnd shows how a run stands when its stream has ended, and turns that
// into the exit code.
func (v *viewer) showEnd(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	if v.Format == JSON {
		if err := v.showRunJSON(ctx, thread, end); err != nil {
			return err
		}
	}
	if v.Format == Text {
		if err := v.printEnd(ctx, thread, end); err != nil {
			return err
		}
	}
	return exitErrorOf(end)
}

// showRunJSON shows the run as it stands, one that waits with its questions.
func (v *viewer) showRunJSON(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	run := end.GetRun()
	if run == nil {
		return v.showMessage(end)
	}
	if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		return v.showMessage(run)
	}
	questions, err := v.client.listOpenInterrupts(ctx, thread)
	if err != nil {
		return err
	}
	asked := marshalWithEmptyLists(&graphdv1.ListInterruptsResponse{Interrupts: questions})
	text := append(bytes.TrimSuffix(Marshal(run), []byte("}")), ',')
	return WriteJSON(v.Out, Indent(append(text, bytes.TrimPrefix(asked, []byte("{"))...)))
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

func (v *viewer) printEnd(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	p := v.newPrinter()
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
		questions, err := v.client.listOpenInterrupts(ctx, thread)
		if err != nil {
			return err
		}
		return v.printResumeCommand(thread, questions)
	default:
		p.printLine("%s", p.colorize(red, runStateName(state)))
		if run.GetFailure() != nil {
			p.printFailure("  ", run.GetFailure())
		}
		if run.GetFailure().GetReason() == "NON_DETERMINISTIC_NODE" {
			v.printReplayCommand(ctx, p, run)
		}
	}
	return p.writeError()
}

// printReplayCommand prints the command that leads out of a run whose code no longer
// fits what was answered.
func (v *viewer) printReplayCommand(ctx context.Context, p *printer, run *graphdv1.Run) {
	thread, err := v.client.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: run.GetThreadId()})
	at := thread.GetCheckpoint().GetCheckpointId()
	if err != nil || at == "" {
		at = "CHECKPOINT"
	}
	p.printLine("%s", p.colorize(yellow, "run on, it fails again as long as the node asks something else; ask anew from where the thread stands with"))
	p.printLine("  %s", v.invocation.CommandLine("run", run.GetGraph(), "--thread", run.GetThreadId(), "--from-checkpoint", at))
}

// printResumeCommand prints the command that resumes.
func (v *viewer) printResumeCommand(thread string, questions []*graphdv1.Interrupt) error {
	p := v.newPrinter()
	p.printLine("%s", p.colorize(yellow, "waiting for a person; go on with"))
	p.printLine("  %s", v.invocation.CommandLine(resumeArgs(thread, questions)...))
	return p.writeError()
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

