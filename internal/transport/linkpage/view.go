package linkpage

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/visible"
)

// page is what a page shows. All texts in it come from graphs and people: the template
// escapes them.
type page struct {
	Title  string
	Graph  string
	Person string // who answers
	Notice string // what has just happened
	IsGood bool   // the notice is no problem

	Facts  []fact
	People []string // for whom the question is, and what happens while it is open
	Form   *input
	Note   string // what was typed
	Seen   string // digest of what is shown

	Text    []string // below the title
	Until   string   // until when an answer can be taken back, "" = it can't be
	UntilAt string   // the same for programs
	Style   style
}

// fact is a part of the value of a question.
type fact struct {
	Name string
	Text string
	Code bool // the text is JSON
}

// redacted stands in the place of a secret part.
const redacted = `{"__redacted__":true}`

// Bounds of what a page shows of a question.
const (
	maxFactBytes = 32 << 10 // of one fact
	maxFacts     = 300
)

// showQuestion makes the page of an open question.
func showQuestion(q *graphdv1.Interrupt, person, preset string) *page {
	title, body := splitMessage(visible.Lines(strings.TrimSpace(q.GetMessage())))
	p := &page{
		Title: title, Text: []string{body}, Graph: visible.Line(q.GetGraph()), Person: visible.Line(person),
		Facts: listFacts("value", q.GetValue().GetJson()), People: describePeople(q), Seen: q.GetSeen(),
		Form: buildForm(q.GetResponseSchema().GetJson(), preset),
	}
	p.Form.markSecret("", q.GetSecret())
	if p.Title == "" {
		p.Title = "A question"
	}
	if vote := findVote(q, person); vote != nil {
		p.Notice = "Your answer of " + formatTime(vote.GetTime().AsTime()) + " counts. Another one takes its place."
		p.IsGood = true
		p.Until = "the question is decided"
	}
	return p
}

// maxTitle is how many characters a title has; a longer first line stands below a part of it.
const maxTitle = 160

// splitMessage returns the first line of a message as its title, and the rest.
func splitMessage(message string) (title, body string) {
	title, body, _ = strings.Cut(message, "\n")
	if letters := []rune(title); len(letters) > maxTitle {
		return string(letters[:maxTitle]) + "…", message
	}
	return strings.TrimSpace(title), strings.TrimSpace(body)
}

// findVote returns the vote of a person, nil = there is none.
func findVote(q *graphdv1.Interrupt, person string) *graphdv1.Vote {
	for _, v := range q.GetVotes() {
		if v.GetPrincipal() == person {
			return v
		}
	}
	return nil
}

// listFacts takes a value apart. One that has no parts gets the name.
func listFacts(name, value string) []fact {
	if value == "" || value == "null" {
		return nil
	}
	members := jsontext.SplitObject(value)
	if members == nil {
		return []fact{newFact(name, value)}
	}
	facts := make([]fact, 0, min(len(members), maxFacts+1))
	for i, m := range members {
		if i == maxFacts {
			return append(facts, fact{Name: "…", Text: fmt.Sprintf("and %d more; graphd inbox show has all of them", len(members)-i)})
		}
		facts = append(facts, newFact(visible.Line(m.Key), m.Value))
	}
	return facts
}

func newFact(name, value string) fact {
	f := fact{Name: name}
	if jsontext.CompactText(value) == redacted {
		f.Text = "(secret)"
		return f
	}
	if text, ok := jsontext.UnquoteString(value); ok {
		f.Text = visible.Lines(clipText(text))
		return f
	}
	f.Code = strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")
	if f.Code {
		value = string(jsontext.IndentText([]byte(value)))
	}
	f.Text = visible.JSON(clipText(value))
	return f
}

// clipText shortens a text that is too long to show.
func clipText(text string) string {
	if len(text) <= maxFactBytes {
		return text
	}
	end := maxFactBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + fmt.Sprintf("\n… and %d bytes more; graphd inbox show has all of it", len(text)-end)
}

// describePeople says for whom a question is, and what happens while it is open.
func describePeople(q *graphdv1.Interrupt) []string {
	var lines []string
	people := q.GetPeople()
	names := slices.Clone(people.GetUsers())
	for _, group := range people.GetGroups() {
		names = append(names, "members of "+group)
	}
	if len(names) == 0 {
		names = q.GetAssignees()
	}
	if len(names) > 0 {
		lines = append(lines, "For "+visible.Line(strings.Join(names, ", ")))
	}
	if needed := people.GetApprovals(); needed > 1 {
		lines = append(lines, fmt.Sprintf("%d people must agree; %d answered so far", needed, len(q.GetVotes())))
	}
	if ends := q.GetExpireTime(); ends.IsValid() {
		lines = append(lines, "Until "+formatTime(ends.AsTime()))
	}
	return lines
}

// formatTime shows a time as people read it. The server does not know their time zone.
func formatTime(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// formatMoment is formatTime with seconds.
func formatMoment(t time.Time) string { return t.UTC().Format("15:04:05 UTC, 2 January 2006") }
