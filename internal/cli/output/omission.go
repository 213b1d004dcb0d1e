package output

import (
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/form"
)

// CommandLine words a call of this program so that it can be pasted into a shell.
type CommandLine = func(args ...string) string

// omissionText says why a value is not shown.
const omissionText = "left out: larger than a message of the server may be (serve --max-message)"

// printOmission says that an event comes without its value, and which command shows
// it.
func (p *EventPrinter) printOmission(e *graphdv1.Event) {
	if !e.GetValueOmitted() {
		return
	}
	thread := e.GetThreadId()
	switch k := e.GetKind().(type) {
	case *graphdv1.Event_Values:
		p.PrintStateOmission("  ", thread, k.Values.GetCheckpoint(), p.CommandLine)
		if slices.ContainsFunc(form.WithoutBreakpoints(k.Values.GetInterrupts()), hasNoValue) {
			p.printOmissionCommand("  ", "; its questions", p.CommandLine("inbox", "--thread", thread))
		}
	case *graphdv1.Event_Checkpoint:
		p.PrintStateOmission("  ", thread, k.Checkpoint.GetCheckpoint(), p.CommandLine)
	case *graphdv1.Event_Update:
		p.printOmissionCommand("  ", "; what it made of the state", p.CommandLine("state", thread, "--keys", "KEY"))
	case *graphdv1.Event_Interrupt:
		p.printOmissionCommand("  ", "", p.CommandLine("inbox", "--thread", thread))
	case *graphdv1.Event_InterruptResolved:
		p.printOmissionCommand("  ", "", p.CommandLine("inbox", "--thread", thread, "--filter", `state = "*"`))
	default:
		p.PrintLine("  %s", p.Colorize(Yellow, omissionText))
	}
}

// PrintStateOmission says that a state is left out, and which command shows it: key by
// key, since as a whole it is too large for an answer, too.
func (p *Printer) PrintStateOmission(indent, thread string, at *graphdv1.CheckpointRef, line CommandLine) {
	if len(at.GetNamespace()) > 0 {
		p.PrintLine("%s%s", indent, p.Colorize(Yellow, omissionText+"; GetState reads it by keys"))
		return
	}
	args := []string{"state", thread}
	if id := at.GetCheckpointId(); id != "" {
		args = append(args, "--checkpoint", id)
	}
	p.printOmissionCommand(indent, "", line(append(args, "--keys", "KEY")...))
}

// hasNoValue reports whether a snapshot had no room for a question.
func hasNoValue(q *graphdv1.Interrupt) bool { return q.GetValue() == nil }

func (p *Printer) printOmissionCommand(indent, about, line string) {
	p.PrintLine("%s%s", indent, p.Colorize(Yellow, omissionText+about+"; see"))
	p.PrintLine("%s  %s", indent, line)
}
