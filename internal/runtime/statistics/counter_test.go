package statistics_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/statistics"
	"github.com/graphd-dev/graphd/internal/trail"
)

// world has a counter with a clock.
type world struct {
	*statistics.Counter
	now time.Time
	ids int
}

func newWorld(limit int) *world {
	w := &world{now: time.Date(2026, 3, 17, 9, 2, 0, 0, time.UTC)}
	w.Counter = statistics.New(statistics.Options{Limit: limit, Now: func() time.Time { return w.now }})
	return w
}

// ask counts a new question of a graph for some groups.
func (w *world) ask(graph string, groups ...string) checkpoint.Interrupt {
	w.ids++
	q := checkpoint.Interrupt{
		ID: fmt.Sprint(w.ids), Graph: graph, Node: "n", State: checkpoint.InterruptOpen, Created: w.now, Updated: w.now,
		Policy: &approval.Policy{Groups: groups},
	}
	w.count(checkpoint.EventInterrupt, q)
	return q
}

func (w *world) count(kind checkpoint.EventKind, q checkpoint.Interrupt) {
	shown := q
	shown.Trail = trail.Log{} // events have none
	w.CountChange([]checkpoint.Event{
		{Kind: checkpoint.EventRunState, Time: w.now}, {Kind: kind, Time: w.now, Interrupts: []checkpoint.Interrupt{shown}},
	}, []checkpoint.Interrupt{{ID: "other"}, q})
}

// end counts a question as ended after some time.
func (w *world) end(q checkpoint.Interrupt, after time.Duration, to checkpoint.InterruptState) {
	w.now = w.now.Add(after)
	q.State, q.Updated = to, w.now
	w.count(checkpoint.EventResolved, q)
}

func (w *world) answer(q checkpoint.Interrupt, after time.Duration, answer payload.JSON) {
	q.Response = answer
	w.end(q, after, checkpoint.InterruptAnswered)
}

func (w *world) read(owner string, shows func(string) bool) runtime.QuestionStatistics {
	return w.ReadQuestions(runtime.StatisticsQuery{Tenant: owner, Interval: time.Hour, ShowsGraph: shows})
}

func TestQuestionsCountByTimeAndGroup(t *testing.T) {
	w := newWorld(0)
	start := w.now
	first, second := w.ask("g", "leads", "finance"), w.ask("h")
	w.answer(first, time.Minute, `"x"`)
	w.end(second, time.Hour, checkpoint.InterruptCancelled)
	third := w.ask("h", "leads")
	third.Expires, third.Expiry, third.Default = w.now.Add(time.Hour), checkpoint.ExpiryResumeDefault, `1`
	w.end(third, time.Hour, checkpoint.InterruptExpired)
	got := w.read("default", nil)
	require.Equal(t, start, got.CountsSince)
	require.Equal(t, time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC), got.Begin)
	require.Equal(t, runtime.QuestionCounts{Asked: 3, Answered: 1, Defaulted: 1, Withdrawn: 1}, got.All.Total)
	require.Len(t, got.All.Intervals, 24)
	require.Equal(t, runtime.QuestionCounts{Asked: 2, Answered: 1}, got.All.Intervals[21])
	require.Equal(t, runtime.QuestionCounts{Asked: 1, Withdrawn: 1}, got.All.Intervals[22])
	require.Equal(t, runtime.QuestionCounts{Defaulted: 1}, got.All.Intervals[23])
	require.Equal(t, []string{"", "finance", "leads"}, groupNames(got))
	require.Equal(t, runtime.QuestionCounts{Asked: 1, Withdrawn: 1}, got.Groups[0].Total)
	require.Equal(t, runtime.QuestionCounts{Asked: 2, Answered: 1, Defaulted: 1}, got.Groups[2].Total)
	require.Nil(t, got.Others)
	require.False(t, got.IsPartial)

	w.now = w.now.Add(23 * time.Hour)
	require.Equal(t, runtime.QuestionCounts{Defaulted: 1}, w.read("default", nil).All.Total, "the others are a day old")
	w.now = w.now.Add(time.Hour)
	got = w.read("default", nil)
	require.Equal(t, runtime.QuestionCounts{}, got.All.Total)
	require.Empty(t, got.Groups)
}

func groupNames(s runtime.QuestionStatistics) (names []string) {
	for _, g := range s.Groups {
		names = append(names, g.Group)
	}
	return names
}

func TestAnswersAfterTheFirstStepAreLate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(q *checkpoint.Interrupt)
		after  time.Duration
		late   int64
	}{
		"without steps":    {func(*checkpoint.Interrupt) {}, 20 * time.Hour, 0},
		"before the first": {func(q *checkpoint.Interrupt) { q.Steps = []approval.Step{{After: time.Hour}} }, time.Hour, 0},
		"after the first": {func(q *checkpoint.Interrupt) {
			q.Steps, q.NextStep = []approval.Step{{After: time.Hour}, {After: 9 * time.Hour}}, 1
		}, 2 * time.Hour, 1},
		"before the expiry": {func(q *checkpoint.Interrupt) { q.Expires = q.Created.Add(time.Hour) }, 59 * time.Minute, 0},
		"between both": {func(q *checkpoint.Interrupt) {
			q.Expires, q.Steps = q.Created.Add(time.Hour), []approval.Step{{After: time.Minute}}
		}, 2 * time.Minute, 1},
		"a step after the end": {func(q *checkpoint.Interrupt) {
			q.Expires, q.Steps = q.Created.Add(time.Hour), []approval.Step{{After: 3 * time.Hour}}
		}, 2 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			q := w.ask("g", "leads")
			c.change(&q)
			w.answer(q, c.after, `1`)
			got := w.read("default", nil)
			require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1, Late: c.late}, got.All.Total)
			require.Equal(t, got.All.Total, got.Groups[0].Total)
		})
	}
}

// An answer counts once, whatever its node does with it.
func TestEndsCountOnce(t *testing.T) {
	w := newWorld(0)
	q := w.ask("g")
	q.Response = `1`
	w.end(q, time.Minute, checkpoint.InterruptAnswered)
	q.Accepted = []string{"message"}
	w.end(q, 0, checkpoint.InterruptConsumed)
	w.end(q, 0, checkpoint.InterruptSuperseded)
	w.end(q, 0, checkpoint.InterruptCancelled)
	passed := w.ask("g")
	passed.Reason = checkpoint.ReasonBreakpoint
	w.end(passed, 0, checkpoint.InterruptConsumed)
	w.end(w.ask("g"), 0, checkpoint.InterruptSuperseded)
	w.end(w.ask("g"), 0, checkpoint.InterruptExpired)
	require.Equal(t, runtime.QuestionCounts{Asked: 4, Answered: 2, Withdrawn: 1, Expired: 1}, w.read("default", nil).All.Total)
}

func TestAnswersThatAreTakenBackDoNotCount(t *testing.T) {
	w := newWorld(0)
	q := w.ask("g", "leads")
	q.Schema = `{"enum": ["yes", "no"]}`
	q.Response, q.Responder, q.ResponseTime = `"yes"`, "ana", w.now.Add(3*time.Minute)
	w.end(q, 3*time.Minute, checkpoint.InterruptRetractable)
	q.State, q.Updated = checkpoint.InterruptRetractable, w.now
	require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1}, w.read("default", nil).All.Total)
	require.Equal(t, int64(1), w.ReadAnswers("default", "g", "n").Answered)

	w.now = w.now.Add(10 * time.Minute)
	q.RetractAnswer(trail.Entry{Time: w.now, Kind: trail.Retracted, Principal: "ana"}, nil)
	w.count(checkpoint.EventInterrupt, q)
	got := w.read("default", nil)
	require.Equal(t, runtime.QuestionCounts{Asked: 1}, got.All.Total)
	require.Equal(t, runtime.QuestionCounts{Asked: 1}, got.Groups[0].Total)
	require.Zero(t, got.All.Waits.Median)
	answers := w.ReadAnswers("default", "g", "n")
	require.Zero(t, answers.Answered)
	require.Empty(t, answers.Decisions)

	w.answer(q, time.Minute, `"no"`)
	require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1}, w.read("default", nil).All.Total)
	require.Equal(t, []runtime.DecisionCount{{Decision: `"no"`, Count: 1}}, w.ReadAnswers("default", "g", "n").Decisions)
}

func TestTenantsAreWalls(t *testing.T) {
	w := newWorld(0)
	w.answer(w.ask("acme@g", "leads"), time.Minute, `1`)
	w.ask("g", "leads")
	require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1}, w.read("acme", nil).All.Total)
	require.Equal(t, runtime.QuestionCounts{Asked: 1}, w.read("default", nil).All.Total)
	require.Equal(t, runtime.QuestionCounts{}, w.read("other", nil).All.Total)
	require.Equal(t, int64(1), w.ReadAnswers("acme", "g", "n").Answered)
	require.Zero(t, w.ReadAnswers("default", "g", "n").Answered)
	require.Zero(t, w.ReadAnswers("other", "g", "n").Answered)
}

func TestGraphsAreShownByThemselves(t *testing.T) {
	w := newWorld(0)
	w.answer(w.ask("shown", "leads", "sre"), time.Minute, `1`)
	w.answer(w.ask("hidden", "leads", "secret"), 5*time.Hour, `1`)
	got := w.read("default", func(graph string) bool { return graph == "shown" })
	require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1}, got.All.Total)
	require.Equal(t, []string{"leads", "sre"}, groupNames(got))
	require.Equal(t, int64(1), got.Groups[0].Total.Asked)
	require.LessOrEqual(t, got.All.Waits.P95, time.Minute)
	got = w.read("default", func(string) bool { return false })
	require.Equal(t, runtime.QuestionCounts{}, got.All.Total)
	require.Empty(t, got.Groups)
	require.False(t, got.IsPartial)
}

func TestMedianAndP95OfWaits(t *testing.T) {
	w := newWorld(0)
	require.Zero(t, w.read("default", nil).All.Waits)
	for range 90 {
		w.answer(w.ask("g"), 90*time.Second, `1`)
	}
	for range 10 {
		w.answer(w.ask("g"), 100*time.Minute, `1`)
	}
	waits := w.read("default", nil).All.Waits
	require.InDelta(t, 90*time.Second, waits.Median, float64(time.Minute))
	require.InDelta(t, 90*time.Minute, waits.P95, float64(time.Hour))
	w.answer(w.ask("long"), 30*24*time.Hour, `1`)
	require.Equal(t, 7*24*time.Hour, w.read("default", nil).All.Waits.Median, "the longest bucket")
}

func TestGroupsBeyondTheLimitAreOthers(t *testing.T) {
	w := newWorld(2)
	w.ask("a", "one", "two", "three")
	w.ask("b", "four")
	w.ask("c", "one")
	got := w.read("default", nil)
	require.Equal(t, []string{"one", "two"}, groupNames(got))
	require.Equal(t, int64(3), got.All.Total.Asked)
	require.Equal(t, int64(3), got.Others.Total.Asked)
	require.False(t, got.IsPartial, "all questions are in the sum")
	require.Equal(t, int64(1), got.Groups[0].Total.Asked)

	shown := w.read("default", func(string) bool { return true })
	require.Equal(t, int64(2), shown.All.Total.Asked, "graphs beyond the limit have no series")
	require.True(t, shown.IsPartial)
	require.Nil(t, shown.Others)

	w.now = w.now.Add(25 * time.Hour)
	w.ask("c", "five")
	got = w.read("default", nil)
	require.Equal(t, []string{"five"}, groupNames(got), "what is idle makes place")
	require.Nil(t, got.Others)
	require.False(t, w.read("default", func(string) bool { return true }).IsPartial)
}

func TestTenantsBeyondTheLimitAreNotCounted(t *testing.T) {
	w := newWorld(1)
	for i := range 100 {
		w.ask(fmt.Sprintf("t%d@g", i), "leads")
	}
	counted := 0
	for i := range 100 {
		got := w.read(fmt.Sprintf("t%d", i), nil)
		counted += int(got.All.Total.Asked)
		require.Equal(t, got.All.Total.Asked == 0, got.IsPartial)
	}
	require.Positive(t, counted)
	require.Less(t, counted, 10)
	w.now = w.now.Add(25 * time.Hour)
	w.ask("t99@g", "leads")
	require.Equal(t, int64(1), w.read("t99", nil).All.Total.Asked)
}

func TestAnswersOfANode(t *testing.T) {
	w := newWorld(0)
	const schema = `{"type": "object", "required": ["decision", "note"], "properties": {
		"note": {"type": "string"}, "decision": {"enum": ["approve", "reject"]}, "kind": {"enum": ["a"]}}}`
	answer := func(text payload.JSON) {
		q := w.ask("g", "leads")
		q.Schema = schema
		w.answer(q, time.Minute, text)
	}
	since := w.now
	require.Equal(t, runtime.AnswerStatistics{CountsSince: since}, w.ReadAnswers("default", "g", "n"))
	answer(`{"decision": "reject", "note": "no"}`)
	answer(`{"decision": "approve", "note": "1"}`)
	answer(`{"note": "2", "decision":"approve"}`)
	dismissed, expired := w.ask("g"), w.ask("g")
	dismissed.Dismissed = true
	w.end(dismissed, time.Minute, checkpoint.InterruptAnswered)
	w.end(expired, time.Minute, checkpoint.InterruptExpired)
	w.end(w.ask("g"), time.Minute, checkpoint.InterruptCancelled)
	got := w.ReadAnswers("default", "g", "n")
	require.Positive(t, got.Waits.Median)
	got.Waits = runtime.WaitTimes{}
	require.Equal(t, runtime.AnswerStatistics{
		CountsSince: since, Answered: 4, Dismissed: 1, Expired: 1,
		Decisions: []runtime.DecisionCount{{Decision: `"approve"`, Count: 2}, {Decision: `"reject"`, Count: 1}},
	}, got)
	require.Zero(t, w.ReadAnswers("default", "g", "m").Answered)

	w.now = w.now.Add(time.Hour)
	for i := range statistics.DefaultLimit {
		q := w.ask("g")
		q.Node = fmt.Sprint("other-", i)
		w.answer(q, time.Minute, `1`)
	}
	got = w.ReadAnswers("default", "g", "n")
	require.Zero(t, got.Answered, "the node that had no answer for longest makes place")
	require.True(t, got.CountsSince.After(since))
	require.Equal(t, int64(1), w.ReadAnswers("default", "g", "other-0").Answered)
}

func TestADecisionIsOneOfListedValues(t *testing.T) {
	for name, c := range map[string]struct {
		schema, answer, want payload.JSON
	}{
		"no schema":             {``, `"free"`, ``},
		"free text":             {`{"type": "string"}`, `"free"`, ``},
		"the whole answer":      {`{"enum": ["a", "b"]}`, ` "a" `, `"a"`},
		"yes or no":             {`{"type": "boolean"}`, `true`, `true`},
		"constants":             {`{"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]}`, `2`, `2`},
		"cases with text":       {`{"oneOf": [{"const": 1}, {"type": "string"}]}`, `"x"`, ``},
		"a definition":          {`{"$defs": {"D": {"enum": ["a"]}}, "type": "object", "required": ["d"], "properties": {"d": {"$ref": "#/$defs/D"}}}`, `{"d": "a"}`, `"a"`},
		"the name decides":      {`{"required": ["kind", "action"], "properties": {"kind": {"enum": ["k"]}, "action": {"enum": ["x"]}}}`, `{"kind": "k", "action": "x"}`, `"x"`},
		"several without name":  {`{"required": ["kind", "way"], "properties": {"kind": {"enum": ["k"]}, "way": {"enum": ["x"]}}}`, `{"kind": "k", "way": "x"}`, ``},
		"not required":          {`{"properties": {"decision": {"enum": ["x"]}}}`, `{"decision": "x"}`, ``},
		"redacted":              {`{"required": ["decision"], "properties": {"decision": {"enum": ["x"]}}}`, `{"decision": {"__redacted__": true}}`, ``},
		"null":                  {`{"enum": [null]}`, `null`, ``},
		"long":                  {`{"type": "boolean"}`, payload.JSON(`"` + string(make([]byte, 100)) + `"`), ``},
		"a schema of yes":       {`true`, `"x"`, ``},
		"no schema of a member": {`{"required": ["decision"], "properties": {"decision": true}}`, `{"decision": "x"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			q := w.ask("g")
			q.Schema = c.schema
			w.answer(q, time.Minute, c.answer)
			var want []runtime.DecisionCount
			if c.want != "" {
				want = []runtime.DecisionCount{{Decision: c.want, Count: 1}}
			}
			require.Equal(t, want, w.ReadAnswers("default", "g", "n").Decisions)
		})
	}
}

func TestDecisionsOfANodeAreBounded(t *testing.T) {
	w := newWorld(0)
	for i := range 20 {
		q := w.ask("g")
		q.Schema = `{"enum": []}`
		w.answer(q, time.Second, payload.JSON(fmt.Sprint(i)))
	}
	got := w.ReadAnswers("default", "g", "n")
	require.Len(t, got.Decisions, 8)
	require.Equal(t, int64(20), got.Answered)
}

func TestTheClockMayGoBack(t *testing.T) {
	w := newWorld(0)
	w.ask("g")
	w.now = w.now.Add(-time.Hour)
	w.ask("g")
	w.now = w.now.Add(time.Hour)
	require.Equal(t, int64(2), w.read("default", nil).All.Total.Asked)
}

func BenchmarkCountChange(b *testing.B) {
	w := newWorld(0)
	q := w.ask("g", "leads", "finance")
	q.Schema, q.Response = `{"required": ["decision"], "properties": {"decision": {"enum": ["approve", "reject"]}}}`, `{"decision": "approve"}`
	ended := q
	ended.State = checkpoint.InterruptAnswered
	asked := []checkpoint.Event{{Kind: checkpoint.EventInterrupt, Time: w.now, Interrupts: []checkpoint.Interrupt{q}}}
	answered := []checkpoint.Event{{Kind: checkpoint.EventResolved, Time: w.now.Add(time.Minute), Interrupts: []checkpoint.Interrupt{ended}}}
	for name, events := range map[string][]checkpoint.Event{"asked": asked, "answered": answered} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.CountChange(events, events[0].Interrupts)
			}
		})
	}
}

func BenchmarkReadQuestions(b *testing.B) {
	w := newWorld(0)
	for range 24 * 12 {
		w.now = w.now.Add(5 * time.Minute)
		for i := range 100 {
			w.answer(w.ask("g", fmt.Sprint(i)), 0, `1`)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		w.read("default", nil)
	}
}

// Nothing is lost while many count and read.
func TestManyCountAtTheSameTime(t *testing.T) {
	const workers, each = 8, 200
	w := newWorld(20)
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() {
			for i := range each {
				q := checkpoint.Interrupt{
					ID: fmt.Sprint(n, i), Graph: fmt.Sprint("g", i%30), Node: fmt.Sprint("n", i%50), State: checkpoint.InterruptOpen, Created: w.now,
					Policy: &approval.Policy{Groups: []string{fmt.Sprint("group", n)}},
				}
				w.count(checkpoint.EventInterrupt, q)
				q.State, q.Response = checkpoint.InterruptAnswered, `1`
				w.count(checkpoint.EventResolved, q)
				w.read("default", nil)
				w.ReadAnswers("default", q.Graph, q.Node)
			}
		})
	}
	all.Wait()
	got := w.read("default", nil)
	require.Equal(t, runtime.QuestionCounts{Asked: workers * each, Answered: workers * each}, got.All.Total)
	grouped := got.Others.Total.Asked
	for _, g := range got.Groups {
		grouped += g.Total.Asked
	}
	require.Equal(t, int64(workers*each), grouped)
}
