package checkpoint

import (
	"context"
	"math"
	"slices"

	"github.com/graphd-dev/graphd/internal/approval"
)

// A tag is a property by which open interrupts are listed and counted. A store keeps the
// open interrupts of each tenant in order by tag, so that a list costs what it shows. A
// store compares tags, and takes nothing from their text.

// OpenTag is the tag of all open interrupts. It is counted, and finds none.
const OpenTag = "open"

// GraphTag is the tag of interrupts of a graph.
func GraphTag(graph string) string { return "graph:" + graph }

// UserTag is the tag of interrupts that a user should answer.
func UserTag(user string) string { return "user:" + user }

// GroupTag is the tag of interrupts that the members of a group should answer.
func GroupTag(group string) string { return "group:" + group }

// ClaimTag is the tag of interrupts that a principal has claimed. A claim that has ended
// keeps the tag until the interrupt changes.
func ClaimTag(holder string) string { return "claim:" + holder }

// PriorityTag is the tag of interrupts of a priority.
func PriorityTag(p approval.Priority) string { return "priority:" + p.String() }

// Tags returns the tags by which a store finds an interrupt, sorted. Only an open interrupt has
// some; one of approval.Normal is not found by its priority, since most are.
func (i *Interrupt) Tags() []string {
	if i.State != InterruptOpen {
		return nil
	}
	tags := i.listProperties()
	if i.Priority == approval.Normal {
		tags = slices.DeleteFunc(tags, func(tag string) bool { return tag == PriorityTag(approval.Normal) })
	}
	return tags
}

// listProperties returns the tags of all properties of an interrupt, in any state, sorted.
func (i *Interrupt) listProperties() []string {
	tags := make([]string, 0, 4)
	tags = append(tags, GraphTag(i.Graph), PriorityTag(i.Priority))
	if i.ClaimedBy != "" {
		tags = append(tags, ClaimTag(i.ClaimedBy))
	}
	changes := i.PropertyChanges()
	users, groups := [][]string{i.Assignees, changes.AddedUsers}, [][]string{changes.AddedGroups}
	for _, d := range changes.Delegations {
		users = append(users, []string{d.To})
	}
	if i.Policy != nil {
		users, groups = append(users, i.Policy.Users), append(groups, i.Policy.Groups)
	}
	for _, names := range users {
		for _, name := range names {
			tags = append(tags, UserTag(name))
		}
	}
	for _, names := range groups {
		for _, name := range names {
			tags = append(tags, GroupTag(name))
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// ChangeProperties makes a change of the assignees, the delegations, the priority, or those to
// whom the interrupt was escalated, and keeps what it had before in Former.
func (i *Interrupt) ChangeProperties(change func(*PropertyChanges)) {
	before, changes := i.listProperties(), i.PropertyChanges()
	change(&changes)
	i.SetPropertyChanges(changes)
	now := i.listProperties()
	former := make([]string, 0, len(before)+len(changes.Former))
	for _, tag := range append(before, changes.Former...) { // the newest first
		if tag != ClaimTag(i.ClaimedBy) && !slices.Contains(now, tag) && !slices.Contains(former, tag) {
			former = append(former, tag)
		}
	}
	changes.Former = former[:min(len(former), maxFormer)]
	i.SetPropertyChanges(changes)
}

// maxFormer bounds Former. A watch is not told that a question has left it for a property
// beyond.
const maxFormer = 256

// hasProperties reports whether an interrupt has the properties of all of some tags, and of one
// of others unless there are none.
func (i *Interrupt) hasProperties(all, one []string) bool {
	return len(all)+len(one) == 0 || hasTags(i.listProperties(), all, one)
}

// hadProperties reports whether hasProperties holds with the properties that the interrupt has
// had before.
func (i *Interrupt) hadProperties(all, one []string) bool {
	return len(all)+len(one) == 0 || hasTags(append(i.listProperties(), i.PropertyChanges().Former...), all, one)
}

func hasTags(tags, all, one []string) bool {
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	for _, tag := range all {
		if !has(tag) {
			return false
		}
	}
	return len(one) == 0 || slices.ContainsFunc(one, has)
}

// ChooseTags returns the condition on tags of a query that the fewest interrupts meet, and the
// others: of each, an interrupt needs one of the tags. There is none without Tags and AnyTag. It
// counts where there are several, and the tenant is known. The error is that of counter.
func (q *InterruptQuery) ChooseTags(ctx context.Context, counter TagCounter) (rarest []string, others [][]string, err error) {
	conditions := make([][]string, 0, len(q.Tags)+1)
	for _, tag := range q.Tags {
		conditions = append(conditions, []string{tag})
	}
	if len(q.AnyTag) > 0 {
		conditions = append(conditions, q.AnyTag)
	}
	switch {
	case len(conditions) == 0:
		return nil, nil, nil
	case len(conditions) == 1 || q.Tenant == "":
		return conditions[0], conditions[1:], nil
	}
	counts, err := counter.CountTags(ctx, q.Tenant, slices.Concat(conditions...))
	if err != nil {
		return nil, nil, err
	}
	at, least := 0, math.MaxInt
	for i, tags := range conditions {
		sum := 0
		for _, n := range counts[:len(tags)] {
			sum += n
		}
		if counts = counts[len(tags):]; sum < least {
			at, least = i, sum
		}
	}
	rarest = conditions[at]
	return rarest, slices.Delete(conditions, at, at+1), nil
}
