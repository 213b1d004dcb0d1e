package cli

import (
	"context"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// DemoRequest and DemoUser are what the customer writes, and who the customer is, unless
// the caller says otherwise.
const (
	DemoRequest = "I want a refund for order 8841, the lamp arrived broken."
	DemoUser    = "42"
)

// DemoOptions are the parts of the demo.
type DemoOptions struct {
	Thread   string
	Document string // the graph file; "" = the thread is there and waits
	Name     string // of the file, as problems name it
	Request  string // the text of the customer
	User     string // JSON: who the customer is
	Answer   string // JSON; "" = ask at a terminal
	// ResumeArgs are the arguments of a call that resumes, without the answer; those of
	// another demo if the server stores nothing.
	ResumeArgs    []string
	StoresNothing bool
}

// RunDemo plays one refund review against a server: it shows each update as it
// streams, stops at the question, takes the answer, and shows the result. Errors:
// *exit.UsageError, *exit.HintError, *exit.StatusError, gRPC statuses, and those of
// the output.
func (s *Session) RunDemo(ctx context.Context, o DemoOptions) error {
	answer := ""
	if o.Answer != "" {
		value, err := argument.ReadValue(s.In, "--answer", o.Answer)
		if err != nil {
			return err
		}
		answer = value.GetJson()
	}
	d := s.newDemo(o)
	d.answer = answer
	if o.Document != "" {
		if err := d.startRun(ctx); err != nil {
			return err
		}
	}
	if err := d.answerInterrupts(ctx); err != nil {
		return err
	}
	if err := d.printOutcome(ctx); err != nil {
		return err
	}
	return stream.ExitErrorOf(d.end)
}

type demo struct {
	*Session
	*output.EventPrinter

	options DemoOptions
	answer  string
	asker   *prompt.Prompter
	end     *graphdv1.EndOfStream
	isShown map[string]bool // questions that were shown as a whole, by id
}

func (s *Session) newDemo(o DemoOptions) *demo {
	shown := &output.EventPrinter{Printer: s.NewPrinter(), CommandLine: s.Invocation.CommandLine}
	return &demo{Session: s, EventPrinter: shown, options: o, isShown: make(map[string]bool)}
}

// startRun puts the graph and runs it to its first stop.
func (d *demo) startRun(ctx context.Context) error {
	run, err := d.prepareRun(ctx)
	if err != nil {
		return err
	}
	req := &graphdv1.StreamRequest{RequestId: requestIDOrNew(""), Run: run}
	return d.followRun(ctx, func(ctx context.Context) (stream.EventStream, error) {
		return d.Graphs.Stream(ctx, req)
	})
}

// prepareRun puts the graph, and returns the run of the review.
func (d *demo) prepareRun(ctx context.Context) (*graphdv1.RunSpec, error) {
	g, err := d.PutGraphDocument(ctx, d.options.Name, d.options.Document)
	if err != nil {
		return nil, err
	}
	user, err := argument.ReadValue(d.In, "--user", d.options.User)
	if err != nil {
		return nil, err
	}
	input := `{"user_id":` + user.GetJson() + `,"user_request":` + jsontext.QuoteString(d.options.Request) + `}`
	d.PrintLine("%s %s", d.Colorize(output.Bold, "graph"), g.GetGraph())
	d.PrintLine("%s %s", d.Colorize(output.Bold, "input"), input)
	d.PrintLine("")
	return &graphdv1.RunSpec{
		Graph: g.GetGraph(), GraphVersion: g.GetVersion(), ThreadId: d.options.Thread, CreateThread: true,
		Start: &graphdv1.RunSpec_Input{Input: argument.NewPayload(input)},
	}, nil
}

func (d *demo) followRun(ctx context.Context, open func(context.Context) (stream.EventStream, error)) error {
	end, err := d.newViewer().FollowRun(ctx, d.showEvent, open)
	if err == nil {
		d.end = end
	}
	return err
}

// showEvent prints an event, and remembers the questions that it shows.
func (d *demo) showEvent(e *graphdv1.Event) error {
	for _, q := range e.GetInterrupt().GetInterrupts() {
		d.isShown[q.GetInterruptId()] = !e.GetValueOmitted()
	}
	return d.PrintEvent(e)
}

// answerInterrupts resumes the run until it ends. It asks again at the terminal after an
// answer that does not fit the question. Without a terminal it returns *exit.HintError
// with the command that answers.
func (d *demo) answerInterrupts(ctx context.Context) error {
	for {
		if d.end != nil && d.end.GetRun().GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
			return nil
		}
		questions, err := d.ListOpenInterrupts(ctx, d.options.Thread)
		if err != nil {
			return err
		}
		spec, err := d.takeResumeSpec(ctx, questions)
		if err != nil {
			return err
		}
		req := &graphdv1.ResumeRequest{Resume: spec, RequestId: requestIDOrNew("")}
		err = d.followRun(ctx, func(ctx context.Context) (stream.EventStream, error) { return d.Graphs.Resume(ctx, req) })
		if report.Reason(err) == "RESPONSE_SCHEMA_MISMATCH" && d.asker != nil {
			report.NewStatusReport(err).PrintReport(d.Out)
			continue
		}
		if report.Reason(err) == "RESPONSE_SCHEMA_MISMATCH" {
			return &exit.HintError{Err: err, Hint: d.explainOpenQuestion() + "\n  " + d.resumeCommand(questions[0])}
		}
		if err != nil {
			return err
		}
	}
}

// takeResumeSpec takes the answer to the first question, and returns the call that gives
// it. A call without an answer continues after a breakpoint.
func (d *demo) takeResumeSpec(ctx context.Context, questions []*graphdv1.Interrupt) (*graphdv1.ResumeSpec, error) {
	spec := &graphdv1.ResumeSpec{ThreadId: d.options.Thread}
	asked := form.WithoutBreakpoints(questions)
	if len(asked) == 0 {
		return spec, nil
	}
	answer, err := d.takeAnswer(ctx, asked[0])
	if err != nil {
		return nil, err
	}
	if len(questions) == 1 {
		spec.Single = answer
		return spec, nil
	}
	answer.InterruptId = asked[0].GetInterruptId()
	spec.Responses = []*graphdv1.InterruptResponse{answer}
	return spec, nil
}

// explainOpenQuestion introduces the command that gives a question an answer that fits.
func (d *demo) explainOpenQuestion() string {
	if d.options.StoresNothing {
		return "this demo stores nothing; play another with"
	}
	return "the question is still open; go on with"
}

// resumeCommand returns the command that resumes: one that asks, or one with an answer that
// fits.
func (d *demo) resumeCommand(q *graphdv1.Interrupt) string {
	if d.IsTerminal && !d.options.StoresNothing { // where the command asks
		return d.Invocation.CommandLine(d.options.ResumeArgs...)
	}
	example := form.ParseSchema(q.GetResponseSchema().GetJson()).ExampleText()
	return d.Invocation.CommandLine(append(d.options.ResumeArgs, "--answer", example)...)
}

// takeAnswer takes the answer that was given beforehand, once, or asks for an answer.
func (d *demo) takeAnswer(
	ctx context.Context, q *graphdv1.Interrupt,
) (*graphdv1.InterruptResponse, error) {
	text := d.answer
	d.answer = ""
	switch {
	case text != "":
	case d.IsTerminal:
		if d.asker == nil {
			d.asker = prompt.NewPrompter(d.NewPrinter(), d.IO)
		}
		if !d.isShown[q.GetInterruptId()] {
			d.PrintInterrupt(q)
			d.isShown[q.GetInterruptId()] = true
		}
		var err error
		if text, err = d.asker.ReadAnswerTo(ctx, q); err != nil {
			return nil, d.endWaiting(q)
		}
	default:
		return nil, d.endWaiting(q)
	}
	d.PrintLine("")
	d.PrintLine("%s %s", d.Colorize(output.Bold, "answer"), jsontext.CompactText(text))
	d.PrintLine("")
	return &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: argument.NewPayload(text)}}, d.WriteError()
}

// endWaiting prints how to continue later.
func (d *demo) endWaiting(q *graphdv1.Interrupt) error {
	next := "everything is stored. Resume with"
	if d.options.StoresNothing {
		next = d.explainOpenQuestion()
	}
	d.PrintLine("")
	d.PrintLine("%s", d.Colorize(output.Yellow, "waiting for a person; "+next))
	d.PrintLine("  %s", d.resumeCommand(q))
	if err := d.WriteError(); err != nil {
		return err
	}
	return &exit.StatusError{Code: exit.CodeWaiting}
}

// printOutcome shows the outcome, the conversation and the checkpoints.
func (d *demo) printOutcome(ctx context.Context) error {
	if f := d.end.GetRun().GetFailure(); f != nil {
		d.PrintFailure("", f)
	}
	state, err := d.Threads.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: d.options.Thread})
	if err != nil {
		return err
	}
	values := jsontext.MembersByKey(state.GetValues().GetJson())
	d.PrintLine("")
	d.PrintLine("%s", d.Colorize(output.Green, "final response"))
	d.printProse(readableText(values["final_response"]))
	d.PrintLine("")
	d.PrintLine("%s", d.Colorize(output.Green, "conversation history"))
	for _, entry := range jsontext.SplitArray(values["conversation_history"]) {
		parts := jsontext.MembersByKey(entry)
		if parts["node"] == "" || parts["content"] == "" {
			d.PrintLine("  %s", entry)
			continue
		}
		d.PrintLine("  %s: %s", readableText(parts["node"]), readableText(parts["content"]))
	}
	all, err := d.ListCheckpoints(ctx, d.options.Thread, 0, false)
	if err != nil {
		return err
	}
	d.PrintLine("")
	d.PrintLine("%s", d.Colorize(output.Green, "checkpoints, newest first"))
	d.PrintHistory(all, false)
	return d.WriteError()
}

// printProse writes a text that may have several lines. A bar before each line sets
// it apart from graphd's own lines.
func (d *demo) printProse(s string) {
	if !strings.Contains(s, "\n") {
		d.PrintLine("  %s", s)
		return
	}
	for line := range strings.Lines(s) {
		d.PrintLine("  | %s", strings.TrimRight(line, "\r\n"))
	}
}

// readableText returns a JSON string without quotes, and any other value as JSON.
func readableText(text string) string {
	if s, ok := jsontext.UnquoteString(text); ok {
		return strings.TrimRight(s, "\n")
	}
	return output.OrDash(jsontext.CompactText(text))
}
