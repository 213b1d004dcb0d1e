package stream

import (
	"bytes"
	"context"
	"sync"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// ReconnectTimeout bounds the wait of a stream for a server that is away.
const ReconnectTimeout = 30 * time.Second

// Viewer shows streams, and how they end, in the format of a command.
type Viewer struct {
	output.Output

	Client     *client.Client
	Invocation shell.Invocation
}

// openStream makes the call whose stream is shown.
type openStream = func(context.Context) (EventStream, error)

// ShowRun follows one run from its opening, and returns the error with its exit
// code.
func (v *Viewer) ShowRun(ctx context.Context, chosen Selection, open openStream) error {
	f := &follower{Selection: chosen, followsRun: true}
	end, err := v.showStream(ctx, f, open)
	if err != nil {
		return err
	}
	return v.showEnd(ctx, f.thread, end)
}

// ShowLog shows the log of a thread or of one of its runs, to its present end or
// while it continues. Errors: *exit.StatusError, gRPC statuses, and those of the
// output.
func (v *Viewer) ShowLog(ctx context.Context, chosen Selection, req *graphdv1.WatchRequest) error {
	f := &follower{Selection: chosen, run: req.GetRunId(), endsWithLog: !req.GetFollow()}
	end, err := v.showStream(ctx, f, func(ctx context.Context) (EventStream, error) {
		return v.Client.Graphs.Watch(ctx, req)
	})
	if err != nil {
		return err
	}
	return v.showEnd(ctx, req.GetThreadId(), end)
}

// FollowRun follows one run from its opening, hands every event to onEvent, and
// returns how the stream ended. Errors: *exit.StatusError, gRPC statuses, and those
// of onEvent.
func (v *Viewer) FollowRun(
	ctx context.Context, onEvent func(*graphdv1.Event) error, open openStream,
) (*graphdv1.EndOfStream, error) {
	return v.showStream(ctx, &follower{followsRun: true, onEvent: onEvent}, open)
}

// showStream shows a stream and returns how it ended.
func (v *Viewer) showStream(ctx context.Context, f *follower, open openStream) (*graphdv1.EndOfStream, error) {
	f.graphs, f.reconnectTimeout = v.Client.Graphs, ReconnectTimeout
	var one sync.Mutex // only one goroutine prints at a time
	lost := false
	f.onReconnect = func(err error) {
		one.Lock()
		defer one.Unlock()
		if v.Format == output.Text && !lost {
			v.PrintNote("%s", report.ExplainReconnect(err))
		}
		lost = true
	}
	show := f.onEvent
	if show == nil {
		show = v.eventHandler(!f.followsRun && f.run == "", f.showsTasks)
	}
	looking, stop := context.WithCancel(ctx)
	quiet := startStoreWatcher(looking, v.Client.Health, func(reason string) {
		one.Lock()
		defer one.Unlock()
		if v.Format == output.Text {
			v.PrintNote("%s", explainRefusal(reason))
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

// eventHandler returns a function that shows events in the command's format.
func (v *Viewer) eventHandler(allRuns, tasks bool) func(*graphdv1.Event) error {
	switch v.Format {
	case output.JSONL:
		return func(e *graphdv1.Event) error { return v.ShowMessage(e) }
	case output.JSON:
		return func(*graphdv1.Event) error { return nil }
	case output.Text:
	}
	shown := &output.EventPrinter{
		Printer: v.NewPrinter(), ShowsRuns: allRuns, ShowsTasks: tasks, CommandLine: v.Invocation.CommandLine,
	}
	return shown.PrintEvent
}

// endLeft tells a person who interrupts a stream that only the stream has ended.
// That is no failure of a watch of a thread. It is a failure of a watch of a run,
// which lasts to the run's end.
func (v *Viewer) endLeft(f *follower) error {
	if f.thread == "" {
		return &exit.StatusError{Code: exit.CodeError}
	}
	args := []string{"watch", f.thread}
	if f.run != "" {
		args = append(args, "--run", f.run)
	}
	if f.cursor != nil {
		args = append(args, "--from", argument.FormatCursor(f.cursor))
	}
	v.PrintNote("only the watching has stopped; go on with\n  %s", v.Invocation.CommandLine(args...))
	if f.run == "" {
		return &exit.StatusError{Code: exit.CodeDone}
	}
	return &exit.StatusError{Code: exit.CodeError}
}

// showEnd shows the state of a run when its stream has ended, and turns it into the
// exit code.
func (v *Viewer) showEnd(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	if v.Format == output.JSON {
		if err := v.showRunJSON(ctx, thread, end); err != nil {
			return err
		}
	}
	if v.Format == output.Text {
		if err := v.printEnd(ctx, thread, end); err != nil {
			return err
		}
	}
	return ExitErrorOf(end)
}

// showRunJSON shows the run as JSON, with its questions if it waits.
func (v *Viewer) showRunJSON(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	run := end.GetRun()
	if run == nil {
		return v.ShowMessage(end)
	}
	if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		return v.ShowMessage(run)
	}
	questions, err := v.Client.ListOpenInterrupts(ctx, thread)
	if err != nil {
		return err
	}
	asked := jsontext.MarshalList(&graphdv1.ListInterruptsResponse{Interrupts: questions})
	text := append(bytes.TrimSuffix(jsontext.MarshalMessage(run), []byte("}")), ',')
	return output.WriteJSON(v.Out, jsontext.IndentText(append(text, bytes.TrimPrefix(asked, []byte("{"))...)))
}

// ExitErrorOf returns the error with the exit code of a stream that has ended.
func ExitErrorOf(end *graphdv1.EndOfStream) error {
	if end.GetRun() == nil {
		if end.GetCause() == graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
			return &exit.StatusError{Code: exit.CodeError}
		}
		return nil
	}
	switch state := end.GetRun().GetState(); {
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		return &exit.StatusError{Code: exit.CodeWaiting}
	case IsFinal(state) && state != graphdv1.RunState_RUN_STATE_SUCCEEDED:
		return &exit.StatusError{Code: exit.CodeFailed}
	}
	return nil
}

// IsFinal reports whether a run in this state has ended.
func IsFinal(state graphdv1.RunState) bool {
	return state >= graphdv1.RunState_RUN_STATE_SUCCEEDED
}

func (v *Viewer) printEnd(ctx context.Context, thread string, end *graphdv1.EndOfStream) error {
	p := v.NewPrinter()
	run := end.GetRun()
	switch cause, state := end.GetCause(), run.GetState(); {
	case cause == graphdv1.EndOfStream_CAUSE_THREAD_DELETED:
		p.PrintLine("%s", p.Colorize(output.Red, "the thread was deleted"))
	case cause == graphdv1.EndOfStream_CAUSE_LOG_END:
		p.PrintLine("%s", p.Colorize(output.Dim, "end of the log, cursor "+argument.FormatCursor(end.GetResumeAt())))
	case state == graphdv1.RunState_RUN_STATE_SUCCEEDED:
		p.PrintLine("%s", p.Colorize(output.Green, "succeeded"))
		p.PrintMembers("  ", jsontext.SplitObject(run.GetOutput().GetJson()))
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		questions, err := v.Client.ListOpenInterrupts(ctx, thread)
		if err != nil {
			return err
		}
		for _, q := range questions {
			p.PrintVoting(q)
		}
		if err := p.WriteError(); err != nil {
			return err
		}
		return v.PrintResumeCommand([]string{"resume", thread})
	default:
		p.PrintLine("%s", p.Colorize(output.Red, output.RunStateName(state)))
		if run.GetFailure() != nil {
			p.PrintFailure("  ", run.GetFailure())
		}
		if run.GetFailure().GetReason() == "NON_DETERMINISTIC_NODE" {
			v.printReplayCommand(ctx, p, run)
		}
	}
	return p.WriteError()
}

// printReplayCommand prints the command for a run whose code no longer fits the
// answers it was given.
func (v *Viewer) printReplayCommand(ctx context.Context, p *output.Printer, run *graphdv1.Run) {
	thread, err := v.Client.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: run.GetThreadId()})
	at, version := thread.GetCheckpoint().GetCheckpointId(), thread.GetGraphVersion()
	if err != nil || at == "" {
		at, version = "CHECKPOINT", run.GetGraphVersion()
	}
	name := run.GetGraph()
	if version != "" {
		name += "@" + version
	}
	p.PrintLine("%s", p.Colorize(output.Yellow, "run on, it fails again as long as the node asks something else; ask anew from where the thread stands with"))
	p.PrintLine("  %s", v.Invocation.CommandLine("run", name, "--thread", run.GetThreadId(), "--from-checkpoint", at))
}

// PrintResumeCommand prints the command that resumes, by its arguments. Errors: those of the
// output.
func (v *Viewer) PrintResumeCommand(args []string) error {
	p := v.NewPrinter()
	p.PrintLine("%s", p.Colorize(output.Yellow, "waiting for a person; go on with"))
	p.PrintLine("  %s", v.Invocation.CommandLine(args...))
	return p.WriteError()
}
