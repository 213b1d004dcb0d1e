package argument

import (
	"slices"
	"strconv"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// Orders of a list of questions.
const (
	SortCreated = "created" // the oldest first
	SortDue     = "due"     // those that are due, the next one first
)

// OrderByDue is the order of a server for SortDue.
const OrderByDue = "due_time"

// Questions are the flags that select questions; a zero field selects all.
type Questions struct {
	Mine      bool
	Group     string
	Graph     string
	Due       string // a duration from now, or a time: due before
	Priority  string // as Priorities lists them
	ClaimedBy string
	Sort      string // SortCreated, SortDue
}

// Priorities lists the values of --priority.
func Priorities() []string { return []string{"low", "normal", "high", "urgent"} }

// Sorts lists the values of --sort.
func Sorts() []string { return []string{SortCreated, SortDue} }

// QuestionQuery is what a server is asked for.
type QuestionQuery struct {
	Conditions []string // of a filter, joined by AND
	OrderBy    string   // "" = the order of creation
	// Counted are those of the conditions whose questions a server counts.
	Counted []string
}

// ParseQuery makes the query of the flags. The error is an *exit.UsageError that names the
// flag.
func (o *Questions) ParseQuery(now time.Time) (QuestionQuery, error) {
	var q QuestionQuery
	for _, c := range []struct{ field, value string }{{"graph", o.Graph}, {"group", o.Group}, {"claimed_by", o.ClaimedBy}} {
		if c.value != "" {
			q.addCounted(c.field + " = " + quoteFilterValue(c.value))
		}
	}
	if o.Mine {
		q.addCounted(`mine = "true"`)
	}
	if name, version := SplitGraphName(o.Graph); version != "" {
		return q, exit.Usagef("--graph %q has a version", o.Graph).WithHint("questions of all versions are listed: --graph %s", name)
	}
	if err := o.addPriority(&q); err != nil {
		return q, err
	}
	if err := o.addDue(&q, now); err != nil {
		return q, err
	}
	err := o.addOrder(&q)
	return q, err
}

func (q *QuestionQuery) addCounted(condition string) {
	q.Conditions = append(q.Conditions, condition)
	q.Counted = append(q.Counted, condition)
}

// addPriority adds a condition on the priority. Those of the usual one are not counted.
func (o *Questions) addPriority(q *QuestionQuery) error {
	if o.Priority == "" {
		return nil
	}
	const prefix = "PRIORITY_"
	n, err := ParseEnum("--priority", o.Priority, graphdv1.Priority_value, prefix)
	if err != nil {
		return err
	}
	p := graphdv1.Priority(n)
	condition := "priority = " + quoteFilterValue(strings.TrimPrefix(p.String(), prefix))
	if p != graphdv1.Priority_PRIORITY_NORMAL {
		q.addCounted(condition)
		return nil
	}
	q.Conditions = append(q.Conditions, condition)
	return nil
}

func (o *Questions) addDue(q *QuestionQuery, now time.Time) error {
	if o.Due == "" {
		return nil
	}
	before, err := parseDue(o.Due, now)
	if err != nil {
		return err
	}
	q.Conditions = append(q.Conditions, "due < "+quoteFilterValue(before.UTC().Format(time.RFC3339Nano)))
	return nil
}

func (o *Questions) addOrder(q *QuestionQuery) error {
	switch o.Sort {
	case "":
	case SortDue:
		q.OrderBy = OrderByDue
	case SortCreated:
		if o.Due != "" {
			return exit.Usagef("--due lists by due time, and --sort created contradicts it").WithHint("leave --sort out")
		}
		q.OrderBy = "create_time"
	default:
		return exit.Usagef("--sort %q is not one of %s", o.Sort, strings.Join(Sorts(), ", "))
	}
	return nil
}

// The years of times that a server takes.
const (
	minDueYear = 1678
	maxDueYear = 2261
)

// parseDue reads a time, or a duration from now.
func parseDue(text string, now time.Time) (time.Time, error) {
	at, ok := parseMoment(text, now)
	if !ok || at.UTC().Year() < minDueYear || at.UTC().Year() > maxDueYear {
		return at, exit.Usagef("--due %q is no time", text).
			WithHint("want a duration like 2h or 3d, or a time like 2026-11-23, 2026-11-23 09:00 or 2026-11-23T09:00:00Z")
	}
	return at, nil
}

// parseMoment reads a duration after now, also in days, or a time. A time without a zone is
// one of the zone of now.
func parseMoment(text string, now time.Time) (time.Time, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), true
	}
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseInt(digits, 10, 17); err == nil {
			return now.AddDate(0, 0, int(days)), true
		}
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// quoteFilterValue quotes a value of a filter, in which a backslash may stand only before a
// quote or a backslash.
func quoteFilterValue(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// CheckScope refuses flags that a server does not take together with a thread, or with a
// watch. The error is an *exit.UsageError.
func (o *Questions) CheckScope(thread, filter string, isWatch bool) error {
	switch isAlone := filter == "" && thread == "" && !o.Mine && o.Group+o.Graph+o.ClaimedBy+o.Due == ""; {
	case isWatch && o.ClaimedBy != "":
		return exit.Usagef("--claimed-by can't be watched: no change tells that a claim has ended").WithHint("leave --claimed-by or --watch out")
	case isWatch && o.Sort != "":
		return exit.Usagef("--sort and --watch contradict each other: changes come as they happen").WithHint("leave --sort or --watch out")
	case thread != "" && o.Due != "":
		return exit.Usagef("--due lists questions of all threads").WithHint("leave --due or --thread out")
	case thread != "" && o.Sort == SortDue:
		return exit.Usagef("--sort due lists questions of all threads").WithHint("leave --sort or --thread out")
	case isAlone && strings.EqualFold(o.Priority, "normal"):
		return exit.Usagef("--priority normal is that of most questions, and no index finds them").
			WithHint("name one of --graph, --group, --mine, --claimed-by and --due as well")
	}
	return nil
}

// JoinConditions joins a filter and further conditions.
func JoinConditions(filter string, more ...string) string {
	all := slices.DeleteFunc(append([]string{filter}, more...), func(c string) bool { return strings.TrimSpace(c) == "" })
	return strings.Join(all, " AND ")
}

// ParseDays reads a duration, also in days, like 3d. Errors: *exit.UsageError.
func ParseDays(flag, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		days, wrong := strconv.ParseInt(digits, 10, 17)
		d, err = time.Duration(days)*24*time.Hour, wrong
	}
	if err != nil || d <= 0 {
		return 0, exit.Usagef("--%s %q is no duration", flag, text).WithHint("want more than 0, like 2h or 3d")
	}
	return d, nil
}
