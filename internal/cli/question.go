package cli

import (
	"context"
	"strconv"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// question shows what a person has to know to answer.
func (p *page) question(q *graphdv1.Interrupt) {
	what := " asks"
	if q.GetReason() != "" {
		what += " (" + q.GetReason() + ")"
	}
	if q.GetReason() == "breakpoint" {
		what = " is a breakpoint"
	}
	first, further := firstLine(q.GetMessage())
	if first != "" || further != "" {
		what += ": " + first
	}
	p.line("  %s%s", p.paint(bold, place(q.GetCheckpoint().GetNamespace(), q.GetNode())), what)
	p.printBarred("    ", further)
	p.line("    %s  %s", p.paint(cyan, "id"), q.GetInterruptId())
	p.askedAgain(q)
	if v := q.GetValue(); v != nil && (v.GetJson() != "null" || q.GetMessage() == "") {
		if list := members(v.GetJson()); len(list) > 0 {
			p.pairs("    ", list)
		} else {
			p.line("    %s  %s", p.paint(cyan, "value"), p.value("      ", v.GetJson()))
		}
	}
	if r := q.GetResponse(); r != nil {
		p.line("    %s  %s", p.paint(green, "answered"), p.value("      ", r.GetJson()))
		if list := q.GetAccepted(); len(list) > 0 {
			p.line("    %s  for what the node asked later, which differs: %s", p.paint(yellow, "accepted"), strings.Join(list, ", "))
		}
		return
	}
	if form := formOf(q.GetResponseSchema().GetJson()).describe(); form != "" {
		p.line("    %s  %s", p.paint(green, "answer"), form)
	}
	if q.GetExpireTime() != nil {
		p.line("    %s  %s", p.paint(cyan, "expires"), clock(q.GetExpireTime()))
	}
}

// askedAgain says what differs from the question that was answered, and what
// the answer was.
func (p *page) askedAgain(q *graphdv1.Interrupt) {
	if q.GetReplaces() == "" {
		return
	}
	before := p.replaced[q.GetReplaces()]
	head := p.paint(cyan, "asked again")
	if before == nil {
		p.line("    %s  differs from the question before: %s", head, strings.Join(q.GetDiffers(), ", "))
		return
	}
	if r := before.GetResponse(); before.GetDismissed() {
		p.line("    %s  differs from what was dismissed", head)
	} else if r != nil {
		p.line("    %s  differs from what was answered with %s", head, p.value("      ", r.GetJson()))
	} else {
		p.line("    %s  differs from what was asked before, without an answer", head)
	}
	for _, part := range q.GetDiffers() {
		p.line("      %s  %s → %s", part, p.part(before, part), p.part(q, part))
	}
}

// part is a part of a question, named as drift_ignore names it.
func (p *page) part(q *graphdv1.Interrupt, part string) text {
	var found string
	switch part {
	case "message":
		found = jsonString(q.GetMessage())
	case "schema":
		found = q.GetResponseSchema().GetJson()
	case "value":
		found = q.GetValue().GetJson()
	default:
		found = valueAt(q.GetValue().GetJson(), part)
	}
	if found == "" {
		return "nothing"
	}
	return p.value("        ", found)
}

// valueAt is what a JSON pointer leads to, "" for nothing.
func valueAt(value, pointer string) string {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		found := ""
		for _, m := range members(value) {
			if m.key == token {
				found = m.value
			}
		}
		if list := elements(value); list != nil {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
				found = list[i]
			}
		}
		value = found
	}
	return value
}

// rememberQuestion keeps a question in whose place another one may be asked.
func (p *page) rememberQuestion(q *graphdv1.Interrupt) {
	if q.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED {
		return
	}
	if p.replaced == nil {
		p.replaced = make(map[string]*graphdv1.Interrupt)
	}
	p.replaced[q.GetInterruptId()] = q
}

// lookBack reads the questions in whose place others were asked. What can't be
// read is not shown.
func (s *Session) lookBack(ctx context.Context, p *page, questions []*graphdv1.Interrupt) {
	for _, q := range questions {
		if q.GetReplaces() == "" || p.replaced[q.GetReplaces()] != nil {
			continue
		}
		before, err := s.Interrupts.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{
			ThreadId: q.GetThreadId(), InterruptId: q.GetReplaces(),
		})
		if err == nil {
			p.rememberQuestion(before)
		}
	}
}

// resolved says what became of a question.
func (p *page) resolved(q *graphdv1.Interrupt) {
	text := place(q.GetCheckpoint().GetNamespace(), q.GetNode()) + ": question " + questionWord(q)
	accepted := q.GetAccepted()
	if len(accepted) > 0 {
		text = place(q.GetCheckpoint().GetNamespace(), q.GetNode()) + ": the answer was used (accepted)"
	} else if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED && q.GetResponse() != nil {
		text += ", its answer is not used"
	}
	line := p.paint(dim, text)
	if q.GetResponse() != nil {
		line += "  " + p.value("  ", q.GetResponse().GetJson())
	}
	p.line("%s", line)
	if len(accepted) > 0 {
		p.line("  %s", p.paint(yellow, "for what the node asked later, which differs: "+strings.Join(accepted, ", ")))
	}
}

// firstLine divides a text that may have several lines.
func firstLine(s string) (first, further string) {
	first, further, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(first, "\r"), further
}

// printBarred shows lines that come from elsewhere, with a bar before each, so that
// none looks like one of ours.
func (p *page) printBarred(indent, lines string) {
	for line := range strings.Lines(lines) {
		p.line("%s| %s", indent, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
}
