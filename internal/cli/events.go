package cli

import (
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/visible"
)

// events shows a stream to people, event by event.
type events struct {
	*page

	open    bool // a message is being shown piece by piece
	allRuns bool // a thread is followed: say how each of its runs goes
	tasks   bool // show what becomes of every task
}

func (p *events) show(e *graphdv1.Event) error {
	if t := e.GetTask(); t != nil && !p.tasks && !delays(t) {
		return p.err
	}
	if _, piece := e.GetKind().(*graphdv1.Event_Message); p.open && !piece {
		p.line("")
		p.open = false
	}
	switch k := e.GetKind().(type) {
	case *graphdv1.Event_Opened:
		p.opened(e, k.Opened)
	case *graphdv1.Event_RunState:
		p.runState(e, k.RunState)
	case *graphdv1.Event_Values:
		p.values(e, k.Values)
	case *graphdv1.Event_Update:
		p.update(e, k.Update)
	case *graphdv1.Event_Interrupt:
		p.line("%s", p.paint(yellow, "__interrupt__"))
		for _, q := range k.Interrupt.GetInterrupts() {
			p.question(q)
		}
	case *graphdv1.Event_InterruptResolved:
		for _, q := range k.InterruptResolved.GetInterrupts() {
			p.rememberQuestion(q)
			p.resolved(q)
		}
	case *graphdv1.Event_Task:
		if p.tasks {
			p.task(e, k.Task)
		} else {
			p.delay(e, k.Task)
		}
	case *graphdv1.Event_Message:
		p.piece(k.Message)
	case *graphdv1.Event_Custom:
		p.line("%s %s  %s", p.node(e), k.Custom.GetName(), p.value("  ", k.Custom.GetValue().GetJson()))
	case *graphdv1.Event_Checkpoint:
		p.checkpoint(e, k.Checkpoint)
	case *graphdv1.Event_Gap:
		p.line("%s", p.paint(dim, "(some passing events were dropped: this reader was slow)"))
	}
	return p.err
}

func (p *events) opened(e *graphdv1.Event, o *graphdv1.StreamOpened) {
	text := "thread " + e.GetThreadId()
	if id := o.GetRun().GetRunId(); id != "" {
		text += "  run " + id
	}
	if o.GetAttached() {
		text += "  (the request was known; this is its run)"
	}
	p.line("%s", p.paint(dim, text))
}

// runState tells how a run goes; of a single run that is said at the end.
func (p *events) runState(e *graphdv1.Event, c *graphdv1.RunStateChanged) {
	if !p.allRuns {
		return
	}
	p.line("%s", p.paint(dim, "run "+e.GetRunId()+" "+stateWord(c.GetState())))
	if f := c.GetFailure(); f != nil {
		p.failure("  ", f)
	}
}

func (p *events) values(e *graphdv1.Event, v *graphdv1.StateValues) {
	p.line("%s", p.paint(bold, "state")+p.paint(dim, stepOf(e)))
	p.pairs("  ", members(v.GetValues().GetJson()))
	for _, q := range v.GetInterrupts() {
		p.question(q)
	}
	if len(v.GetNext()) > 0 {
		p.line("  next: %s", strings.Join(v.GetNext(), ", "))
	}
}

func (p *events) update(e *graphdv1.Event, u *graphdv1.NodeUpdate) {
	head := p.node(e)
	if u.GetCached() {
		head += p.paint(dim, "  (kept from before)")
	}
	p.line("%s", head)
	switch list := members(u.GetValues().GetJson()); {
	case e.GetValueOmitted():
		p.line("  (too large to be sent; see state)")
	case len(list) > 0:
		p.pairs("  ", list)
	case list == nil && u.GetValues() != nil && u.GetValues().GetJson() != "null":
		p.line("  %s", p.value("  ", u.GetValues().GetJson()))
	default:
		p.line("  %s", p.paint(dim, "(no update)"))
	}
}

func (p *events) task(e *graphdv1.Event, t *graphdv1.TaskChange) {
	phase := strings.ToLower(strings.TrimPrefix(t.GetPhase().String(), "PHASE_"))
	if e.GetAttempt() > 1 {
		phase += " (attempt " + number(e.GetAttempt()) + ")"
	}
	if d := t.GetRetryDelay(); d != nil {
		phase += ", again in " + d.AsDuration().String()
	}
	p.line("%s %s", p.node(e), phase)
	if t.GetFailure() != nil {
		p.failure("  ", t.GetFailure())
	}
}

// delays reports whether a task is held up or set back: its worker is missing,
// or it begins anew.
func delays(t *graphdv1.TaskChange) bool {
	switch t.GetPhase() {
	case graphdv1.TaskChange_PHASE_UNASSIGNED, graphdv1.TaskChange_PHASE_RETRYING, graphdv1.TaskChange_PHASE_RESTARTED:
		return true
	default:
		return false
	}
}

func (p *events) delay(e *graphdv1.Event, t *graphdv1.TaskChange) {
	if t.GetPhase() == graphdv1.TaskChange_PHASE_RESTARTED {
		text := " begins anew; what it has shown since its last answer or memo comes again"
		if why := t.GetFailure().GetMessage(); why != "" {
			text = " begins anew: " + why
		}
		p.line("%s%s", p.node(e), p.paint(yellow, text))
		return
	}
	text := ": "
	if t.GetPhase() == graphdv1.TaskChange_PHASE_RETRYING {
		text = " failed, again in " + t.GetRetryDelay().AsDuration().Round(time.Millisecond).String() + ": "
	}
	p.line("%s%s", p.node(e), p.paint(yellow, text+t.GetFailure().GetMessage()))
}

// piece shows a part of a message where the one before it ended. Lines of a
// message have a bar before them, so that none looks like one of ours.
func (p *events) piece(m *graphdv1.MessageDelta) {
	shown, ok := plainText(m.GetValue().GetJson())
	if !ok {
		shown = m.GetValue().GetJson() + "\n"
	}
	for line := range strings.Lines(visible.Lines(shown)) {
		if !p.open {
			line = "| " + line
		}
		p.print("%s", text(line))
		p.open = !strings.HasSuffix(line, "\n")
	}
}

func (p *events) checkpoint(e *graphdv1.Event, c *graphdv1.CheckpointSaved) {
	text := "checkpoint " + c.GetCheckpoint().GetCheckpointId() + stepOf(e)
	var next []string
	for _, t := range c.GetNext() {
		next = append(next, t.GetNode())
	}
	if len(next) > 0 {
		text += "  next: " + strings.Join(next, ", ")
	}
	p.line("%s", p.paint(dim, text))
	p.pairs("  ", members(c.GetValues().GetJson()))
}

func (p *page) failure(indent string, f *graphdv1.Failure) {
	text := f.GetReason() + ": " + f.GetMessage()
	if f.GetNode() != "" {
		text = f.GetNode() + ": " + text
	}
	first, further := firstLine(text)
	p.line("%s%s", indent, p.paint(red, first))
	p.printBarred(indent+"  ", further)
	for line := range strings.Lines(f.GetStack()) {
		p.line("%s  %s", indent, p.paint(dim, "| "+strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
}

func (p *events) node(e *graphdv1.Event) text {
	return p.paint(bold, place(e.GetNamespace(), e.GetNode()))
}

// place names a node with the subgraphs around it: "outer/inner/node".
func place(namespace []string, node string) string {
	var b strings.Builder
	for _, element := range namespace {
		name, _, _ := strings.Cut(element, ":")
		b.WriteString(name + "/")
	}
	return b.String() + node
}

func stepOf(e *graphdv1.Event) string { return "  step " + number(e.GetStep()) }
