package output

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// nothing is what a cell shows that has nothing to say.
const nothing = "-"

// Lengths of what is cut on a terminal.
const (
	shortIDLength = 8  // the beginning of an id names a question
	mostWhoWidth  = 28 // the votes and claims tell the rest
)

func plainCell(text string) tableCell { return tableCell{text: MakeSafe(OrDash(text))} }

func priorityCell(q *graphdv1.Interrupt) tableCell {
	switch p := q.GetPriority(); p {
	case graphdv1.Priority_PRIORITY_URGENT:
		return tableCell{"urgent", Red}
	case graphdv1.Priority_PRIORITY_HIGH:
		return tableCell{"high", Yellow}
	case graphdv1.Priority_PRIORITY_UNSPECIFIED, graphdv1.Priority_PRIORITY_NORMAL:
		return tableCell{text: "normal"}
	default:
		return plainCell(priorityWord(p))
	}
}

func titleCell(q *graphdv1.Interrupt) tableCell {
	return tableCell{text: MakeSafe(TitleOf(q)), color: Bold}
}

// TitleOf returns the first line of a message, without the marks of a heading. A question
// without a message has the name of its node.
func TitleOf(q *graphdv1.Interrupt) string {
	for line := range strings.Lines(q.GetMessage()) {
		line = strings.TrimSpace(line)
		if heading := strings.TrimLeft(line, "#"); strings.HasPrefix(heading, " ") {
			line = strings.TrimSpace(heading)
		}
		if line != "" {
			return line
		}
	}
	return describeAsking(q)
}

// describeAsking says which node asks, and what kind of question it is.
func describeAsking(q *graphdv1.Interrupt) string {
	node := nodePath(q.GetCheckpoint().GetNamespace(), q.GetNode())
	switch q.GetReason() {
	case "":
		return node + " asks"
	case "breakpoint":
		return node + " is a breakpoint"
	default:
		return node + " asks (" + q.GetReason() + ")"
	}
}

// whoCell shows who has taken a question, and then who should answer.
func whoCell(q *graphdv1.Interrupt, now time.Time, isWhole bool) tableCell {
	var words []string
	if holder := holderOf(q, now); holder != "" {
		words = append(words, "taken by "+holder)
	}
	if list := listUsers(q); len(list) > 0 {
		words = append(words, strings.Join(list, ", "))
	}
	if list := q.GetPeople().GetGroups(); len(list) > 0 {
		words = append(words, "group "+strings.Join(list, ", "))
	}
	cell := plainCell(strings.Join(words, "; "))
	if !isWhole {
		cell.text = cutColumns(cell.text, mostWhoWidth)
	}
	return cell
}

// holderOf returns who has claimed a question by now, "" for none.
func holderOf(q *graphdv1.Interrupt, now time.Time) string {
	if q.GetClaimExpireTime() == nil || !q.GetClaimExpireTime().AsTime().After(now) {
		return ""
	}
	return q.GetClaimedBy()
}

// listUsers returns the users who should answer, each once.
func listUsers(q *graphdv1.Interrupt) []string {
	var users []string
	isKnown := make(map[string]bool)
	for _, name := range append(append([]string{}, q.GetAssignees()...), q.GetPeople().GetUsers()...) {
		if !isKnown[name] {
			users = append(users, name)
		}
		isKnown[name] = true
	}
	return users
}

// dueCell shows when the next step or the end of a question comes.
func dueCell(q *graphdv1.Interrupt, now time.Time) tableCell {
	due := q.GetDueTime()
	if due == nil {
		return plainCell("")
	}
	cell := plainCell(FormatDistance(due.AsTime().Sub(now)))
	if !due.AsTime().After(now) {
		cell.color = Red
	}
	return cell
}

func idCell(q *graphdv1.Interrupt, isWhole bool) tableCell {
	id := []rune(q.GetInterruptId())
	if !isWhole {
		id = id[:min(len(id), shortIDLength)]
	}
	return plainCell(string(id))
}

// FormatDistance formats how far away a time is: `in 2 h`, `3 m ago`.
func FormatDistance(d time.Duration) string {
	if d <= 0 {
		return formatLength(-d) + " ago"
	}
	return "in " + formatLength(d)
}

// formatMoment formats a time, and how far away it is; "" for none.
func formatMoment(t *timestamppb.Timestamp, now time.Time) SafeText {
	if t == nil {
		return ""
	}
	return MakeSafe(FormatTime(t) + " (" + FormatDistance(t.AsTime().Sub(now)) + ")")
}

// formatLength formats a duration in the unit that suits it.
func formatLength(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d.Round(time.Second) < time.Minute:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d.Round(time.Minute) < time.Hour:
		return fmt.Sprintf("%d m", d.Round(time.Minute)/time.Minute)
	case d.Round(time.Hour) < 2*day:
		return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
	default:
		return fmt.Sprintf("%d d", d.Round(day)/day)
	}
}

// FormatVotes formats the votes for the value that most agree on, of those that decide:
// `1 of 2`; "" when the first answer decides.
func FormatVotes(q *graphdv1.Interrupt) string {
	needed := int(max(q.GetPeople().GetApprovals(), 1))
	if needed == 1 && len(q.GetVotes()) == 0 {
		return ""
	}
	most, _ := countVotes(q)
	if len(q.GetSecret()) > 0 && q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		most = min(most, needed-1) // votes that look the same differ in a secret part, or it would be decided
	}
	return fmt.Sprintf("%d of %d", most, needed)
}

// countVotes counts the votes that agree: those for the value that most of them are for, and
// the values.
func countVotes(q *graphdv1.Interrupt) (most, values int) {
	counts := make(map[string]int)
	for _, v := range q.GetVotes() {
		if v.GetAgrees() && v.GetValue() != nil {
			value := sortKeys(v.GetValue().GetJson())
			counts[value]++
			most = max(most, counts[value])
		}
	}
	return most, len(counts)
}

// sortKeys returns a JSON value in the form in which equal values are equal texts. Numbers
// stay as they are written.
func sortKeys(text string) string {
	var value any
	read := json.NewDecoder(strings.NewReader(text))
	read.UseNumber()
	if read.Decode(&value) != nil {
		return text
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(sorted)
}
