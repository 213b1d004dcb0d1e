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
	// Again are the arguments of a call that resumes, without the answer.
	Again []string
}

// Demo plays one refund review against a server: it shows each update as it
// streams, stops at the question, takes the answer, and shows what came out.
func (s *Session) Demo(ctx context.Context, o DemoOptions) error {
	answer := ""
	if o.Answer != "" {
		value, err := s.Value("--answer", o.Answer)
		if err != nil {
			return err
		}
		answer = value.GetJson()
	}
	d := &demo{Session: s, events: &events{page: s.page()}, o: o, answer: answer}
	if o.Document != "" {
		if err := d.begin(ctx); err != nil {
			return err
		}
	}
	if err := d.review(ctx); err != nil {
		return err
	}
	if err := d.epilogue(ctx); err != nil {
		return err
	}
	return verdict(d.end)
}

type demo struct {
	*Session
	*events

	o      DemoOptions
	answer string
	ask    *prompt
	end    *graphdv1.EndOfStream
}

// begin puts the graph and runs it to its first stop.
func (d *demo) begin(ctx context.Context) error {
	g, err := d.putDocument(ctx, d.o.Name, d.o.Document)
	if err != nil {
		return err
	}
	user, err := d.Value("--user", d.o.User)
	if err != nil {
		return err
	}
	input := `{"user_id":` + user.GetJson() + `,"user_request":` + jsonString(d.o.Request) + `}`
	d.line("%s %s", d.paint(bold, "graph"), g.GetGraph())
	d.line("%s %s", d.paint(bold, "input"), input)
	d.line("")
	req := &graphdv1.StreamRequest{RequestId: requestID(""), Run: &graphdv1.RunSpec{
		Graph: g.GetGraph(), GraphVersion: g.GetVersion(), ThreadId: d.o.Thread, CreateThread: true,
		Start: &graphdv1.RunSpec_Input{Input: jsonPayload(input)},
	}}
	return d.play(ctx, func(ctx context.Context) (eventStream, error) {
		return d.Graphs.Stream(ctx, req)
	})
}

func (d *demo) play(ctx context.Context, open func(context.Context) (eventStream, error)) error {
	f := &follow{ofRun: true, show: d.show}
	end, err := d.follow(ctx, f, open)
	if err == nil {
		d.end = end
	}
	return err
}

// review answers until nothing is asked any more.
func (d *demo) review(ctx context.Context) error {
	for {
		if d.end != nil && d.end.GetRun().GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
			return nil
		}
		questions, err := d.openQuestions(ctx, d.o.Thread)
		if err != nil {
			return err
		}
		spec := &graphdv1.ResumeSpec{ThreadId: d.o.Thread}
		if asked := withoutBreakpoints(questions); len(asked) > 0 {
			if spec.Single, err = d.decide(ctx, asked[0]); err != nil {
				return err
			}
			if len(questions) > 1 {
				spec.Responses, spec.Single = []*graphdv1.InterruptResponse{spec.Single}, nil
				spec.Responses[0].InterruptId = asked[0].GetInterruptId()
			}
		}
		req := &graphdv1.ResumeRequest{Resume: spec, RequestId: requestID("")}
		err = d.play(ctx, func(ctx context.Context) (eventStream, error) { return d.Graphs.Resume(ctx, req) })
		if Reason(err) == "RESPONSE_SCHEMA_MISMATCH" && d.ask != nil {
			refusal(err).write(d.Out)
			continue
		}
		if Reason(err) == "RESPONSE_SCHEMA_MISMATCH" {
			return &HintError{Err: err, Hint: "the question is still open; go on with\n  " + d.again(questions[0])}
		}
		if err != nil {
			return err
		}
	}
}

// again is the command that resumes with an answer that fits.
func (d *demo) again(q *graphdv1.Interrupt) string {
	example := formOf(q.GetResponseSchema().GetJson()).example()
	return d.Self.Command(append(d.o.Again, "--answer", example)...)
}

// decide takes the answer that was given beforehand, once, or asks for one.
func (d *demo) decide(
	ctx context.Context, q *graphdv1.Interrupt,
) (*graphdv1.InterruptResponse, error) {
	text := d.answer
	d.answer = ""
	switch {
	case text != "":
	case d.Terminal:
		if d.ask == nil {
			d.ask = d.prompt()
		}
		var err error
		if text, err = d.ask.read(ctx, formOf(q.GetResponseSchema().GetJson())); err != nil {
			return nil, d.waits(q)
		}
	default:
		return nil, d.waits(q)
	}
	d.line("")
	d.line("%s %s", d.paint(bold, "answer"), Compact(text))
	d.line("")
	return &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(text)}}, d.err
}

// waits says how to go on later.
func (d *demo) waits(q *graphdv1.Interrupt) error {
	d.line("")
	d.line("%s", d.paint(yellow, "waiting for a person; everything is stored. Resume with"))
	d.line("  %s", d.again(q))
	if d.err != nil {
		return d.err
	}
	return &EndedError{Code: ExitWaiting}
}

// epilogue shows the outcome, the conversation and the checkpoints.
func (d *demo) epilogue(ctx context.Context) error {
	if f := d.end.GetRun().GetFailure(); f != nil {
		d.failure("", f)
	}
	state, err := d.Threads.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: d.o.Thread})
	if err != nil {
		return err
	}
	values := asMap(state.GetValues().GetJson())
	d.line("")
	d.line("%s", d.paint(green, "final response"))
	d.prose(readable(values["final_response"]))
	d.line("")
	d.line("%s", d.paint(green, "conversation history"))
	for _, entry := range elements(values["conversation_history"]) {
		parts := asMap(entry)
		if parts["node"] == "" || parts["content"] == "" {
			d.line("  %s", entry)
			continue
		}
		d.line("  %s: %s", readable(parts["node"]), readable(parts["content"]))
	}
	all, err := d.checkpoints(ctx, HistoryOptions{Thread: d.o.Thread})
	if err != nil {
		return err
	}
	d.line("")
	d.line("%s", d.paint(green, "checkpoints, newest first"))
	d.history(all, false)
	return d.err
}

// prose writes a text that may have several lines, which then have a bar before
// them, so that none looks like one of ours.
func (p *page) prose(s string) {
	if !strings.Contains(s, "\n") {
		p.line("  %s", s)
		return
	}
	for line := range strings.Lines(s) {
		p.line("  | %s", strings.TrimRight(line, "\r\n"))
	}
}

// readable is a JSON string as the text it is, and any other value as JSON.
func readable(text string) string {
	if s, ok := plainText(text); ok {
		return strings.TrimRight(s, "\n")
	}
	return orDash(Compact(text))
}
