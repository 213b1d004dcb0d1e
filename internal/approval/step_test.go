package approval_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
)

func TestCheckSteps(t *testing.T) {
	people := &approval.Policy{Groups: []string{"finance"}}
	remind := func(after time.Duration) approval.Step { return approval.Step{After: after} }
	to := func(after time.Duration, groups ...string) approval.Step {
		return approval.Step{After: after, Escalates: true, Groups: groups}
	}
	for name, c := range map[string]struct {
		policy *approval.Policy
		steps  []approval.Step
		ttl    time.Duration
		fields string
	}{
		"none":                  {nil, nil, 0, ""},
		"in order":              {people, []approval.Step{remind(1), to(2, "board")}, 3, ""},
		"without an expiry":     {people, []approval.Step{remind(1), to(2, "board")}, 0, ""},
		"at once":               {people, []approval.Step{remind(0)}, 0, "steps[0].after"},
		"at the same time":      {people, []approval.Step{remind(1), remind(1)}, 0, "steps[1].after"},
		"backwards":             {people, []approval.Step{remind(2), remind(1), remind(3)}, 0, "steps[1].after"},
		"after the expiry":      {people, []approval.Step{remind(5)}, 5, "steps[0].after"},
		"to nobody":             {people, []approval.Step{to(1)}, 0, "steps[0]"},
		"a priority alone":      {nil, []approval.Step{{After: 1, Escalates: true, Priority: approval.Urgent}}, 0, ""},
		"people, for everybody": {&approval.Policy{Approvals: 2}, []approval.Step{to(1, "board")}, 0, "steps[0]"},
		"a name that is empty":  {people, []approval.Step{to(1, "")}, 0, "steps[0].groups[0]"},
		"too many":              {people, make([]approval.Step, 17), 0, "steps"},
		"too many names":        {people, []approval.Step{to(1, manyNames(16)...), to(2, manyNames(16)...), to(3, manyNames(16)...), to(4, manyNames(16)...), to(5, "one")}, 0, "steps"},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, p := range approval.CheckSteps(c.policy, c.steps, c.ttl) {
				fields = append(fields, p.Field)
				require.NotEmpty(t, p.Text)
			}
			require.Equal(t, c.fields, strings.Join(fields, " "))
		})
	}
}

func TestPriorities(t *testing.T) {
	for p := approval.Low; p <= approval.Urgent; p++ {
		got, ok := approval.ParsePriority(p.String())
		require.True(t, ok)
		require.Equal(t, p, got)
	}
	_, ok := approval.ParsePriority("soon")
	require.False(t, ok)
	normal, ok := approval.ParsePriority("")
	require.True(t, ok)
	require.Zero(t, normal)
}

func TestWiden(t *testing.T) {
	p := &approval.Policy{Users: []string{"ana"}, Approvals: 2}
	wider := p.Widen([]string{"ben", "ana"}, []string{"board"})
	require.Equal(t, &approval.Policy{Users: []string{"ana", "ben"}, Groups: []string{"board"}, Approvals: 2}, wider)
	require.Equal(t, []string{"ana"}, p.Users)
	for _, everybody := range []*approval.Policy{nil, {Approvals: 2}} {
		require.Equal(t, everybody, everybody.Widen([]string{"ben"}, nil), "more people would be fewer")
	}
}

func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "g" + strconv.Itoa(i)
	}
	return names
}
