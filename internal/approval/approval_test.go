package approval_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/payload"
)

// cast casts votes like "ana:1240" in order, "!ana:no" for one that does not agree and "!ana"
// for a dismissal.
func cast(p *approval.Policy, texts ...string) ([]approval.Vote, []approval.Outcome) {
	var votes []approval.Vote
	var outcomes []approval.Outcome
	for _, text := range texts {
		text, vetoes := strings.CutPrefix(text, "!")
		voter, value, _ := strings.Cut(text, ":")
		var outcome approval.Outcome
		votes, outcome = p.Cast(votes, approval.Vote{Voter: voter, Value: payload.JSON(value), Agrees: !vetoes})
		outcomes = append(outcomes, outcome)
	}
	return votes, outcomes
}

func TestCast(t *testing.T) {
	const repeated, counted, decided = approval.Repeated, approval.Counted, approval.Decided
	for name, c := range map[string]struct {
		policy approval.Policy
		votes  []string
		want   []approval.Outcome
		left   string // voters of the last votes, in order
	}{
		"the first answer":             {approval.Policy{}, []string{"ana:1"}, []approval.Outcome{decided}, "ana"},
		"two of a group":               {approval.Policy{Approvals: 2}, []string{"ana:1", "ben:1"}, []approval.Outcome{counted, decided}, "ana ben"},
		"one person twice":             {approval.Policy{Approvals: 2}, []string{"ana:1", "ana:1"}, []approval.Outcome{counted, repeated}, "ana"},
		"a changed mind":               {approval.Policy{Approvals: 2}, []string{"ana:1", "ben:2", "ana:2"}, []approval.Outcome{counted, counted, decided}, "ben ana"},
		"votes are for a value":        {approval.Policy{Approvals: 2}, []string{"ben:1240", "ana:900", "dora:1240"}, []approval.Outcome{counted, counted, decided}, "ben ana dora"},
		"numbers as they are written":  {approval.Policy{Approvals: 2}, []string{"ben:1240", "ana:1240.0"}, []approval.Outcome{counted, counted}, "ben ana"},
		"large numbers differ":         {approval.Policy{Approvals: 2}, []string{"ben:9007199254740993", "ana:9007199254740992"}, []approval.Outcome{counted, counted}, "ben ana"},
		"a veto":                       {approval.Policy{Approvals: 3}, []string{"ana:1", "!ben:\"no\""}, []approval.Outcome{counted, decided}, "ana ben"},
		"two vetoes of any value":      {approval.Policy{Approvals: 3, Vetoes: 2}, []string{"!ana:\"no\"", "!ben:\"never\""}, []approval.Outcome{counted, decided}, "ana ben"},
		"a veto taken back":            {approval.Policy{Approvals: 2, Vetoes: 2}, []string{"!ana:0", "ana:1", "!ben:0", "dora:1"}, []approval.Outcome{counted, counted, counted, decided}, "ana ben dora"},
		"a dismissal":                  {approval.Policy{Approvals: 2, Vetoes: 2}, []string{"!ana", "!ana", "!ben"}, []approval.Outcome{counted, repeated, decided}, "ana ben"},
		"a dismissal is not an answer": {approval.Policy{Approvals: 2, Vetoes: 2}, []string{"!ana", "!ana:null"}, []approval.Outcome{counted, counted}, "ana"},
	} {
		t.Run(name, func(t *testing.T) {
			votes, got := cast(&c.policy, c.votes...)
			require.Equal(t, c.want, got)
			var left []string
			for _, v := range votes {
				left = append(left, v.Voter)
			}
			require.Equal(t, c.left, strings.Join(left, " "))
		})
	}
}

func TestCastKeepsTheVotesItIsGiven(t *testing.T) {
	p := &approval.Policy{Approvals: 3}
	before, _ := cast(p, "ana:1", "ben:1")
	_, _ = p.Cast(before, approval.Vote{Voter: "ana", Value: "2", Agrees: true})
	require.Equal(t, payload.JSON("1"), before[0].Value)
	require.Equal(t, "ana", before[0].Voter)
}

// The room that the first vote for a value needs is the room of all votes that decide it.
func TestNeededBytes(t *testing.T) {
	p := &approval.Policy{Approvals: 3, Vetoes: 2}
	first, _ := cast(p, "ana:1")
	all, _ := cast(p, "ana:1", "ben:1", "eva:1")
	require.Equal(t, approval.SizeOfVotes(all), p.NeededBytes(first))
	require.Equal(t, approval.SizeOfVotes(all), p.NeededBytes(all))
	vetoed, _ := cast(p, "ana:1", "!eva:0")
	require.Equal(t, 3*approval.SizeOfVotes(first), p.NeededBytes(vetoed))
}

func TestCheckVoter(t *testing.T) {
	people := approval.Policy{Users: []string{"ana"}, Groups: []string{"finance"}}
	for name, c := range map[string]struct {
		policy approval.Policy
		voter  approval.Voter
		rule   string
	}{
		"everybody":              {approval.Policy{}, approval.Voter{Name: "ana"}, ""},
		"nobody, for everybody":  {approval.Policy{Agree: "answer"}, approval.Voter{}, ""},
		"a user":                 {people, approval.Voter{Name: "ana"}, ""},
		"a member":               {people, approval.Voter{Name: "ben", Groups: []string{"it", "finance"}}, ""},
		"another group":          {people, approval.Voter{Name: "ben", Groups: []string{"it"}}, approval.RuleGroup},
		"a group named as user":  {people, approval.Voter{Name: "finance"}, approval.RuleGroup},
		"a user named as group":  {people, approval.Voter{Name: "ben", Groups: []string{"ana"}}, approval.RuleGroup},
		"nobody":                 {people, approval.Voter{}, approval.RuleCallers},
		"nobody of two":          {approval.Policy{Approvals: 2}, approval.Voter{}, approval.RuleCallers},
		"the requester":          {approval.Policy{NotRequester: true, Requester: "ana"}, approval.Voter{Name: "ana"}, approval.RuleNotRequester},
		"the requester, a user":  {approval.Policy{Users: []string{"ana"}, NotRequester: true, Requester: "ana"}, approval.Voter{Name: "ana"}, approval.RuleNotRequester},
		"not the requester":      {approval.Policy{NotRequester: true, Requester: "ana"}, approval.Voter{Name: "ben"}, ""},
		"the requester may":      {approval.Policy{Requester: "ana"}, approval.Voter{Name: "ana"}, ""},
		"a requester not known":  {approval.Policy{NotRequester: true}, approval.Voter{Name: "ana"}, ""},
		"no requester, no names": {approval.Policy{NotRequester: true}, approval.Voter{}, approval.RuleCallers},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.policy.CheckVoter(c.voter)
			if c.rule == "" {
				require.NoError(t, err)
				return
			}
			refused, ok := errors.AsType[*approval.RefusalError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.rule, refused.Rule)
		})
	}
}

func TestCheck(t *testing.T) {
	names := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, strings.Repeat("x", i+1))
		}
		return all
	}
	for name, c := range map[string]struct {
		policy approval.Policy
		fields string
	}{
		"nothing":           {approval.Policy{}, ""},
		"all":               {approval.Policy{Users: names(8), Groups: names(8), Approvals: 100, Vetoes: 100}, ""},
		"too many names":    {approval.Policy{Users: names(9), Groups: names(8)}, "users"},
		"an empty name":     {approval.Policy{Users: []string{"ana", ""}}, "users[1]"},
		"a long name":       {approval.Policy{Groups: []string{strings.Repeat("x", 257)}}, "groups[0]"},
		"a name twice":      {approval.Policy{Groups: []string{"a", "b", "a"}}, "groups[2]"},
		"numbers":           {approval.Policy{Approvals: -1, Vetoes: 101}, "approvals vetoes"},
		"too few people":    {approval.Policy{Users: []string{"ana", "ben"}, Approvals: 3}, "approvals"},
		"a group may do":    {approval.Policy{Users: []string{"ana"}, Groups: []string{"finance"}, Approvals: 3}, ""},
		"a long requester":  {approval.Policy{Requester: strings.Repeat("x", 257)}, "requester"},
		"several mistakes":  {approval.Policy{Users: []string{""}, Approvals: 101}, "users[0] approvals approvals"},
		"nobody in general": {approval.Policy{Approvals: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, p := range c.policy.Check() {
				fields = append(fields, p.Field)
				require.NotEmpty(t, p.Text)
			}
			require.Equal(t, c.fields, strings.Join(fields, " "))
		})
	}
}

// A list of names that is far too long costs no more than one that is a little too long.
func TestLongListsOfNamesAreNotCompared(t *testing.T) {
	names := make([]string, 300_000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	problems := (&approval.Policy{Groups: names}).Check()
	require.Len(t, problems, 1)
	require.Equal(t, "users", problems[0].Field)
	names[1] = names[0]
	require.Len(t, (&approval.Policy{Groups: names}).Check(), 2)
}

func TestZeroPolicy(t *testing.T) {
	var none *approval.Policy
	require.True(t, none.IsZero())
	require.False(t, none.NeedsCallers())
	require.True(t, none.Equal(&approval.Policy{Approvals: 1, Vetoes: 1}))
	require.False(t, none.Equal(&approval.Policy{NotRequester: true}))
	require.True(t, (&approval.Policy{Users: []string{"a"}}).Equal(&approval.Policy{Users: []string{"a"}, Approvals: 1}))
}

func TestDelegations(t *testing.T) {
	p := &approval.Policy{Users: []string{"ana", "ben"}, Groups: []string{"finance"}, NotRequester: true, Requester: "eva", Delegable: true}
	voter := func(name string) approval.Voter { return approval.Voter{Name: name} }
	var list []approval.Delegation
	for _, step := range []struct {
		from, to, fails string
		may, mayNot     []string
	}{
		{"ana", "ana", "is the caller", []string{"ana", "ben"}, []string{"carl"}},
		{"ana", "ben", "may answer already", []string{"ana", "ben"}, []string{"carl"}},
		{"ana", "carl", "", []string{"ben", "carl"}, []string{"ana", "dora"}},
		{"ben", "carl", "may answer already", []string{"ben", "carl"}, []string{"ana"}},
		{"ben", "ana", "may answer already", []string{"ben", "carl"}, []string{"ana"}},
		{"carl", "dora", "", []string{"ben", "dora"}, []string{"ana", "carl"}},
		{"ben", "eva", "", []string{"dora"}, []string{"ana", "ben", "carl", "eva"}},
		{"dora", "ana", "", []string{"ana"}, []string{"ben", "carl", "dora"}},
	} {
		next, err := p.DelegateVote(list, step.from, step.to)
		if step.fails != "" {
			require.ErrorContains(t, err, step.fails)
		} else {
			require.NoError(t, err)
			list = next
		}
		for _, name := range step.may {
			require.NoError(t, p.CheckDelegate(list, voter(name)), "%+v: %s", step, name)
		}
		for _, name := range step.mayNot {
			require.Error(t, p.CheckDelegate(list, voter(name)), "%+v: %s", step, name)
		}
	}
	require.Error(t, p.CheckDelegate(list, voter("")))
	require.Equal(t, []approval.Delegation{{From: "ben", To: "eva"}}, list)
	require.Empty(t, approval.RevokeDelegation(list, "ben"))
	require.Len(t, list, 1, "the given ones are not changed")
	for i := range approval.MaxDelegations {
		if next, err := p.DelegateVote(list, fmt.Sprint("from", i), fmt.Sprint("to", i)); err == nil {
			list = next
		}
	}
	_, err := p.DelegateVote(list, "one", "more")
	require.ErrorContains(t, err, "the limit")
}
