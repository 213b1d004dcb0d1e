package checkpoint

import (
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/trail"
)

// VoterPolicy returns who may answer now: the Policy, with those to whom the interrupt was
// escalated.
func (i *Interrupt) VoterPolicy() *approval.Policy {
	changes := i.PropertyChanges()
	return i.Policy.Widen(changes.AddedUsers, changes.AddedGroups)
}

// CheckVoter returns an *approval.RefusalError when the voter may not answer now.
func (i *Interrupt) CheckVoter(v approval.Voter) error {
	return i.VoterPolicy().CheckDelegate(i.PropertyChanges().Delegations, v)
}

// DueTime returns when something happens to the interrupt by itself: its next step, its
// expiry, or the effect of its answer; zero = never.
func (i *Interrupt) DueTime() time.Time {
	if i.State == InterruptRetractable {
		return i.Effective
	}
	if i.NextStep >= len(i.Steps) {
		return i.Expires
	}
	next := i.Created.Add(i.Steps[i.NextStep].After)
	if !i.Expires.IsZero() && i.Expires.Before(next) {
		return i.Expires
	}
	return next
}

// TakeSteps takes the steps whose time has come, in order, each with its entry in the trail.
// A step at or after the expiry is not taken. It reports whether there was one.
func (i *Interrupt) TakeSteps(now time.Time) bool {
	first := i.NextStep
	for i.NextStep < len(i.Steps) {
		s := &i.Steps[i.NextStep]
		at := i.Created.Add(s.After)
		if at.After(now) || !i.Expires.IsZero() && !at.Before(i.Expires) {
			break
		}
		i.takeStep(s, now)
		i.NextStep++
	}
	if i.NextStep == first {
		return false
	}
	i.Updated = now
	return true
}

func (i *Interrupt) takeStep(s *approval.Step, now time.Time) {
	entry := trail.Entry{Time: now, Kind: trail.Reminded, Users: s.Users, Groups: s.Groups}
	if s.Escalates {
		entry.Kind = trail.Escalated
		i.ChangeProperties(func(c *PropertyChanges) {
			added := (&approval.Policy{Users: c.AddedUsers, Groups: c.AddedGroups}).Join(s.Users, s.Groups)
			c.AddedUsers, c.AddedGroups = added.Users, added.Groups
			if s.Priority != approval.Normal {
				i.Priority = s.Priority
				entry.Priority = s.Priority.String()
			}
		})
	}
	i.AppendTrail(entry)
}
