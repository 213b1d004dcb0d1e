package output

import (
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// PrintTrailEntry prints one thing that happened to a question.
func (p *Printer) PrintTrailEntry(e *graphdv1.TrailEntry) { p.printTrailEntry("", e) }

func (p *Printer) printTrailEntry(indent string, e *graphdv1.TrailEntry) {
	kind := strings.ToLower(strings.TrimPrefix(e.GetKind().String(), "TRAIL_KIND_"))
	var says SafeText
	switch {
	case e.GetDismissed():
		says = "  declines"
	case e.GetValue() != nil:
		says = "  " + p.formatValue(indent+"    ", e.GetValue().GetJson())
	case e.GetValueDigest() != "":
		says = "  a value with the digest " + MakeSafe(e.GetValueDigest())
	}
	p.PrintLine("%s%s  %s%s%s", indent, p.Colorize(Dim, FormatTime(e.GetTime())), p.Colorize(Bold, kind), formatActor(" ", e.GetPrincipal()), says)
	for _, fact := range []struct{ name, text string }{
		{"for", e.GetPolicy()}, {"people", strings.Join(append(append([]string{}, e.GetUsers()...), e.GetGroups()...), ", ")}, {"priority", e.GetPriority()}, {"what", strings.Join(e.GetFields(), ", ")}, {"assignees", strings.Join(e.GetAssignees(), ", ")}, {"from", e.GetFromThreadId()},
	} {
		if fact.text != "" {
			p.PrintLine("%s    %s  %s", indent, p.Colorize(cyan, fact.name), fact.text)
		}
	}
	if e.GetUntil() != nil {
		p.PrintLine("%s    %s  %s", indent, p.Colorize(cyan, "until"), FormatTime(e.GetUntil()))
	}
	p.printBarred(indent+"    ", e.GetNote())
}
