package main

import (
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
)

// Text is the result for people, as a file of its own.
func (r *Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The inbox of graphd %s\n\n%s\n\n%s", r.About.Commit, r.About, r.tables())
	for _, note := range r.Notes {
		b.WriteString("\n- " + note)
	}
	b.WriteString("\n## All figures\n\nThe rate of operations is that of a round, with what it does between two timed calls.\n\n")
	rows := [][]string{{"what", "store", "who", "per second", "p50 ms", "lowest – highest", "p99 ms", "lowest – highest"}}
	for _, f := range r.Figures {
		rows = append(rows, []string{
			f.Workload, f.Store, f.Who, digits(f.Rate), digits(f.P50), extremes(f.P50), digits(f.P99), extremes(f.P99),
		})
	}
	b.WriteString(report.Grid(rows))
	return b.String()
}

// tables are those with a row.
func (r *Result) tables() string {
	var all []string
	if len(r.InPage) > 0 {
		all = append(all, r.inPageTable())
	}
	return strings.Join(append(all, r.storeTables()...), "\n")
}

// storeTables are all but that of the page.
func (r *Result) storeTables() (all []string) {
	if len(r.Operations) > 0 {
		all = append(all, operationTable("operation", r.Operations))
	}
	if len(r.Beside) > 0 {
		all = append(all, r.besideTable())
	}
	if len(r.Sent) > 0 {
		all = append(all, r.sentTable())
	}
	if len(r.Memory) > 0 {
		all = append(all, r.memoryTable())
	}
	return all
}

func (r *Result) inPageTable() string { return operationTable("in the page", r.InPage) }

// marked tells whether goals were reached: – without a goal or a figure.
func marked(found measure.Spread, hasGoal, isReached bool) string {
	switch {
	case found.Rounds == 0 || !hasGoal:
		return "–"
	case isReached:
		return "✓"
	default:
		return "✗"
	}
}

func operationTable(what string, operations []OperationRow) string {
	rows := [][]string{{"", what, "store", "open", "p50 ms", "p99 ms", "goal", "limit, p50 ms", "to the limit", "before the index"}}
	for _, o := range operations {
		goal := ""
		if o.Goal50 > 0 {
			goal = "≤ " + report.Digits(o.Goal50) + ", ≤ " + report.Digits(o.Goal99)
		}
		isReached := o.P50.Median <= o.Goal50 && o.P99.Median <= o.Goal99
		if o.GoalOver > 0 {
			goal = "≤ limit + " + report.Digits(o.GoalOver)
			isReached = o.P50.Median <= o.Limit.Median+o.GoalOver
		}
		if o.GoalRatio > 0 {
			goal = "≤ limit × " + report.Digits(o.GoalRatio)
			isReached = o.ToLimit.Median <= o.GoalRatio
		}
		rows = append(rows, []string{
			marked(o.P50, goal != "", isReached), o.Name, storeName(o.Store), thousands(o.Open), digits(o.P50), digits(o.P99), goal,
			digits(o.Limit), digits(o.ToLimit), o.Before,
		})
	}
	return report.Grid(rows)
}

func (r *Result) besideTable() string {
	rows := [][]string{{
		"", "question and answer, " + fmt.Sprint(pairClients) + " clients, beside", "store", "open", "per second", "to none", "lowest – highest", "goal",
		"changes seen per second", "before the index",
	}}
	for _, w := range r.Beside {
		goal := ""
		if w.Goal > 0 {
			goal = "≥ " + report.Digits(w.Goal)
		}
		rows = append(rows, []string{
			marked(w.ToNone, w.Goal > 0, w.ToNone.Median >= w.Goal), w.Who, storeName(w.Store), thousands(w.Open), digits(w.Rate),
			digits(w.ToNone), extremes(w.ToNone), goal, digits(w.Changes), w.Before,
		})
	}
	return report.Grid(rows)
}

func (r *Result) sentTable() string {
	rows := [][]string{{"", "webhooks", "store", "per second", "lowest – highest", "goal"}}
	for _, l := range r.Sent {
		rows = append(rows, []string{
			marked(l.Ratio, true, l.Ratio.Median >= l.Bound), l.Title, l.Against, digits(l.Ratio), extremes(l.Ratio), "≥ " + report.Digits(l.Bound),
		})
	}
	return report.Grid(rows)
}

func (r *Result) memoryTable() string {
	rows := [][]string{{"", "memory", "store", "bytes", "goal"}}
	for _, l := range r.Memory {
		goal := ""
		if l.Bound > 0 {
			goal = "≤ " + report.Digits(l.Bound)
		}
		rows = append(rows, []string{marked(l.Ratio, l.Bound > 0, l.Ratio.Median <= l.Bound), l.Title, l.Against, digits(l.Ratio), goal})
	}
	return report.Grid(rows)
}

// digits is a median, "" when nothing was measured.
func digits(s measure.Spread) string {
	if s.Rounds == 0 || s.Median == 0 {
		return ""
	}
	return report.Digits(s.Median)
}

func extremes(s measure.Spread) string {
	if s.Rounds == 0 || s.Median == 0 {
		return ""
	}
	return report.Digits(s.Min) + " – " + report.Digits(s.Max)
}
