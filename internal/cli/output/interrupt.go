package output

import (
	"fmt"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// PrintInterrupt prints all that a person needs to answer.
func (p *Printer) PrintInterrupt(q *graphdv1.Interrupt) {
	what := " asks"
	if q.GetReason() != "" {
		what += " (" + q.GetReason() + ")"
	}
	if word := priorityWord(q.GetPriority()); word != "" {
		what += ", " + word
	}
	if q.GetReason() == "breakpoint" {
		what = " is a breakpoint"
	}
	first, further := cutFirstLine(q.GetMessage())
	if first != "" || further != "" {
		what += ": " + first
	}
	p.printHeadline(nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()), what)
	p.printMessageText("    ", further)
	p.PrintLine("    %s  %s", p.Colorize(cyan, "id"), q.GetInterruptId())
	p.printChangedParts(q)
	if v := q.GetValue(); v != nil && (v.GetJson() != "null" || q.GetMessage() == "") {
		if call, ok := form.ParseToolCall(q); ok {
			p.printToolCall("    ", call)
		} else if list := jsontext.SplitObject(v.GetJson()); len(list) > 0 && !isRedacted(v.GetJson()) {
			p.PrintMembers("    ", list)
		} else {
			p.PrintLine("    %s  %s", p.Colorize(cyan, "value"), p.formatValue("      ", v.GetJson()))
		}
	}
	p.printPeople(q)
	if q.GetClaimedBy() != "" && q.GetClaimExpireTime().AsTime().After(time.Now()) {
		p.PrintLine("    %s  %s, until %s", p.Colorize(cyan, "taken by"), q.GetClaimedBy(), FormatTime(q.GetClaimExpireTime()))
	}
	if r := q.GetResponse(); r != nil {
		p.PrintLine("    %s  %s", p.Colorize(Green, "answered"), p.formatValue("      ", r.GetJson()))
		if list := q.GetAccepted(); len(list) > 0 {
			p.PrintLine("    %s  for what the node asked later, which differs: %s", p.Colorize(Yellow, "accepted"), strings.Join(list, ", "))
		}
		p.printResponder(q)
		p.printEffect(q)
		return
	}
	p.printResponder(q) // who dismissed it
	p.printEffect(q)
	if wanted := form.ParseSchema(q.GetResponseSchema().GetJson()).DescribeAnswer(); wanted != "" {
		p.PrintLine("    %s  %s", p.Colorize(Green, "answer"), wanted)
	}
	if due := q.GetDueTime(); due != nil && !due.AsTime().Equal(q.GetExpireTime().AsTime()) {
		p.PrintLine("    %s  %s", p.Colorize(cyan, "next step"), FormatTime(due)+describeStep(q))
	}
	if q.GetExpireTime() != nil {
		p.PrintLine("    %s  %s", p.Colorize(cyan, "expires"), FormatTime(q.GetExpireTime()))
	}
}

// priorityWord returns the word for a priority, "" for the usual one.
func priorityWord(p graphdv1.Priority) string {
	if p == graphdv1.Priority_PRIORITY_UNSPECIFIED || p == graphdv1.Priority_PRIORITY_NORMAL {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(p.String(), "PRIORITY_"))
}

// describeStep says what the next step of a question does.
func describeStep(q *graphdv1.Interrupt) string {
	next := int(q.GetNextStep())
	if next >= len(q.GetSteps()) {
		return ""
	}
	return ", " + describeAction(q.GetSteps()[next])
}

// describeAction says what a step does.
func describeAction(step *graphdv1.Step) string {
	what, people := "reminds", step.GetRemind()
	if step.GetEscalate() != nil {
		what, people = "goes to", step.GetEscalate()
	}
	names := append(append([]string{}, people.GetUsers()...), people.GetGroups()...)
	if len(names) == 0 {
		names = []string{"all who may answer"}
	}
	if word := priorityWord(people.GetPriority()); word != "" {
		names = append(names, word+" from then on")
	}
	return what + " " + strings.Join(names, ", ")
}

// printPeople prints who may answer, how many must, and how they have voted.
func (p *Printer) printPeople(q *graphdv1.Interrupt) {
	people := q.GetPeople()
	if people == nil {
		return
	}
	var rules []string
	if list := people.GetUsers(); len(list) > 0 {
		rules = append(rules, strings.Join(list, ", "))
	}
	if list := people.GetGroups(); len(list) > 0 {
		rules = append(rules, "members of "+strings.Join(list, ", "))
	}
	if n := people.GetApprovals(); n > 1 {
		rules = append(rules, fmt.Sprintf("%d must agree", n))
	}
	if people.GetNotContributor() {
		rules = append(rules, "nobody who has edited the state")
	}
	for _, d := range q.GetDelegations() {
		rules = append(rules, d.GetTo()+" in the place of "+d.GetFrom())
	}
	if people.GetExclusive() {
		rules = append(rules, "only who has taken it")
	}
	if people.GetNotRequester() && people.GetRequester() != "" {
		rules = append(rules, "not "+people.GetRequester())
	}
	if len(rules) > 0 {
		p.PrintLine("    %s  %s", p.Colorize(cyan, "for"), strings.Join(rules, "; "))
	}
	for _, v := range q.GetVotes() {
		says := SafeText("declines")
		if v.GetValue() != nil {
			says = p.formatValue("      ", v.GetValue().GetJson())
		}
		p.PrintLine("    %s  %s  %s  %s", p.Colorize(cyan, "vote"), v.GetPrincipal(), says, FormatTime(v.GetTime()))
	}
}

// PrintVoting prints who has voted on an open question, and how many of them agree; nothing
// without votes. A person who has just voted sees by it that the vote is stored.
func (p *Printer) PrintVoting(q *graphdv1.Interrupt) {
	if len(q.GetVotes()) == 0 {
		return
	}
	names := make([]string, len(q.GetVotes()))
	for i, v := range q.GetVotes() {
		names[i] = v.GetPrincipal()
	}
	differ := ""
	if _, values := countVotes(q); values > 1 {
		differ = ", for different answers"
	}
	p.PrintLine("%s: voted by %s%s; %s agree", nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()),
		strings.Join(names, ", "), differ, FormatVotes(q))
}

// IsPending reports whether an answer is not in effect yet.
func IsPending(q *graphdv1.Interrupt, now time.Time) bool {
	isAnswered := q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED
	return isAnswered && q.GetEffectiveTime() != nil && q.GetEffectiveTime().AsTime().After(now)
}

// DescribePending says who has answered a question, and when the answer takes effect.
func DescribePending(q *graphdv1.Interrupt) SafeText {
	return MakeSafe(InterruptStateName(q) + formatActor(" ", q.GetResponder()) + ", takes effect at " + FormatTime(q.GetEffectiveTime()))
}

// printEffect prints how long an answer can be taken back.
func (p *Printer) printEffect(q *graphdv1.Interrupt) {
	if at := q.GetEffectiveTime(); at != nil && at.AsTime().After(time.Now()) {
		p.PrintLine("    %s  %s; until then graphd inbox undo %s takes the answer back", p.Colorize(Yellow, "in effect"), FormatTime(at), q.GetThreadId())
	}
}

// printResponder prints who answered, when, and what the server knows of the way.
func (p *Printer) printResponder(q *graphdv1.Interrupt) {
	if text := describeResponder(q); text != "" {
		p.PrintLine("    %s  %s", p.Colorize(cyan, "by"), text)
	}
}

// describeResponder says who answered, when and how; "" when that is not known. Answers of
// earlier versions have the name alone.
func describeResponder(q *graphdv1.Interrupt) string {
	if q.GetResponder() == "" || q.GetResponseTime() == nil {
		return q.GetResponder()
	}
	return q.GetResponder() + "  " + FormatTime(q.GetResponseTime()) + "  " + q.GetResponderHow() + ", " + q.GetResponseMethod()
}

// printChangedParts prints the differences from the question that was answered, and
// that answer.
func (p *Printer) printChangedParts(q *graphdv1.Interrupt) {
	if q.GetReplaces() == "" {
		return
	}
	before := p.replacedInterrupts[q.GetReplaces()]
	head := p.Colorize(cyan, "asked again")
	if before == nil {
		p.PrintLine("    %s  differs from the question before: %s", head, strings.Join(q.GetDiffers(), ", "))
		return
	}
	if r := before.GetResponse(); before.GetDismissed() {
		p.PrintLine("    %s  differs from what was dismissed", head)
	} else if r != nil {
		p.PrintLine("    %s  differs from what was answered with %s", head, p.formatValue("      ", r.GetJson()))
	} else {
		p.PrintLine("    %s  differs from what was asked before, without an answer", head)
	}
	for _, part := range q.GetDiffers() {
		p.PrintLine("      %s  %s → %s", part, p.formatPart(before, part), p.formatPart(q, part))
	}
}

// formatPart formats a part of a question. part is a name as in drift_ignore.
func (p *Printer) formatPart(q *graphdv1.Interrupt, part string) SafeText {
	var found string
	switch part {
	case "message":
		found = jsontext.QuoteString(q.GetMessage())
	case "schema":
		found = q.GetResponseSchema().GetJson()
	case "value":
		found = q.GetValue().GetJson()
	default:
		found = jsontext.ValueAtPointer(q.GetValue().GetJson(), part)
	}
	if found == "" {
		return "nothing"
	}
	return p.formatValue("        ", found)
}

// RecordReplaced remembers those questions that others have replaced.
func (p *Printer) RecordReplaced(questions ...*graphdv1.Interrupt) {
	for _, q := range questions {
		if q.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED {
			continue
		}
		if p.replacedInterrupts == nil {
			p.replacedInterrupts = make(map[string]*graphdv1.Interrupt)
		}
		p.replacedInterrupts[q.GetInterruptId()] = q
	}
}

// PrintResolved prints how a question was resolved, and by whom. by is "" when that is not
// known.
func (p *Printer) PrintResolved(q *graphdv1.Interrupt, by string) {
	text := nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()) + ": question " + InterruptStateName(q) + formatActor(" ", by)
	accepted := q.GetAccepted()
	if len(accepted) > 0 {
		text = nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()) + ": the answer was used (accepted)"
	} else if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED && q.GetResponse() != nil {
		text += ", its answer is not used"
	}
	line := p.Colorize(Dim, text)
	if q.GetResponse() != nil {
		line += "  " + p.formatValue("  ", q.GetResponse().GetJson())
	}
	p.PrintLine("%s", line)
	p.printEffect(q)
	if len(accepted) > 0 {
		p.PrintLine("  %s", p.Colorize(Yellow, "for what the node asked later, which differs: "+strings.Join(accepted, ", ")))
	}
}

// cutFirstLine splits a text after its first line.
func cutFirstLine(s string) (first, further string) {
	first, further, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(first, "\r"), further
}

// printBarred prints foreign lines, with a bar before each that sets it apart from
// graphd's own lines.
func (p *Printer) printBarred(indent, lines string) {
	for line := range strings.Lines(lines) {
		p.PrintLine("%s| %s", indent, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
}
