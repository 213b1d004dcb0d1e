package checkpoint

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/trail"
)

// ClaimHolder returns who holds a claim on the interrupt at a time, "" = none.
func (i *Interrupt) ClaimHolder(now time.Time) string {
	if i.ClaimExpires.After(now) {
		return i.ClaimedBy
	}
	return ""
}

// RecordTrail appends to the trail what the record tells and the trail does not: that it was
// asked, its votes, its state. An interrupt that keeps no trail is left alone.
func (i *Interrupt) RecordTrail(now time.Time) {
	if i.Policy != nil || !i.Trail.IsEmpty() {
		i.recordMissing(now)
	}
}

// AppendTrail appends an entry to the trail. An interrupt that has kept none keeps one from
// then on.
func (i *Interrupt) AppendTrail(e trail.Entry) {
	i.recordMissing(e.Time)
	i.Trail.Append(e)
}

// FullTrail returns the trail, or what the record tells when the interrupt keeps none.
func (i *Interrupt) FullTrail() trail.Log {
	if !i.Trail.IsEmpty() {
		return i.Trail
	}
	shown := *i
	shown.recordMissing(i.Updated)
	return shown.Trail
}

func (i *Interrupt) recordMissing(now time.Time) {
	if i.Trail.IsEmpty() {
		i.recordAsked(i.Created)
	}
	i.recordVotes()
	if i.Trail.State == string(i.State) {
		return
	}
	if isAsked := i.Trail.State == string(InterruptOpen); isAsked && i.hasAnswer() && i.State != InterruptExpired {
		kind := trail.Answered
		if i.isDefaultAnswer() {
			kind = trail.Expired
		}
		i.recordAnswer(kind)
	}
	switch i.State {
	case InterruptOpen: // asked once more, after its run was cancelled
		i.recordAsked(now)
	case InterruptRetractable, InterruptAnswered:
	case InterruptConsumed:
		i.Trail.Append(trail.Entry{Time: now, Kind: trail.Used})
	case InterruptExpired:
		i.recordAnswer(trail.Expired)
	case InterruptCancelled:
		i.Trail.Append(trail.Entry{Time: i.Updated, Kind: trail.Cancelled})
	case InterruptSuperseded:
		i.Trail.Append(trail.Entry{Time: i.Updated, Kind: trail.Superseded})
	}
	i.Trail.State = string(i.State)
}

// RetractAnswer takes the answer back: the interrupt is open again, without the answer. Its votes are
// those that are left.
func (i *Interrupt) RetractAnswer(e trail.Entry, votes []approval.Vote) {
	i.AppendTrail(e)
	i.State, i.Trail.State, i.Votes = InterruptOpen, string(InterruptOpen), votes
	i.Response, i.Dismissed, i.Note, i.Request = "", false, "", ""
	i.Hidden.Response = redact.Parts{}
	i.Responder, i.ResponderHow, i.ResponseMethod, i.ResponseTime = "", "", "", time.Time{}
	i.Effective, i.NeedsAllAnswers = time.Time{}, false
}

// hasAnswer reports whether the record has an answer of a person.
func (i *Interrupt) hasAnswer() bool { return i.Response != "" || i.Dismissed }

// isDefaultAnswer reports whether the answer is the one that the interrupt has when no caller
// gives another.
func (i *Interrupt) isDefaultAnswer() bool {
	return i.Expiry == ExpiryResumeDefault && i.Responder == "" && i.ResponseMethod == "" && i.Request == "" && i.Response == i.Default
}

func (i *Interrupt) recordAsked(at time.Time) {
	i.Trail.Append(trail.Entry{Time: at, Kind: trail.Asked, Seen: i.ShownDigest, Policy: i.Policy.String()})
	i.Trail.State = string(InterruptOpen)
}

// recordVotes appends the votes that have no entry.
func (i *Interrupt) recordVotes() {
	for n := range i.Votes {
		v := &i.Votes[n]
		if v.Entry > 0 {
			continue
		}
		number := i.Trail.Append(trail.Entry{
			Time: v.Time, Kind: trail.Voted, Principal: v.Voter, How: v.How, Method: v.Method, Request: v.Request, Note: v.Note,
			Agrees: v.Agrees, Dismisses: v.IsDismissal(), Value: v.Value,
		})
		i.Votes = slices.Clone(i.Votes) // others may share them
		i.Votes[n].Entry = number
	}
}

// recordAnswer appends the end of the interrupt with its response.
func (i *Interrupt) recordAnswer(kind trail.Kind) {
	at := i.ResponseTime
	if at.IsZero() {
		at = i.Updated
	}
	i.Trail.Append(trail.Entry{
		Time: at, Kind: kind, Principal: i.Responder, How: i.ResponderHow, Method: i.ResponseMethod, Request: i.Request, Note: i.Note,
		Dismisses: i.Dismissed, Value: i.Response, Until: i.Effective,
	})
}

// CountEntries returns how many entries of a kind a principal has in the trail.
func (i *Interrupt) CountEntries(kind trail.Kind, principal string) int {
	entries, err := i.Trail.Entries()
	if err != nil {
		return 0
	}
	n := 0
	for j := range entries {
		if entries[j].Kind == kind && entries[j].Principal == principal {
			n++
		}
	}
	return n
}
