package main

import (
	"fmt"
	"strconv"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Result has all figures of one run of the benchmark.
type Result struct {
	About report.About `json:"about"`
	// Operations are calls, InPage is what a person does in the page, Beside are questions and answers
	// beside watchers, Sent the events of a notifier, Memory what open questions take.
	Operations []OperationRow  `json:"operations"`
	InPage     []OperationRow  `json:"in_page,omitempty"`
	Beside     []BesideRow     `json:"beside"`
	Sent       []report.Line   `json:"sent,omitempty"`
	Memory     []report.Line   `json:"memory"`
	Figures    []report.Figure `json:"figures"`
	// Notes name what is absent or broken.
	Notes []string `json:"notes,omitempty"`
}

// OperationRow is one operation on a store.
type OperationRow struct {
	Name string `json:"name"`
	// Store and Open say where it was measured, and beside how many open questions.
	Store string `json:"store"`
	Open  int    `json:"open"`
	// P50 and P99 are in milliseconds, Limit is the p50 of the limit. ToLimit is the ratio of
	// both p50 over the rounds.
	P50     measure.Spread `json:"p50"`
	P99     measure.Spread `json:"p99"`
	Limit   measure.Spread `json:"limit"`
	ToLimit measure.Spread `json:"to_limit"`
	// Goal50 and Goal99 are in milliseconds, 0 = none.
	Goal50 float64 `json:"goal50,omitempty"`
	Goal99 float64 `json:"goal99,omitempty"`
	// GoalOver is by how many milliseconds P50 may be above Limit, 0 = nothing is wanted.
	GoalOver float64 `json:"goal_over,omitempty"`
	// GoalRatio is the greatest ToLimit, 0 = nothing is wanted.
	GoalRatio float64 `json:"goal_ratio,omitempty"`
	// Before is what the build before the index needed.
	Before string `json:"before,omitempty"`
}

// BesideRow are the pairs of a question and its answer in the company of some watchers.
type BesideRow struct {
	Who     string         `json:"who"`
	Store   string         `json:"store"`
	Open    int            `json:"open"`
	Rate    measure.Spread `json:"rate"` // per second
	ToNone  measure.Spread `json:"to_none"`
	Changes measure.Spread `json:"changes"` // that all watchers saw, per second
	Goal    float64        `json:"goal,omitempty"`
	Before  string         `json:"before,omitempty"`
}

// add adds what was measured on a store.
func (r *Result) add(s *session) {
	r.Operations = append(r.Operations, s.operationRows(s.operations)...)
	r.InPage = append(r.InPage, s.operationRows(s.inPage)...)
	r.addBeside(s.inbox, s.population, s.series)
	r.addMemory(s.inbox, s.population, s.series)
}

// operationRows are those of the operations that were measured.
func (s *session) operationRows(operations []operation) (rows []OperationRow) {
	p50 := func(s workload.Sample) float64 { return s.P50 }
	milliseconds := func(k measure.Key, number func(workload.Sample) float64) measure.Spread {
		return s.series.Each(k, func(s workload.Sample) float64 { return number(s) * 1e3 })
	}
	for _, op := range operations {
		of, limit := s.key(op.name, graphd), s.key(op.name, theLimit)
		if len(s.series[of]) == 0 {
			continue
		}
		rows = append(rows, OperationRow{
			Name: op.name, Store: s.setting, Open: s.population.all, P50: milliseconds(of, p50),
			P99:   milliseconds(of, func(s workload.Sample) float64 { return s.P99 }),
			Limit: milliseconds(limit, p50), ToLimit: s.series.Compare(of, limit, p50),
			Goal50: op.goal50, Goal99: op.goal99, GoalOver: op.goalOver, GoalRatio: op.goalRatio, Before: op.before,
		})
	}
	return rows
}

func (r *Result) addBeside(b *inbox, p population, series measure.Series) {
	none := b.pairsKey(nobody)
	for _, c := range companies() {
		of := b.pairsKey(c.who)
		if len(series[of]) == 0 {
			continue
		}
		row := BesideRow{Who: c.who, Store: b.setting, Open: p.all, Rate: series.Rate(of), Goal: c.goal, Before: b.known(c.before, "")}
		if c.watchers > 0 {
			seen := of
			seen.Workload = changesSeen
			row.ToNone, row.Changes = series.Ratio(of, none), series.Rate(seen)
		}
		r.Beside = append(r.Beside, row)
	}
}

// mostOfEntry is how many bytes of Redis an entry under a tag may take.
const mostOfEntry = 200

func (r *Result) addMemory(b *inbox, p population, series measure.Series) {
	where := fmt.Sprintf("%s, %s open", storeName(b.setting), thousands(p.all))
	if tab := series.Rate(b.key(bytesOfTab, graphd)); tab.Rounds > 0 {
		r.Memory = append(r.Memory, report.Line{
			Title: "the page: " + bytesOfTab, Against: where, Ratio: tab, Bound: mostOfTab, AtMost: true, Unit: "bytes",
		})
	}
	if b.redis == nil {
		return
	}
	for _, l := range []struct {
		what  string
		bound float64
	}{{bytesOfEntry, mostOfEntry}, {bytesOfTag, 0}, {bytesOfTags, 0}, {bytesOfQuestion, 0}} {
		r.Memory = append(r.Memory, report.Line{
			Title: l.what, Against: where, Ratio: series.Rate(b.key(l.what, graphd)), Bound: l.bound, AtMost: true, Unit: "bytes",
		})
	}
}

// storeName is how pages call a store.
func storeName(setting string) string {
	switch setting {
	case stand.SQLite:
		return "SQLite"
	case stand.RedisEverysec:
		return "Redis"
	default:
		return setting
	}
}

// thousands prints a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
