package approval

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// Vote is the answer of one person to a question.
type Vote struct {
	Voter  string // principal
	How    string // kind of the credential that identified the voter
	Method string // method by which the vote came
	Time   time.Time
	Agrees bool
	Value  payload.JSON // the answer; "" = a dismissal
	Hidden redact.Parts // secret parts of the answer
	Note   string
	// Request is the id of the request that brought the vote.
	Request string
	// Entry is the number of the entry in the trail of the question, 0 = none yet.
	Entry int
}

// IsDismissal reports whether the voter declined to answer.
func (v *Vote) IsDismissal() bool { return v.Value == "" }

// isSame reports whether two votes say the same. Notes do not count.
func (v *Vote) isSame(other *Vote) bool {
	if v.IsDismissal() || other.IsDismissal() {
		return v.IsDismissal() == other.IsDismissal()
	}
	return redact.Equal(redact.Value{Shown: v.Value, Hidden: v.Hidden}, redact.Value{Shown: other.Value, Hidden: other.Hidden})
}

// Outcome is what a vote has done.
type Outcome int

// Outcomes of a vote.
const (
	Repeated Outcome = iota // the voter has voted so already: nothing changes
	Counted                 // the question stays open
	Decided                 // the value of the vote is the answer
)

// Cast counts a vote. A voter has one vote: a vote for another value takes the place of
// the earlier vote. The votes of the result are in the order in which they were cast; those
// given are not changed.
//
// Votes are for a value. It is decided when Approvals agreeing votes are for equal values,
// or when Vetoes votes do not agree, whatever their values: the value of the last one is the
// answer then.
func (p *Policy) Cast(votes []Vote, v Vote) ([]Vote, Outcome) {
	at := slices.IndexFunc(votes, func(old Vote) bool { return old.Voter == v.Voter })
	if at >= 0 && votes[at].isSame(&v) {
		return votes, Repeated
	}
	cast := make([]Vote, 0, len(votes)+1)
	for i := range votes {
		if i != at {
			cast = append(cast, votes[i])
		}
	}
	cast = append(cast, v)
	if p.countMissing(cast, &v) == 0 {
		return cast, Decided
	}
	return cast, Counted
}

// RetractVote removes the vote of a voter. isDecided reports whether those that are left decide.
// The votes given are not changed.
func (p *Policy) RetractVote(votes []Vote, voter string) (left []Vote, isDecided bool) {
	for i := range votes {
		if votes[i].Voter != voter {
			left = append(left, votes[i])
		}
	}
	return left, slices.ContainsFunc(left, func(v Vote) bool { return p.countMissing(left, &v) == 0 })
}

// CountMissing returns how many more votes like the last one decide.
func (p *Policy) CountMissing(votes []Vote) int { return p.countMissing(votes, &votes[len(votes)-1]) }

// countMissing returns how many more votes like one of the votes decide.
func (p *Policy) countMissing(votes []Vote, like *Vote) int {
	same := 0
	for i := range votes {
		other := &votes[i]
		if other.Agrees == like.Agrees && (!like.Agrees || other.isSame(like)) {
			same++
		}
	}
	if like.Agrees {
		return max(0, p.minApprovals()-same)
	}
	return max(0, p.minVetoes()-same)
}

// NeededBytes estimates how many bytes the votes take when the value of the last vote is
// decided: further voters repeat it.
func (p *Policy) NeededBytes(votes []Vote) int {
	last := &votes[len(votes)-1]
	return SizeOfVotes(votes) + p.countMissing(votes, last)*last.Size()
}

// Size returns about how many bytes the vote takes in memory.
func (v *Vote) Size() int {
	return 160 + len(v.Voter) + len(v.How) + len(v.Method) + len(v.Value) + len(v.Note) + len(v.Request) + v.Hidden.Size()
}
