package output

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// PrintQuestion prints all of a question, and what happened to it.
func (p *Printer) PrintQuestion(q *graphdv1.Interrupt, entries []*graphdv1.TrailEntry, now time.Time) {
	p.PrintLine("%s  %s", p.Colorize(Yellow, q.GetThreadId()), p.Colorize(Bold, describeAsking(q)))
	p.printMessageText("  ", q.GetMessage())
	p.printChangedParts(q)
	p.printFacts("  ", p.listFacts(q, now))
	p.printQuestionValue(q)
	p.printAnswerFields(q)
	p.printVotes(q)
	p.printSteps(q, now)
	p.printHeading("trail")
	for _, e := range entries {
		p.printTrailEntry("    ", e)
	}
}

func (p *Printer) printHeading(name string) { p.PrintLine("  %s", p.Colorize(cyan, name)) }

// fact is a named text of a question. An empty text is not printed.
type fact struct {
	name string
	text SafeText
}

// printFacts prints facts with their texts below each other.
func (p *Printer) printFacts(indent string, facts []fact) {
	widest := 0
	for _, f := range facts {
		if f.text != "" {
			widest = max(widest, len(f.name))
		}
	}
	for _, f := range facts {
		if f.text != "" {
			p.PrintLine("%s%s%s  %s", indent, p.Colorize(cyan, f.name), strings.Repeat(" ", widest-len(f.name)), f.text)
		}
	}
}

// listFacts lists what is known of a question besides its text and its answer.
func (p *Printer) listFacts(q *graphdv1.Interrupt, now time.Time) []fact {
	facts := []fact{
		{"id", MakeSafe(q.GetInterruptId())},
		{"graph", MakeSafe(q.GetGraph())},
		{"node", MakeSafe(nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()))},
		{"run", MakeSafe(q.GetRunId())},
		{"state", MakeSafe(InterruptStateName(q))},
		{"priority", MakeSafe(cmp.Or(priorityWord(q.GetPriority()), "normal"))},
		{"asked", formatMoment(q.GetCreateTime(), now)},
		{"assigned to", MakeSafe(strings.Join(q.GetAssignees(), ", "))},
		{"for", MakeSafe(DescribeAudience(q.GetPeople()))},
		{"policy", MakeSafe(describePolicy(q))},
		{"secret", describeSecret(q)},
		{"taken by", ""},
		{"due", formatMoment(q.GetDueTime(), now)},
		{"answered", ""},
		{"by", MakeSafe(describeResponder(q))},
		{"in effect", ""},
		{"note", MakeSafe(q.GetNote())},
	}
	for i := range facts {
		switch f := &facts[i]; f.name {
		case "taken by":
			if holder := holderOf(q, now); holder != "" {
				f.text = MakeSafe(holder + ", until " + FormatTime(q.GetClaimExpireTime()))
			}
		case "in effect":
			if IsPending(q, now) {
				f.text = formatMoment(q.GetEffectiveTime(), now) + "; until then " + MakeSafe("graphd inbox undo "+q.GetThreadId()) + " takes the answer back"
			}
		case "answered":
			if r := q.GetResponse(); r != nil {
				f.text = p.formatValue("    ", r.GetJson())
			}
		}
	}
	return facts
}

// DescribeAudience says who may answer, "" for everybody.
func DescribeAudience(people *graphdv1.People) string {
	words := append([]string{}, people.GetUsers()...)
	if list := people.GetGroups(); len(list) > 0 {
		words = append(words, "members of "+strings.Join(list, ", "))
	}
	return strings.Join(words, "; ")
}

// describeSecret names the secret parts, and who may see them.
func describeSecret(q *graphdv1.Interrupt) SafeText {
	if len(q.GetSecret()) == 0 {
		return ""
	}
	parts := make([]string, len(q.GetSecret()))
	for i, pointer := range q.GetSecret() {
		parts[i] = cmp.Or(pointer, "the whole")
	}
	reveal := q.GetPeople().GetReveal()
	who := DescribeAudience(&graphdv1.People{Users: reveal.GetUsers(), Groups: reveal.GetGroups()})
	return MakeSafe(strings.Join(parts, ", ") + "; for " + cmp.Or(who, "those who may answer"))
}

// describePolicy says how many must agree, when they do, and who must not answer.
func describePolicy(q *graphdv1.Interrupt) string {
	people := q.GetPeople()
	if people == nil {
		return ""
	}
	needed := max(people.GetApprovals(), 1)
	words := []string{fmt.Sprintf("%s approval", cmp.Or(FormatVotes(q), FormatInteger(needed)))}
	if needed > 1 {
		words[0] += "s"
	}
	if n := people.GetVetoes(); n > 1 {
		words = append(words, fmt.Sprintf("%d refusals decide", n))
	}
	if people.GetAgree() != "" {
		words = append(words, "agrees when "+people.GetAgree())
	}
	if people.GetNotRequester() && people.GetRequester() != "" {
		words = append(words, "not "+people.GetRequester()+", who has asked for it")
	}
	if people.GetNotContributor() {
		words = append(words, "nobody who has edited the state")
	}
	if people.GetExclusive() {
		words = append(words, "only who has taken it")
	}
	return strings.Join(words, "; ")
}

func (p *Printer) printQuestionValue(q *graphdv1.Interrupt) {
	v := q.GetValue()
	if v == nil || v.GetJson() == "null" {
		return
	}
	if call, ok := form.ParseToolCall(q); ok {
		p.printToolCall("  ", call)
		return
	}
	if list := jsontext.SplitObject(v.GetJson()); len(list) > 0 && !isRedacted(v.GetJson()) {
		p.printHeading("value")
		p.PrintMembers("    ", list)
		return
	}
	p.PrintLine("  %s  %s", p.Colorize(cyan, "value"), p.formatValue("    ", v.GetJson()))
}

// printAnswerFields prints what an open question takes for an answer, a line for each field.
func (p *Printer) printAnswerFields(q *graphdv1.Interrupt) {
	if q.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_OPEN || q.GetReason() == "breakpoint" {
		return
	}
	wanted := form.ParseSchema(q.GetResponseSchema().GetJson())
	fields := wanted.Fields()
	if len(fields) == 0 {
		p.PrintLine("  %s  %s", p.Colorize(Green, "answer"), cmp.Or(wanted.DescribeAnswer(), "any value"))
		return
	}
	p.PrintLine("  %s", p.Colorize(Green, "answer"))
	rows := make([][]string, len(fields))
	for i, f := range fields {
		need := "optional"
		if f.IsRequired {
			need = "required"
		}
		if f.Default != "" {
			need += ", default " + f.Default
		}
		rows[i] = []string{f.Name, cmp.Or(f.DescribeAnswer(), "any value"), need, f.Description}
	}
	p.printColumns("    ", rows)
}

func (p *Printer) printVotes(q *graphdv1.Interrupt) {
	if len(q.GetVotes()) == 0 {
		return
	}
	p.printHeading("votes")
	for _, v := range q.GetVotes() {
		says := SafeText("declines")
		if v.GetValue() != nil {
			says = p.formatValue("      ", v.GetValue().GetJson())
		}
		if v.GetValue() != nil && !v.GetAgrees() {
			says += "  does not agree"
		}
		p.PrintLine("    %s  %s  %s", p.Colorize(Dim, FormatTime(v.GetTime())), v.GetPrincipal(), says)
		p.printBarred("      ", v.GetNote())
	}
}

// printSteps prints what will happen to an open question that is not decided.
func (p *Printer) printSteps(q *graphdv1.Interrupt, now time.Time) {
	if q.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		return
	}
	var facts []fact
	for i := int(q.GetNextStep()); i < len(q.GetSteps()); i++ {
		step := q.GetSteps()[i]
		at := q.GetCreateTime().AsTime().Add(step.GetAfter().AsDuration())
		facts = append(facts, fact{FormatDistance(at.Sub(now)), MakeSafe(describeAction(step))})
	}
	if end := q.GetExpireTime(); end != nil {
		text := SafeText("expires, and ") + p.describeExpiry(q)
		facts = append(facts, fact{FormatDistance(end.AsTime().Sub(now)), text})
	}
	if len(facts) > 0 {
		p.printHeading("while nobody decides")
		p.printFacts("    ", facts)
	}
}

func (p *Printer) describeExpiry(q *graphdv1.Interrupt) SafeText {
	switch q.GetExpiryAction() {
	case graphdv1.ExpiryAction_EXPIRY_ACTION_FAIL_NODE:
		return "the node fails"
	case graphdv1.ExpiryAction_EXPIRY_ACTION_RESUME_DEFAULT:
		return "the answer is " + p.formatValue("      ", q.GetDefaultResponse().GetJson())
	case graphdv1.ExpiryAction_EXPIRY_ACTION_CANCEL_RUN:
		return "the run is cancelled"
	default:
		return "the question stays open"
	}
}

// PrintRevealed prints a question with its secret parts.
func (p *Printer) PrintRevealed(r *graphdv1.RevealInterruptResponse) {
	for _, part := range []struct {
		name  string
		value *graphdv1.Payload
	}{{"value", r.GetValue()}, {"default answer", r.GetDefaultResponse()}, {"answered", r.GetResponse()}} {
		if part.value == nil {
			continue
		}
		if list := jsontext.SplitObject(part.value.GetJson()); len(list) > 0 && !isRedacted(part.value.GetJson()) {
			p.PrintLine("%s", p.Colorize(cyan, part.name))
			p.PrintMembers("  ", list)
			continue
		}
		p.PrintLine("%s  %s", p.Colorize(cyan, part.name), p.formatValue("  ", part.value.GetJson()))
	}
	p.PrintLine("%s", p.Colorize(Dim, "entry "+FormatInteger(r.GetEntry().GetNumber())+" of the trail says that you have seen it"))
}
