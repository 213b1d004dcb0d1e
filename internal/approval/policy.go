// Package approval decides who may answer a question of a graph, and when the answers of
// several people are one decision. It has no state and does no I/O: the runtime calls it
// in the change that stores an answer.
package approval

import (
	"fmt"
	"slices"
	"strconv"
)

// Bounds of a policy.
const (
	MaxAudience   = 16 // users and groups together
	MaxAssignees  = 1000
	MaxVotes      = 100 // approvals, and vetoes
	MaxNameLength = 256 // bytes of a user, a group, or a requester
	// MaxVoteBytes bounds the votes of a question that is open, with those that its
	// approval still takes, as NeededBytes estimates them.
	MaxVoteBytes = 1 << 20
)

// Policy says who may answer a question, and how many must. The zero Policy lets everybody
// answer, and the first answer decides.
type Policy struct {
	// Users and Groups name who may answer: a user of Users, or a member of one of Groups.
	// Both empty = everybody.
	Users  []string
	Groups []string
	// Approvals is how many agreeing votes for one value decide; 0 = 1.
	Approvals int
	// Vetoes is how many votes that do not agree decide; 0 = 1.
	Vetoes int
	// Agree is a CEL condition over `answer`: whether an answer agrees. "" = every answer
	// does. A dismissal never agrees.
	Agree string
	// NotRequester refuses the vote of the Requester.
	NotRequester bool
	Requester    string // who wants what is asked for; "" = not known
	// NotContributor refuses the votes of those who have edited the state since the run began.
	NotContributor bool
	// Exclusive refuses the vote of everybody but the one who has claimed the question.
	Exclusive bool
	// Delegable lets those who may answer name another user who answers in their place.
	Delegable bool
	// RevealUsers and RevealGroups name who may see the secret parts. Both empty = who may
	// answer.
	RevealUsers  []string
	RevealGroups []string
}

// IsZero reports whether the policy demands nothing.
func (p *Policy) IsZero() bool {
	return p == nil || len(p.Users) == 0 && len(p.Groups) == 0 && p.minApprovals() == 1 && p.minVetoes() == 1 &&
		p.Agree == "" && !p.NotRequester && p.Requester == "" && !p.NotContributor && !p.Exclusive && !p.Delegable &&
		!p.NamesRevealers()
}

// NeedsCallers reports whether the policy can be kept only by a server that knows who
// calls.
func (p *Policy) NeedsCallers() bool {
	return p != nil && (len(p.Users) > 0 || len(p.Groups) > 0 || p.minApprovals() > 1 || p.minVetoes() > 1 || p.NotRequester || p.NotContributor || p.Exclusive || p.Delegable || p.NamesRevealers())
}

func (p *Policy) minApprovals() int { return max(p.Approvals, 1) }

func (p *Policy) minVetoes() int { return max(p.Vetoes, 1) }

// Equal reports whether two policies demand the same.
func (p *Policy) Equal(other *Policy) bool {
	if p.IsZero() || other.IsZero() {
		return p.IsZero() == other.IsZero()
	}
	return slices.Equal(p.Users, other.Users) && slices.Equal(p.Groups, other.Groups) &&
		p.minApprovals() == other.minApprovals() && p.minVetoes() == other.minVetoes() && p.Agree == other.Agree &&
		p.NotRequester == other.NotRequester && p.Requester == other.Requester && p.NotContributor == other.NotContributor &&
		p.Exclusive == other.Exclusive && p.Delegable == other.Delegable &&
		slices.Equal(p.RevealUsers, other.RevealUsers) && slices.Equal(p.RevealGroups, other.RevealGroups)
}

// Problem is what is wrong with a field of a policy.
type Problem struct {
	Field string // like "users[1]"
	Text  string
}

// Check returns what is wrong with the policy, whatever Agree says.
func (p *Policy) Check() []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	if n := len(p.Users) + len(p.Groups); n > MaxAudience {
		add("users", "users and groups have %d names together, the limit is %d", n, MaxAudience)
	}
	if n := len(p.RevealUsers) + len(p.RevealGroups); n > MaxAudience {
		add("reveal.users", "users and groups have %d names together, the limit is %d", n, MaxAudience)
	}
	checkNames := func(field string, names []string) {
		for i, name := range names[:min(len(names), MaxAudience+1)] {
			at := field + "[" + strconv.Itoa(i) + "]"
			switch {
			case name == "" || len(name) > MaxNameLength:
				add(at, "has %d bytes; want 1 to %d", len(name), MaxNameLength)
			case slices.Contains(names[:i], name):
				add(at, "%q stands there twice", name)
			}
		}
	}
	checkNames("users", p.Users)
	checkNames("groups", p.Groups)
	checkNames("reveal.users", p.RevealUsers)
	checkNames("reveal.groups", p.RevealGroups)
	for _, n := range []struct {
		field string
		value int
	}{{"approvals", p.Approvals}, {"vetoes", p.Vetoes}} {
		if n.value < 0 || n.value > MaxVotes {
			add(n.field, "is %d; want 1 to %d", n.value, MaxVotes)
		}
	}
	if n := p.countUsers(); len(p.Users) > 0 && len(p.Groups) == 0 && p.minApprovals() > n {
		add("approvals", "is %d, and users names %d who may answer", p.minApprovals(), n)
	}
	if p.Delegable && len(p.Users)+len(p.Groups) == 0 {
		add("delegable", "has no use without users or groups: everybody may answer already")
	}
	if len(p.Requester) > MaxNameLength {
		add("requester", "has %d bytes; the limit is %d", len(p.Requester), MaxNameLength)
	}
	return problems
}

// countUsers returns how many of the users may answer.
func (p *Policy) countUsers() int {
	if p.NotRequester && slices.Contains(p.Users, p.Requester) {
		return len(p.Users) - 1
	}
	return len(p.Users)
}

// String says in words who may answer, and how many must.
func (p *Policy) String() string {
	if p.IsZero() {
		return "anybody"
	}
	text := "anybody"
	if audience := nameAudience(p.Users, p.Groups); audience != "" {
		text = audience
	}
	if n := p.minApprovals(); n > 1 {
		text = strconv.Itoa(n) + " of " + text
	}
	if n := p.minVetoes(); n > 1 {
		text += "; " + strconv.Itoa(n) + " vetoes"
	}
	if p.Agree != "" {
		text += "; agrees when " + p.Agree
	}
	if p.NotRequester {
		text += "; not " + strconv.Quote(p.Requester) + ", who has asked for it"
	}
	if p.NotContributor {
		text += "; nobody who has edited the state"
	}
	if p.Delegable {
		text += "; or a delegate"
	}
	if p.Exclusive {
		text += "; only who has claimed it"
	}
	if p.NamesRevealers() {
		text += "; secret parts are for " + nameAudience(p.RevealUsers, p.RevealGroups)
	}
	return text
}

// Accepts reports whether answers that were given under the policy may be used where now is
// demanded. A requester that now does not name is the one that the policy was completed
// with.
func (p *Policy) Accepts(now *Policy) bool {
	if p.IsZero() || now.IsZero() || now.Requester != "" {
		return p.Equal(now)
	}
	completed := *now
	completed.Requester = p.Requester
	return p.Equal(&completed)
}

// Size returns about how many bytes the policy takes in memory.
func (p *Policy) Size() int {
	if p == nil {
		return 0
	}
	n := 128 + len(p.Agree) + len(p.Requester)
	for _, names := range [][]string{p.Users, p.Groups, p.RevealUsers, p.RevealGroups} {
		for _, name := range names {
			n += 16 + len(name)
		}
	}
	return n
}

// SizeOfVotes returns about how many bytes votes take in memory.
func SizeOfVotes(votes []Vote) int {
	n := 0
	for i := range votes {
		v := &votes[i]
		n += v.Size()
	}
	return n
}
