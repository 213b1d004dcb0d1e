package approval

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// MaxSteps bounds the steps of a question, and MaxStepNames the users and groups of all of
// them.
const (
	MaxSteps     = 16
	MaxStepNames = 64
)

// Priority is how urgent a question is. The zero Priority is normal.
type Priority int32

// Priorities, from the least urgent on.
const (
	Low Priority = iota - 1
	Normal
	High
	Urgent
)

// Priorities returns the words for all priorities, from the least urgent on.
func Priorities() []string { return []string{"low", "normal", "high", "urgent"} }

// String returns the word for a priority.
func (p Priority) String() string {
	if p < Low || p > Urgent {
		return strconv.Itoa(int(p))
	}
	return Priorities()[p-Low]
}

// ParsePriority finds the priority of a word; "" is normal.
func ParsePriority(word string) (p Priority, ok bool) {
	if word == "" {
		return Normal, true
	}
	at := slices.Index(Priorities(), word)
	return Priority(at) + Low, at >= 0
}

// Step is what happens when a question is not decided some time after it was asked.
type Step struct {
	After time.Duration
	// Escalates lets Users and Groups answer as well. A step that does not reminds them, or
	// all who may answer when it names no user and no group.
	Escalates bool
	Users     []string
	Groups    []string
	Priority  Priority // of the question from then on; Normal = stays as it is
}

// Size returns about how many bytes the step takes in memory.
func (s *Step) Size() int {
	n := 96
	for _, names := range [][]string{s.Users, s.Groups} {
		for _, name := range names {
			n += 16 + len(name)
		}
	}
	return n
}

// CheckSteps returns what is wrong with the steps of a question with a policy, which expires
// after ttl (0 = never).
func CheckSteps(p *Policy, steps []Step, ttl time.Duration) []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	if len(steps) > MaxSteps {
		add("steps", "has %d steps, the limit is %d", len(steps), MaxSteps)
		return problems
	}
	var before time.Duration
	names := 0
	for i := range steps {
		s := &steps[i]
		names += len(s.Users) + len(s.Groups)
		at := "steps[" + strconv.Itoa(i) + "]"
		switch {
		case s.After <= before:
			add(at+".after", "is %s; want more than %s, that of the step before", s.After, before)
		case ttl > 0 && s.After >= ttl:
			add(at+".after", "is %s; want less than the %s after which the question expires", s.After, ttl)
		}
		before = max(before, s.After)
		named := Policy{Users: s.Users, Groups: s.Groups}
		for _, problem := range named.Check() {
			add(at+"."+problem.Field, "%s", problem.Text)
		}
		hasPeople := len(s.Users)+len(s.Groups) > 0
		switch {
		case s.Escalates && !hasPeople && s.Priority == Normal:
			add(at, "escalates to no one; name users or groups, or a priority")
		case s.Escalates && hasPeople && !p.namesAudience():
			add(at, "escalates to people, and everybody may answer already; say in people who may answer at first")
		}
	}
	if names > MaxStepNames {
		add("steps", "name %d users and groups together, the limit is %d", names, MaxStepNames)
	}
	return problems
}

// namesAudience reports whether certain people may answer, and no others.
func (p *Policy) namesAudience() bool { return p != nil && len(p.Users)+len(p.Groups) > 0 }

// Widen returns the policy for further people. A policy for everybody stays as it is.
func (p *Policy) Widen(users, groups []string) *Policy {
	if !p.namesAudience() || len(users)+len(groups) == 0 {
		return p
	}
	return p.Join(users, groups)
}

// Join returns the policy with further names.
func (p *Policy) Join(users, groups []string) *Policy {
	joined := *p
	joined.Users, joined.Groups = joinNames(p.Users, users), joinNames(p.Groups, groups)
	return &joined
}

func joinNames(names, more []string) []string {
	joined := slices.Clone(names)
	for _, name := range more {
		if !slices.Contains(joined, name) {
			joined = append(joined, name)
		}
	}
	return joined
}
