package approval_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

func TestCheckRevealer(t *testing.T) {
	people := approval.Policy{Users: []string{"ana"}}
	audit := approval.Policy{Users: []string{"ana"}, RevealUsers: []string{"eva"}, RevealGroups: []string{"audit"}}
	for name, c := range map[string]struct {
		policy      *approval.Policy
		delegations []approval.Delegation
		caller      approval.Voter
		rule        string
	}{
		"no policy":            {nil, nil, approval.Voter{}, ""},
		"who may answer":       {&people, nil, approval.Voter{Name: "ana"}, ""},
		"who may not answer":   {&people, nil, approval.Voter{Name: "ben"}, approval.RuleGroup},
		"a delegate":           {&people, []approval.Delegation{{From: "ana", To: "ben"}}, approval.Voter{Name: "ben"}, ""},
		"who has a delegate":   {&people, []approval.Delegation{{From: "ana", To: "ben"}}, approval.Voter{Name: "ana"}, approval.RuleDelegated},
		"who answers only":     {&audit, nil, approval.Voter{Name: "ana"}, approval.RuleReveal},
		"a revealer":           {&audit, nil, approval.Voter{Name: "eva"}, ""},
		"of a group":           {&audit, nil, approval.Voter{Name: "carl", Groups: []string{"it", "audit"}}, ""},
		"a group named as one": {&audit, nil, approval.Voter{Name: "audit"}, approval.RuleReveal},
		"no name":              {&audit, nil, approval.Voter{Groups: []string{"audit"}}, approval.RuleCallers},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.policy.CheckRevealer(c.delegations, c.caller)
			if c.rule == "" {
				require.NoError(t, err)
				return
			}
			refused, ok := errors.AsType[*approval.RefusalError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.rule, refused.Rule)
		})
	}
	require.True(t, audit.NeedsCallers())
	require.False(t, audit.Equal(&people))
	require.False(t, audit.Accepts(&people))
	require.Equal(t, "ana; secret parts are for eva; members of audit", audit.String())
	require.Equal(t, "reveal.users[1]", (&approval.Policy{RevealUsers: []string{"a", "a"}}).Check()[0].Field)
}

// Votes that differ where it is secret are for different values.
func TestVotesWithSecrets(t *testing.T) {
	p := &approval.Policy{Approvals: 2}
	vote := func(who, hidden string) approval.Vote {
		var b redact.Builder
		b.Add("/card", payload.JSON(hidden))
		return approval.Vote{Voter: who, Agrees: true, Value: `{"card":{"__redacted__": true}}`, Hidden: b.Parts()}
	}
	votes, outcome := p.Cast(nil, vote("ana", `"1"`))
	require.Equal(t, approval.Counted, outcome)
	_, outcome = p.Cast(votes, vote("ana", `"1"`))
	require.Equal(t, approval.Repeated, outcome)
	votes, outcome = p.Cast(votes, vote("ben", `"2"`))
	require.Equal(t, approval.Counted, outcome)
	_, outcome = p.Cast(votes, vote("ben", `"1"`))
	require.Equal(t, approval.Decided, outcome)
	plain := approval.Vote{Voter: "ana", Agrees: true, Value: votes[0].Value}
	require.Greater(t, votes[0].Size(), plain.Size())
}
