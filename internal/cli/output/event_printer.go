package output

import (
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/visible"
)

// EventPrinter shows a stream to people, event by event.
type EventPrinter struct {
	*Printer

	inMessage  bool // a message is being shown piece by piece
	ShowsRuns  bool // a thread is followed: report the state of each of its runs
	ShowsTasks bool // report the state of every task

	CommandLine CommandLine // of calls that are recommended
}

// PrintEvent prints one event. It leaves out events that are not shown to people.
// Errors: those of the output.
func (p *EventPrinter) PrintEvent(e *graphdv1.Event) error {
	if t := e.GetTask(); t != nil && !p.ShowsTasks && !isDelay(t) {
		return p.err
	}
	if _, piece := e.GetKind().(*graphdv1.Event_Message); p.inMessage && (!piece || e.GetValueOmitted()) {
		p.PrintLine("")
		p.inMessage = false
	}
	switch k := e.GetKind().(type) {
	case *graphdv1.Event_Opened:
		p.printOpened(e, k.Opened)
	case *graphdv1.Event_RunState:
		p.printRunState(e, k.RunState)
	case *graphdv1.Event_Values:
		p.printValues(e, k.Values)
	case *graphdv1.Event_Update:
		p.printUpdate(e, k.Update)
	case *graphdv1.Event_Interrupt:
		p.printRaised(e, k.Interrupt.GetInterrupts())
	case *graphdv1.Event_InterruptResolved:
		p.printAllResolved(e, k.InterruptResolved.GetInterrupts())
	case *graphdv1.Event_Task:
		if p.ShowsTasks {
			p.printTask(e, k.Task)
		} else {
			p.printDelay(e, k.Task)
		}
	case *graphdv1.Event_Message:
		p.printMessage(e, k.Message)
	case *graphdv1.Event_Custom:
		p.printCustom(e, k.Custom)
	case *graphdv1.Event_Checkpoint:
		p.printCheckpoint(e, k.Checkpoint)
	case *graphdv1.Event_Gap:
		p.PrintLine("%s", p.Colorize(Dim, "(some passing events were dropped: this reader was slow)"))
	}
	return p.err
}

func (p *EventPrinter) printOpened(e *graphdv1.Event, o *graphdv1.StreamOpened) {
	text := "thread " + e.GetThreadId()
	if id := o.GetRun().GetRunId(); id != "" {
		text += "  run " + id
	}
	text += formatActor("  started ", o.GetRun().GetStartedBy())
	if o.GetAttached() {
		text += "  (the request was known; this is its run)"
	}
	p.PrintLine("%s", p.Colorize(Dim, text))
}

// printRunState reports the state of a run. The state of a single run is printed at
// the end of the command.
func (p *EventPrinter) printRunState(e *graphdv1.Event, c *graphdv1.RunStateChanged) {
	if !p.ShowsRuns {
		return
	}
	p.PrintLine("%s", p.Colorize(Dim, "run "+e.GetRunId()+" "+RunStateName(c.GetState())+formatActor("  ", e.GetActor())))
	if f := c.GetFailure(); f != nil {
		p.PrintFailure("  ", f)
	}
}

func (p *EventPrinter) printValues(e *graphdv1.Event, v *graphdv1.StateValues) {
	p.PrintLine("%s", p.Colorize(Bold, "state")+p.Colorize(Dim, formatStep(e)))
	p.printOmission(e)
	p.PrintMembers("  ", jsontext.SplitObject(v.GetValues().GetJson()))
	for _, q := range v.GetInterrupts() {
		p.PrintInterrupt(q)
	}
	if len(v.GetNext()) > 0 {
		p.PrintLine("  next: %s", strings.Join(v.GetNext(), ", "))
	}
}

func (p *EventPrinter) printUpdate(e *graphdv1.Event, u *graphdv1.NodeUpdate) {
	head := p.formatNode(e)
	if u.GetCached() {
		head += p.Colorize(Dim, "  (kept from before)")
	}
	head += p.Colorize(Dim, formatActor("  ", e.GetActor()))
	p.PrintLine("%s", head)
	switch list := jsontext.SplitObject(u.GetValues().GetJson()); {
	case e.GetValueOmitted():
		p.printOmission(e)
	case len(list) > 0:
		p.PrintMembers("  ", list)
	case list == nil && u.GetValues() != nil && u.GetValues().GetJson() != "null":
		p.PrintLine("  %s", p.formatValue("  ", u.GetValues().GetJson()))
	default:
		p.PrintLine("  %s", p.Colorize(Dim, "(no update)"))
	}
}

// printRaised prints new questions. Without their values it only names the
// differences from earlier questions.
func (p *EventPrinter) printRaised(e *graphdv1.Event, questions []*graphdv1.Interrupt) {
	if e.GetValueOmitted() {
		p.replacedInterrupts = nil
	}
	p.PrintLine("%s", p.Colorize(Yellow, "__interrupt__"))
	for _, q := range questions {
		p.PrintInterrupt(q)
	}
	p.printOmission(e)
}

// printAllResolved prints how questions were resolved. Questions without their
// values can't be compared with their replacements.
func (p *EventPrinter) printAllResolved(e *graphdv1.Event, questions []*graphdv1.Interrupt) {
	for _, q := range questions {
		if !e.GetValueOmitted() {
			p.RecordReplaced(q)
		}
		p.PrintResolved(q, e.GetActor())
	}
	p.printOmission(e)
}

func (p *EventPrinter) printCustom(e *graphdv1.Event, c *graphdv1.CustomEvent) {
	if e.GetValueOmitted() {
		p.PrintLine("%s %s", p.formatNode(e), c.GetName())
		p.printOmission(e)
		return
	}
	p.PrintLine("%s %s  %s", p.formatNode(e), c.GetName(), p.formatValue("  ", c.GetValue().GetJson()))
}

func (p *EventPrinter) printMessage(e *graphdv1.Event, m *graphdv1.MessageDelta) {
	if !e.GetValueOmitted() {
		p.printMessagePart(m)
		return
	}
	p.PrintLine("%s: a part of a message", p.formatNode(e))
	p.printOmission(e)
}

func (p *EventPrinter) printTask(e *graphdv1.Event, t *graphdv1.TaskChange) {
	phase := strings.ToLower(strings.TrimPrefix(t.GetPhase().String(), "PHASE_"))
	if e.GetAttempt() > 1 {
		phase += " (attempt " + FormatInteger(e.GetAttempt()) + ")"
	}
	if d := t.GetRetryDelay(); d != nil {
		phase += ", again in " + d.AsDuration().String()
	}
	p.PrintLine("%s %s", p.formatNode(e), phase)
	if t.GetFailure() != nil {
		p.PrintFailure("  ", t.GetFailure())
	}
}

// isDelay reports whether a task is delayed or set back: its worker is missing, or
// it begins again.
func isDelay(t *graphdv1.TaskChange) bool {
	switch t.GetPhase() {
	case graphdv1.TaskChange_PHASE_UNASSIGNED, graphdv1.TaskChange_PHASE_RETRYING, graphdv1.TaskChange_PHASE_RESTARTED:
		return true
	default:
		return false
	}
}

func (p *EventPrinter) printDelay(e *graphdv1.Event, t *graphdv1.TaskChange) {
	if t.GetPhase() == graphdv1.TaskChange_PHASE_RESTARTED {
		text := " begins anew; what it has shown since its last answer or memo comes again"
		if why := t.GetFailure().GetMessage(); why != "" {
			text = " begins anew: " + why
		}
		p.PrintLine("%s%s", p.formatNode(e), p.Colorize(Yellow, text))
		return
	}
	text := ": "
	if t.GetPhase() == graphdv1.TaskChange_PHASE_RETRYING {
		text = " failed, again in " + t.GetRetryDelay().AsDuration().Round(time.Millisecond).String() + ": "
	}
	p.PrintLine("%s%s", p.formatNode(e), p.Colorize(Yellow, text+t.GetFailure().GetMessage()))
}

// printMessagePart continues a message where the part before ended. A bar before
// each line of a message sets it apart from graphd's own lines.
func (p *EventPrinter) printMessagePart(m *graphdv1.MessageDelta) {
	shown, ok := jsontext.UnquoteString(m.GetValue().GetJson())
	if !ok {
		shown = m.GetValue().GetJson() + "\n"
	}
	for line := range strings.Lines(visible.Lines(shown)) {
		if !p.inMessage {
			line = "| " + line
		}
		p.PrintText("%s", SafeText(line))
		p.inMessage = !strings.HasSuffix(line, "\n")
	}
}

func (p *EventPrinter) printCheckpoint(e *graphdv1.Event, c *graphdv1.CheckpointSaved) {
	text := "checkpoint " + c.GetCheckpoint().GetCheckpointId() + formatStep(e) + formatActor("  ", e.GetActor())
	var next []string
	for _, t := range c.GetNext() {
		next = append(next, t.GetNode())
	}
	if len(next) > 0 {
		text += "  next: " + strings.Join(next, ", ")
	}
	p.PrintLine("%s", p.Colorize(Dim, text))
	p.printOmission(e)
	p.PrintMembers("  ", jsontext.SplitObject(c.GetValues().GetJson()))
}

// PrintFailure prints why a node or a run failed.
func (p *Printer) PrintFailure(indent string, f *graphdv1.Failure) {
	text := f.GetReason() + ": " + f.GetMessage()
	if f.GetNode() != "" {
		text = f.GetNode() + ": " + text
	}
	first, further := cutFirstLine(text)
	p.PrintLine("%s%s", indent, p.Colorize(Red, first))
	p.printBarred(indent+"  ", further)
	for line := range strings.Lines(f.GetStack()) {
		p.PrintLine("%s  %s", indent, p.Colorize(Dim, "| "+strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
}

func (p *EventPrinter) formatNode(e *graphdv1.Event) SafeText {
	return p.Colorize(Bold, nodePath(e.GetNamespace(), e.GetNode()))
}

// nodePath returns a node with the subgraphs around it: "outer/inner/node".
func nodePath(namespace []string, node string) string {
	var b strings.Builder
	for _, element := range namespace {
		name, _, _ := strings.Cut(element, ":")
		b.WriteString(name + "/")
	}
	return b.String() + node
}

// formatActor formats who did something, after other words; "" when that is not known.
func formatActor(before, name string) string {
	if name == "" {
		return ""
	}
	return before + "by " + name
}

func formatStep(e *graphdv1.Event) string { return "  step " + FormatInteger(e.GetStep()) }
