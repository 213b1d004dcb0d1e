package cli

import (
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/visible"
)

// eventPrinter shows a stream to people, event by event.
type eventPrinter struct {
	*printer

	inMessage  bool // a message is being shown piece by piece
	showsRuns  bool // a thread is followed: say how each of its runs goes
	showsTasks bool // show what becomes of every task
}

func (p *eventPrinter) printEvent(e *graphdv1.Event) error {
	if t := e.GetTask(); t != nil && !p.showsTasks && !isDelay(t) {
		return p.err
	}
	if _, piece := e.GetKind().(*graphdv1.Event_Message); p.inMessage && !piece {
		p.printLine("")
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
		p.printLine("%s", p.colorize(yellow, "__interrupt__"))
		for _, q := range k.Interrupt.GetInterrupts() {
			p.printInterrupt(q)
		}
	case *graphdv1.Event_InterruptResolved:
		for _, q := range k.InterruptResolved.GetInterrupts() {
			p.recordReplaced(q)
			p.printResolved(q)
		}
	case *graphdv1.Event_Task:
		if p.showsTasks {
			p.printTask(e, k.Task)
		} else {
			p.printDelay(e, k.Task)
		}
	case *graphdv1.Event_Message:
		p.printMessagePart(k.Message)
	case *graphdv1.Event_Custom:
		p.printLine("%s %s  %s", p.formatNode(e), k.Custom.GetName(), p.formatValue("  ", k.Custom.GetValue().GetJson()))
	case *graphdv1.Event_Checkpoint:
		p.printCheckpoint(e, k.Checkpoint)
	case *graphdv1.Event_Gap:
		p.printLine("%s", p.colorize(dim, "(some passing events were dropped: this reader was slow)"))
	}
	return p.err
}

func (p *eventPrinter) printOpened(e *graphdv1.Event, o *graphdv1.StreamOpened) {
	text := "thread " + e.GetThreadId()
	if id := o.GetRun().GetRunId(); id != "" {
		text += "  run " + id
	}
	if o.GetAttached() {
		text += "  (the request was known; this is its run)"
	}
	p.printLine("%s", p.colorize(dim, text))
}

// printRunState tells how a run goes; of a single run that is said at the end.
func (p *eventPrinter) printRunState(e *graphdv1.Event, c *graphdv1.RunStateChanged) {
	if !p.showsRuns {
		return
	}
	p.printLine("%s", p.colorize(dim, "run "+e.GetRunId()+" "+runStateName(c.GetState())))
	if f := c.GetFailure(); f != nil {
		p.printFailure("  ", f)
	}
}

func (p *eventPrinter) printValues(e *graphdv1.Event, v *graphdv1.StateValues) {
	p.printLine("%s", p.colorize(bold, "state")+p.colorize(dim, formatStep(e)))
	p.printMembers("  ", splitObject(v.GetValues().GetJson()))
	for _, q := range v.GetInterrupts() {
		p.printInterrupt(q)
	}
	if len(v.GetNext()) > 0 {
		p.printLine("  next: %s", strings.Join(v.GetNext(), ", "))
	}
}

func (p *eventPrinter) printUpdate(e *graphdv1.Event, u *graphdv1.NodeUpdate) {
	head := p.formatNode(e)
	if u.GetCached() {
		head += p.colorize(dim, "  (kept from before)")
	}
	p.printLine("%s", head)
	switch list := splitObject(u.GetValues().GetJson()); {
	case e.GetValueOmitted():
		p.printLine("  (too large to be sent; see state)")
	case len(list) > 0:
		p.printMembers("  ", list)
	case list == nil && u.GetValues() != nil && u.GetValues().GetJson() != "null":
		p.printLine("  %s", p.formatValue("  ", u.GetValues().GetJson()))
	default:
		p.printLine("  %s", p.colorize(dim, "(no update)"))
	}
}

func (p *eventPrinter) printTask(e *graphdv1.Event, t *graphdv1.TaskChange) {
	phase := strings.ToLower(strings.TrimPrefix(t.GetPhase().String(), "PHASE_"))
	if e.GetAttempt() > 1 {
		phase += " (attempt " + formatInteger(e.GetAttempt()) + ")"
	}
	if d := t.GetRetryDelay(); d != nil {
		phase += ", again in " + d.AsDuration().String()
	}
	p.printLine("%s %s", p.formatNode(e), phase)
	if t.GetFailure() != nil {
		p.printFailure("  ", t.GetFailure())
	}
}

// isDelay reports whether a task is held up or set back: its worker is missing,
// or it begins anew.
func isDelay(t *graphdv1.TaskChange) bool {
	switch t.GetPhase() {
	case graphdv1.TaskChange_PHASE_UNASSIGNED, graphdv1.TaskChange_PHASE_RETRYING, graphdv1.TaskChange_PHASE_RESTARTED:
		return true
	default:
		return false
	}
}

func (p *eventPrinter) printDelay(e *graphdv1.Event, t *graphdv1.TaskChange) {
	if t.GetPhase() == graphdv1.TaskChange_PHASE_RESTARTED {
		text := " begins anew; what it has shown since its last answer or memo comes again"
		if why := t.GetFailure().GetMessage(); why != "" {
			text = " begins anew: " + why
		}
		p.printLine("%s%s", p.formatNode(e), p.colorize(yellow, text))
		return
	}
	text := ": "
	if t.GetPhase() == graphdv1.TaskChange_PHASE_RETRYING {
		text = " failed, again in " + t.GetRetryDelay().AsDuration().Round(time.Millisecond).String() + ": "
	}
	p.printLine("%s%s", p.formatNode(e), p.colorize(yellow, text+t.GetFailure().GetMessage()))
}

// printMessagePart shows a part of a message where the one before it ended. Lines of a
// message have a bar before them, so that none looks like one of ours.
func (p *eventPrinter) printMessagePart(m *graphdv1.MessageDelta) {
	shown, ok := unquoteJSON(m.GetValue().GetJson())
	if !ok {
		shown = m.GetValue().GetJson() + "\n"
	}
	for line := range strings.Lines(visible.Lines(shown)) {
		if !p.inMessage {
			line = "| " + line
		}
		p.printText("%s", safeText(line))
		p.inMessage = !strings.HasSuffix(line, "\n")
	}
}

func (p *eventPrinter) printCheckpoint(e *graphdv1.Event, c *graphdv1.CheckpointSaved) {
	text := "checkpoint " + c.GetCheckpoint().GetCheckpointId() + formatStep(e)
	var next []string
	for _, t := range c.GetNext() {
		next = append(next, t.GetNode())
	}
	if len(next) > 0 {
		text += "  next: " + strings.Join(next, ", ")
	}
	p.printLine("%s", p.colorize(dim, text))
	p.printMembers("  ", splitObject(c.GetValues().GetJson()))
}

func (p *printer) printFailure(indent string, f *graphdv1.Failure) {
	text := f.GetReason() + ": " + f.GetMessage()
	if f.GetNode() != "" {
		text = f.GetNode() + ": " + text
	}
	first, further := cutFirstLine(text)
	p.printLine("%s%s", indent, p.colorize(red, first))
	p.printBarred(indent+"  ", further)
	for line := range strings.Lines(f.GetStack()) {
		p.printLine("%s  %s", indent, p.colorize(dim, "| "+strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
}

func (p *eventPrinter) formatNode(e *graphdv1.Event) safeText {
	return p.colorize(bold, nodePath(e.GetNamespace(), e.GetNode()))
}

// nodePath names a node with the subgraphs around it: "outer/inner/node".
func nodePath(namespace []string, node string) string {
	var b strings.Builder
	for _, element := range namespace {
		name, _, _ := strings.Cut(element, ":")
		b.WriteString(name + "/")
	}
	return b.String() + node
}

func formatStep(e *graphdv1.Event) string { return "  step " + formatInteger(e.GetStep()) }
