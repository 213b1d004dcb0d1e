package cli

import (
	"strconv"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// printInterrupt shows what a person has to know to answer.
func (p *printer) printInterrupt(q *graphdv1.Interrupt) {
	what := " asks"
	if q.GetReason() != "" {
		what += " (" + q.GetReason() + ")"
	}
	if q.GetReason() == "breakpoint" {
		what = " is a breakpoint"
	}
	first, further := cutFirstLine(q.GetMessage())
	if first != "" || further != "" {
		what += ": " + first
	}
	p.printLine("  %s%s", p.colorize(bold, nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode())), what)
	p.printBarred("    ", further)
	p.printLine("    %s  %s", p.colorize(cyan, "id"), q.GetInterruptId())
	p.printChangedParts(q)
	if v := q.GetValue(); v != nil && (v.GetJson() != "null" || q.GetMessage() == "") {
		if list := splitObject(v.GetJson()); len(list) > 0 {
			p.printMembers("    ", list)
		} else {
			p.printLine("    %s  %s", p.colorize(cyan, "value"), p.formatValue("      ", v.GetJson()))
		}
	}
	if r := q.GetResponse(); r != nil {
		p.printLine("    %s  %s", p.colorize(green, "answered"), p.formatValue("      ", r.GetJson()))
		if list := q.GetAccepted(); len(list) > 0 {
			p.printLine("    %s  for what the node asked later, which differs: %s", p.colorize(yellow, "accepted"), strings.Join(list, ", "))
		}
		return
	}
	if form := parseForm(q.GetResponseSchema().GetJson()).describeAnswer(); form != "" {
		p.printLine("    %s  %s", p.colorize(green, "answer"), form)
	}
	if q.GetExpireTime() != nil {
		p.printLine("    %s  %s", p.colorize(cyan, "expires"), formatTime(q.GetExpireTime()))
	}
}

// printChangedParts says what differs from the question that was answered, and what
// the answer was.
func (p *printer) printChangedParts(q *graphdv1.Interrupt) {
	if q.GetReplaces() == "" {
		return
	}
	before := p.replacedInterrupts[q.GetReplaces()]
	head := p.colorize(cyan, "asked again")
	if before == nil {
		p.printLine("    %s  differs from the question before: %s", head, strings.Join(q.GetDiffers(), ", "))
		return
	}
	if r := before.GetResponse(); before.GetDismissed() {
		p.printLine("    %s  differs from what was dismissed", head)
	} else if r != nil {
		p.printLine("    %s  differs from what was answered with %s", head, p.formatValue("      ", r.GetJson()))
	} else {
		p.printLine("    %s  differs from what was asked before, without an answer", head)
	}
	for _, part := range q.GetDiffers() {
		p.printLine("      %s  %s → %s", part, p.formatPart(before, part), p.formatPart(q, part))
	}
}

// formatPart is a part of a question, named as drift_ignore names it.
func (p *printer) formatPart(q *graphdv1.Interrupt, part string) safeText {
	var found string
	switch part {
	case "message":
		found = jsonString(q.GetMessage())
	case "schema":
		found = q.GetResponseSchema().GetJson()
	case "value":
		found = q.GetValue().GetJson()
	default:
		found = valueAtPointer(q.GetValue().GetJson(), part)
	}
	if found == "" {
		return "nothing"
	}
	return p.formatValue("        ", found)
}

// valueAtPointer is what a JSON pointer leads to, "" for nothing.
func valueAtPointer(value, pointer string) string {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		found := ""
		for _, m := range splitObject(value) {
			if m.key == token {
				found = m.value
			}
		}
		if list := splitArray(value); list != nil {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
				found = list[i]
			}
		}
		value = found
	}
	return value
}

// recordReplaced keeps questions in whose place others may be asked.
func (p *printer) recordReplaced(questions ...*graphdv1.Interrupt) {
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

// printResolved prints how a question was resolved.
func (p *printer) printResolved(q *graphdv1.Interrupt) {
	text := nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()) + ": question " + interruptStateName(q)
	accepted := q.GetAccepted()
	if len(accepted) > 0 {
		text = nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode()) + ": the answer was used (accepted)"
	} else if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED && q.GetResponse() != nil {
		text += ", its answer is not used"
	}
	line := p.colorize(dim, text)
	if q.GetResponse() != nil {
		line += "  " + p.formatValue("  ", q.GetResponse().GetJson())
	}
	p.printLine("%s", line)
	if len(accepted) > 0 {
		p.printLine("  %s", p.colorize(yellow, "for what the node asked later, which differs: "+strings.Join(accepted, ", ")))
	}
}

// cutFirstLine divides a text that may have several lines.
func cutFirstLine(s string) (first, further string) {
	first, further, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(first, "\r"), further
}

// printBarred shows lines that come from elsewhere, with a bar before each, so that
// none looks like one of ours.
func (p *printer) printBarred(indent, lines string) {
	for line := range strings.Lines(lines) {
		p.printLine("%s| %s", indent, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
}
