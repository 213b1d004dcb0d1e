package checkpoint_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func TestQueriesThatMayHaveSelectedAnInterrupt(t *testing.T) {
	open := []checkpoint.InterruptState{checkpoint.InterruptOpen}
	of := func(states []checkpoint.InterruptState, tags ...string) checkpoint.InterruptQuery {
		return checkpoint.InterruptQuery{States: states, Tags: tags}
	}
	q := checkpoint.Interrupt{Thread: "t", Graph: "g", State: checkpoint.InterruptOpen, Assignees: []string{"ana"}, ClaimedBy: "ana"}
	q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Assignees = []string{"ben"} })
	q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Priority = approval.High })
	answered := q
	answered.State = checkpoint.InterruptAnswered
	for name, c := range map[string]struct {
		query checkpoint.InterruptQuery
		in    checkpoint.Interrupt
		want  bool
	}{
		"it selects it":             {of(open, checkpoint.UserTag("ben")), q, false},
		"assigned away":             {of(open, checkpoint.UserTag("ana")), q, true},
		"in any state":              {of(nil, checkpoint.UserTag("ana")), answered, true},
		"one of several":            {checkpoint.InterruptQuery{AnyTag: []string{checkpoint.UserTag("ana"), checkpoint.GroupTag("x")}}, q, true},
		"and of the graph":          {of(open, checkpoint.UserTag("ana"), checkpoint.GraphTag("g")), q, true},
		"of another graph":          {of(open, checkpoint.UserTag("ana"), checkpoint.GraphTag("h")), q, false},
		"another priority":          {of(open, checkpoint.PriorityTag(approval.Normal)), q, true},
		"never assigned":            {of(open, checkpoint.UserTag("eva")), q, false},
		"a claim, which has no end": {of(open, checkpoint.ClaimTag("eva")), q, false},
		"answered":                  {of(open), answered, true},
		"answered, of one":          {of(open, checkpoint.UserTag("ben")), answered, true},
		"in another thread":         {checkpoint.InterruptQuery{Thread: "u", States: open}, answered, false},
		"of another state":          {of([]checkpoint.InterruptState{checkpoint.InterruptExpired}), answered, false},
	} {
		require.Equal(t, c.want, c.query.MayHaveSelected(&c.in), name)
	}
}

func TestFormerPropertiesAreKept(t *testing.T) {
	q := checkpoint.Interrupt{Graph: "g", Created: time.Unix(0, 0), Policy: &approval.Policy{Groups: []string{"finance"}}, Steps: []approval.Step{
		{After: time.Minute, Escalates: true, Groups: []string{"board"}, Priority: approval.Urgent},
	}}
	require.True(t, q.TakeSteps(time.Unix(60, 0)))
	require.Equal(t, []string{checkpoint.PriorityTag(approval.Normal)}, q.PropertyChanges().Former)
	q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Priority = approval.Normal })
	require.Equal(t, []string{checkpoint.PriorityTag(approval.Urgent)}, q.PropertyChanges().Former, "what it has again is not former")
	for round := range 3 {
		names := make([]string, approval.MaxAssignees)
		for i := range names {
			names[i] = fmt.Sprint(round, "-", i)
		}
		q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Assignees = names })
	}
	require.Len(t, q.PropertyChanges().Former, 256)
	q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Assignees = []string{"zoe"} })
	q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Assignees = []string{"ana"} })
	require.Equal(t, checkpoint.UserTag("zoe"), q.PropertyChanges().Former[0], "the newest stay")
}
