package listing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

var openStates = []checkpoint.InterruptState{checkpoint.InterruptOpen}

func ana() runtime.Actor { return runtime.Actor{Name: "ana", Groups: []string{"leads", "staff"}} }

func TestInterruptFilters(t *testing.T) {
	day := time.Date(2026, 3, 17, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]checkpoint.InterruptQuery{
		``:                                  {States: openStates},
		`state = "*"`:                       {},
		`state = answered`:                  {States: []checkpoint.InterruptState{checkpoint.InterruptAnswered, checkpoint.InterruptRetractable}},
		`graph = g`:                         {States: openStates, Tags: []string{checkpoint.GraphTag("g")}},
		`assignee = "ana" AND group = "x"`:  {States: openStates, Tags: []string{checkpoint.UserTag("ana"), checkpoint.GroupTag("x")}},
		`claimed_by = "ana"`:                {States: openStates, Tags: []string{checkpoint.ClaimTag("ana")}},
		`priority = URGENT`:                 {States: openStates, Tags: []string{checkpoint.PriorityTag(approval.Urgent)}},
		`priority = PRIORITY_LOW`:           {States: openStates, Tags: []string{checkpoint.PriorityTag(approval.Low)}},
		`priority = normal AND graph = g`:   {States: openStates, Tags: []string{checkpoint.GraphTag("g")}},
		`node = n AND graph = g`:            {States: openStates, Tags: []string{checkpoint.GraphTag("g")}},
		`node = n AND reason = r`:           {}, // refused
		`due < "2026-03-17T12:00:00Z"`:      {States: openStates, ByDue: true, DueBefore: day},
		`due < "2026-03-17T13:00:00+01:00"`: {States: openStates, ByDue: true, DueBefore: day},
		`thread_id = t AND run_id = r AND state = "*" AND graph = g`: {
			Thread: "t", Run: "r", Tags: []string{checkpoint.GraphTag("g")},
		},
		`mine = "true"`: {States: openStates, AnyTag: []string{
			checkpoint.UserTag("ana"), checkpoint.ClaimTag("ana"), checkpoint.GroupTag("leads"), checkpoint.GroupTag("staff"),
		}},
	} {
		v := wire.NewValidator(payload.Limits{}, "")
		f := ParseInterruptFilter(v, "filter", text, "", ana(), checkpoint.InterruptOpen)
		f.RequireIndex(v)
		if text == `node = n AND reason = r` {
			require.ErrorContains(t, v.Err(), "no index finds questions by node")
			continue
		}
		require.NoError(t, v.Err(), text)
		want.DueBefore, f.Query.DueBefore = want.DueBefore.UTC(), f.Query.DueBefore.UTC()
		require.Equal(t, want, f.Query, text)
	}
}

func TestInterruptFiltersThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`run_id = r`:                "run_id needs thread_id",
		`reason = r`:                "no index finds questions",
		`priority = NORMAL`:         "no index finds questions",
		`priority = ""`:             "priority must be one of LOW, NORMAL, HIGH, URGENT",
		`priority = 7`:              "priority must be one of",
		`state = "*" AND group = x`: "only open questions are found",
		`state = ANSWERED AND due < "2026-03-17T12:00:00Z"`: "only open questions are found",
		`mine = "false"`:                                 `mine can only be "true"`,
		`due < "tomorrow"`:                               "due must be a time",
		`due = "2026-03-17T12:00:00Z"`:                   "expected < after due",
		`due < "0001-01-01T00:00:00Z"`:                   "of the years 1678 to 2261",
		`due < "9999-01-01T00:00:00Z"`:                   "of the years",
		`graph < g`:                                      "expected = after graph",
		`due < "2026-03-17T12:00:00Z" AND thread_id = t`: "leave thread_id out",
	} {
		v := wire.NewValidator(payload.Limits{}, "")
		f := ParseInterruptFilter(v, "filter", text, "", ana(), checkpoint.InterruptOpen)
		f.RequireIndex(v)
		require.ErrorContains(t, v.Err(), want, text)
	}
	v := wire.NewValidator(payload.Limits{}, "")
	ParseInterruptFilter(v, "filter", `mine = "true"`, "", runtime.Actor{})
	require.ErrorContains(t, v.Err(), "needs a server that knows its callers")
}

func TestOrderOfInterrupts(t *testing.T) {
	for _, c := range []struct{ filter, order, refused string }{
		{``, "", ""},
		{``, "create_time", ""},
		{``, "due_time", ""},
		{`due < "2026-03-17T12:00:00Z"`, "due_time", ""},
		{`due < "2026-03-17T12:00:00Z"`, "create_time", "lists by due_time"},
		{``, "name", "must be"},
		{`thread_id = t`, "due_time", "leave thread_id out"},
	} {
		v := wire.NewValidator(payload.Limits{}, "")
		f := ParseInterruptFilter(v, "filter", c.filter, "", ana(), checkpoint.InterruptOpen)
		f.OrderBy(v, c.order)
		if c.refused != "" {
			require.ErrorContains(t, v.Err(), c.refused)
			continue
		}
		require.NoError(t, v.Err())
		require.Equal(t, c.order == "due_time", f.Query.ByDue)
	}
}

// TestClaimsThatHaveEndedAreNone sees that an index with claims that have ended selects nothing
// for them.
func TestClaimsThatHaveEndedAreNone(t *testing.T) {
	now := time.Date(2026, 3, 17, 12, 0, 0, 0, time.UTC)
	claimed := func(until time.Time, groups ...string) *checkpoint.Interrupt {
		return &checkpoint.Interrupt{
			Graph: "g", State: checkpoint.InterruptOpen, ClaimedBy: "ana", ClaimExpires: until, Policy: &approval.Policy{Groups: groups},
		}
	}
	ended, held := now.Add(-time.Second), now.Add(time.Second)
	for _, c := range []struct {
		filter  string
		in      *checkpoint.Interrupt
		matches bool
	}{
		{`claimed_by = "ana"`, claimed(held), true},
		{`claimed_by = "ana"`, claimed(ended), false},
		{`mine = "true"`, claimed(held), true},
		{`mine = "true"`, claimed(ended), false},
		{`mine = "true"`, claimed(ended, "leads"), true},
		{`graph = g`, claimed(ended), true},
		{`graph = g AND node = n`, claimed(ended), false},
		{`graph = g AND priority = NORMAL`, claimed(ended), true},
	} {
		v := wire.NewValidator(payload.Limits{}, "")
		f := ParseInterruptFilter(v, "filter", c.filter, "", ana(), checkpoint.InterruptOpen)
		require.NoError(t, v.Err())
		require.Equal(t, c.matches, f.Matches(c.in, now), c.filter)
	}
}

func TestWatchedFilters(t *testing.T) {
	for text, want := range map[string]string{
		``:                               "",
		`state = ANSWERED`:               "",
		`graph = g`:                      "",
		`group = g AND node = n`:         "",
		`thread_id = t AND run_id = r`:   "",
		`claimed_by = "ana"`:             "can't be watched",
		`state = ANSWERED AND group = g`: "only open questions are found",
		`run_id = r`:                     "run_id needs thread_id",
		`state = ANSWERED AND due < "2026-03-17T12:00:00Z"`: "only open questions are found",
	} {
		v := wire.NewValidator(payload.Limits{}, "")
		f := ParseInterruptFilter(v, "filter", text, "", ana())
		f.RequireWatchIndex(v)
		if want == "" {
			require.NoError(t, v.Err(), text)
		} else {
			require.ErrorContains(t, v.Err(), want, text)
		}
	}
	v := wire.NewValidator(payload.Limits{}, "")
	f := ParseInterruptFilter(v, "filter", `mine = "true"`, "", ana())
	f.RequireWatchIndex(v)
	require.NoError(t, v.Err())
	require.Empty(t, f.Query.States, "changes to every state are shown")
	require.NotContains(t, f.Query.AnyTag, checkpoint.ClaimTag("ana"))
}
