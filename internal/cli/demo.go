package cli

import (
	"context"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// DemoOptions are what the demo is about.
type DemoOptions struct {
	Thread   string
	Document string // the graph file; "" = the thread is there and waits
	Name     string // of the file, for the words of problems
	Request  string // what the customer writes
	User     string // JSON: who the customer is
	Answer   string // JSON; "" = ask at a terminal
	// ResumeArgs are the arguments of a call that resumes, without the answer.
	ResumeArgs []string
}

// RunDemo plays one refund review against a server: it shows each update as it
// streams, stops at the question, takes the answer, and shows what came out.
func (s *Session) RunDemo(ctx context.Context, o DemoOptions) error {
	answer := ""
	if o.Answer != "" {
		value, err := readValue(s.In, "--answer", o.Answer)
		if err != nil {
			return err
		}
		answer = value.GetJson()
	}
	d := &demo{Session: s, eventPrinter: &eventPrinter{printer: s.newPrinter()}, options: o, answer: answer}
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
	return exitErrorOf(d.end)
}

type demo struct {
	*Session
	*eventPrinter

	options DemoOptions
	answer  string
	asker   *prompter
	end     *graphdv1.EndOfStream
}

// startRun puts the graph and runs it to its first stop.
func (d *demo) startRun(ctx context.Context) error {
	g, err := d.putGraphDocument(ctx, d.options.Name, d.options.Document)
	if err != nil {
		return err
	}
	user, err := readValue(d.In, "--user", d.options.User)
	if err != nil {
		return err
	}
	input := `{"user_id":` + user.GetJson() + `,"user_request":` + jsonString(d.options.Request) + `}`
	d.printLine("%s %s", d.colorize(bold, "graph"), g.GetGraph())
	d.printLine("%s %s", d.colorize(bold, "input"), input)
	d.printLine("")
	req := &graphdv1.StreamRequest{RequestId: requestIDOrNew(""), Run: &graphdv1.RunSpec{
		Graph: g.GetGraph(), GraphVersion: g.GetVersion(), ThreadId: d.options.Thread, CreateThread: true,
		Start: &graphdv1.RunSpec_Input{Input: jsonPayload(input)},
	}}
	return d.followRun(ctx, func(ctx context.Context) (eventStream, error) {
		return d.Graphs.Stream(ctx, req)
	})
}

func (d *demo) followRun(ctx context.Context, open func(context.Context) (eventStream, error)) error {
	end, err := d.newViewer().followRun(ctx, d.printEvent, open)
	if err == nil {
		d.end = end
	}
	return err
}

// answerInterrupts answers until nothing is asked any more.
func (d *demo) answerInterrupts(ctx context.Context) error {
	for {
		if d.end != nil && d.end.GetRun().GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
			return nil
		}
		questions, err := d.listOpenInterrupts(ctx, d.options.Thread)
		if err != nil {
			return err
		}
		spec := &graphdv1.ResumeSpec{ThreadId: d.options.Thread}
		if asked := withoutBreakpoints(questions); len(asked) > 0 {
			if spec.Single, err = d.takeAnswer(ctx, asked[0]); err != nil {
				return err
			}
			if len(questions) > 1 {
				spec.Responses, spec.Single = []*graphdv1.InterruptResponse{spec.Single}, nil
				spec.Responses[0].InterruptId = asked[0].GetInterruptId()
			}
		}
		req := &graphdv1.ResumeRequest{Resume: spec, RequestId: requestIDOrNew("")}
		err = d.followRun(ctx, func(ctx context.Context) (eventStream, error) { return d.Graphs.Resume(ctx, req) })
		if Reason(err) == "RESPONSE_SCHEMA_MISMATCH" && d.asker != nil {
			newStatusReport(err).printReport(d.Out)
			continue
		}
		if Reason(err) == "RESPONSE_SCHEMA_MISMATCH" {
			return &HintError{Err: err, Hint: "the question is still open; go on with\n  " + d.resumeCommand(questions[0])}
		}
		if err != nil {
			return err
		}
	}
}

// resumeCommand returns the command that resumes with an answer that fits.
func (d *demo) resumeCommand(q *graphdv1.Interrupt) string {
	example := parseForm(q.GetResponseSchema().GetJson()).exampleText()
	return d.Invocation.CommandLine(append(d.options.ResumeArgs, "--answer", example)...)
}

// takeAnswer takes the answer that was given beforehand, once, or asks for one.
func (d *demo) takeAnswer(
	ctx context.Context, q *graphdv1.Interrupt,
) (*graphdv1.InterruptResponse, error) {
	text := d.answer
	d.answer = ""
	switch {
	case text != "":
	case d.IsTerminal:
		if d.asker == nil {
			d.asker = newPrompter(d.newPrinter(), d.In)
		}
		var err error
		if text, err = d.asker.readAnswer(ctx, parseForm(q.GetResponseSchema().GetJson())); err != nil {
			return nil, d.endWaiting(q)
		}
	default:
		return nil, d.endWaiting(q)
	}
	d.printLine("")
	d.printLine("%s %s", d.colorize(bold, "answer"), Compact(text))
	d.printLine("")
	return &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(text)}}, d.writeError()
}

// endWaiting says how to go on later.
func (d *demo) endWaiting(q *graphdv1.Interrupt) error {
	d.printLine("")
	d.printLine("%s", d.colorize(yellow, "waiting for a person; everything is stored. Resume with"))
	d.printLine("  %s", d.resumeCommand(q))
	if err := d.writeError(); err != nil {
		return err
	}
	return &ExitCodeError{Code: ExitWaiting}
}

// printOutcome shows the outcome, the conversation and the checkpoints.
func (d *demo) printOutcome(ctx context.Context) error {
	if f := d.end.GetRun().GetFailure(); f != nil {
		d.printFailure("", f)
	}
	state, err := d.Threads.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: d.options.Thread})
	if err != nil {
		return err
	}
	values := membersByKey(state.GetValues().GetJson())
	d.printLine("")
	d.printLine("%s", d.colorize(green, "final response"))
	d.printProse(readableText(values["final_response"]))
	d.printLine("")
	d.printLine("%s", d.colorize(green, "conversation history"))
	for _, entry := range splitArray(values["conversation_history"]) {
		parts := membersByKey(entry)
		if parts["node"] == "" || parts["content"] == "" {
			d.printLine("  %s", entry)
			continue
		}
		d.printLine("  %s: %s", readableText(parts["node"]), readableText(parts["content"]))
	}
	all, err := d.listCheckpoints(ctx, d.options.Thread, 0, false)
	if err != nil {
		return err
	}
	d.printLine("")
	d.printLine("%s", d.colorize(green, "checkpoints, newest first"))
	d.printHistory(all, false)
	return d.writeError()
}

// printProse writes a text that may have several lines, which then have a bar before
// them, so that none looks like one of ours.
func (d *demo) printProse(s string) {
	if !strings.Contains(s, "\n") {
		d.printLine("  %s", s)
		return
	}
	for line := range strings.Lines(s) {
		d.printLine("  | %s", strings.TrimRight(line, "\r\n"))
	}
}

// readableText is a JSON string as the text it is, and any other value as JSON.
func readableText(text string) string {
	if s, ok := unquoteJSON(text); ok {
		return strings.TrimRight(s, "\n")
	}
	return orDash(Compact(text))
}
