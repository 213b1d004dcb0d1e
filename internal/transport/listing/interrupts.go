package listing

import (
	"slices"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// InterruptFilter is a filter of interrupts: what the store finds by its indexes, and what is
// compared with what it found.
type InterruptFilter struct {
	Query checkpoint.InterruptQuery

	compared   checkpoint.InterruptQuery // node, reason and priority
	holder     string                    // who has claimed them, "" = does not matter
	mine       string                    // whose they are, "" = does not matter
	conditions []condition
	field      string // of the request, which has the filter
}

// The years of times that all stores put in order.
const (
	minDueYear = 1678
	maxDueYear = 2261
)

// ParseInterruptFilter converts a filter of the interrupts of the request's tenant, and of a
// thread if it is not "". caller is who asks, zero = not known; fallback are the states for a
// filter without a state. Violations name the field of the request that has the filter.
func ParseInterruptFilter(
	v *wire.Validator, field, filter, thread string, caller runtime.Actor, fallback ...checkpoint.InterruptState,
) InterruptFilter {
	f := InterruptFilter{field: field, Query: checkpoint.InterruptQuery{Tenant: v.Tenant(), Thread: thread, States: fallback}}
	f.conditions = parseFilterField(v, field, filter, "state", "graph", "node", "reason", "assignee", "group", "claimed_by", "priority",
		"mine", dueField, "thread_id", "run_id")
	for _, c := range f.conditions {
		f.addCondition(v, c, thread, caller)
	}
	if f.Query.ByDue && f.Query.Thread != "" {
		v.AddViolation(f.field, "due is of all threads: leave thread_id out")
	}
	return f
}

func (f *InterruptFilter) addCondition(v *wire.Validator, c condition, thread string, caller runtime.Actor) {
	q := &f.Query
	switch c.Field {
	case "state":
		q.States = nil
		if c.Value != anyState {
			s := parseFilterState(v, f.field, graphdv1.InterruptState_value, "INTERRUPT_STATE_", c.Value)
			q.States = []checkpoint.InterruptState{checkpoint.InterruptState(s)}
			if q.States[0] == checkpoint.InterruptAnswered {
				q.States = append(q.States, checkpoint.InterruptRetractable)
			}
		}
	case "graph":
		q.Tags = append(q.Tags, checkpoint.GraphTag(v.CheckFilterName(f.field, c.Value)))
	case "assignee":
		q.Tags = append(q.Tags, checkpoint.UserTag(c.Value))
	case "group":
		q.Tags = append(q.Tags, checkpoint.GroupTag(c.Value))
	case "claimed_by":
		f.holder = c.Value
		q.Tags = append(q.Tags, checkpoint.ClaimTag(c.Value))
	case "priority":
		f.addPriority(v, c.Value)
	case "mine":
		f.addMine(v, c.Value, caller)
	case dueField:
		before, err := time.Parse(time.RFC3339Nano, c.Value)
		if err != nil || before.Year() < minDueYear || before.Year() > maxDueYear {
			v.AddViolation(f.field, `due must be a time like "2026-03-17T12:00:00Z", of the years %d to %d`, minDueYear, maxDueYear)
		}
		q.ByDue, q.DueBefore = true, before
	case "node":
		f.compared.Node = c.Value
	case "reason":
		f.compared.Reason = c.Value
	case "thread_id":
		q.Thread = v.CheckFilterName(f.field, c.Value)
		if thread != "" && thread != q.Thread {
			v.AddViolation(f.field, "thread_id differs from the request's thread_id")
		}
	case "run_id":
		q.Run = c.Value
	}
}

func (f *InterruptFilter) addPriority(v *wire.Validator, value string) {
	word := strings.TrimPrefix(strings.ToLower(value), "priority_")
	p, ok := approval.ParsePriority(word)
	if !ok || word == "" {
		v.AddViolation(f.field, "priority must be one of %s", strings.ToUpper(strings.Join(approval.Priorities(), ", ")))
		return
	}
	if tag := checkpoint.PriorityTag(p); p == approval.Normal {
		f.compared.Tags = append(f.compared.Tags, tag)
	} else {
		f.Query.Tags = append(f.Query.Tags, tag)
	}
}

func (f *InterruptFilter) addMine(v *wire.Validator, value string, caller runtime.Actor) {
	switch {
	case value != "true":
		v.AddViolation(f.field, `mine can only be "true"`)
		return
	case caller.Name == "":
		v.AddViolation(f.field, "mine needs a server that knows its callers; name a user with assignee, or a group with group")
		return
	}
	f.mine = caller.Name
	f.Query.AnyTag = append(f.Query.AnyTag, checkpoint.UserTag(caller.Name), checkpoint.ClaimTag(caller.Name))
	for _, group := range caller.Groups {
		f.Query.AnyTag = append(f.Query.AnyTag, checkpoint.GroupTag(group))
	}
}

// OrderBy sets the order of the list.
func (f *InterruptFilter) OrderBy(v *wire.Validator, order string) {
	switch order {
	case "":
	case "create_time":
		if f.Query.ByDue {
			v.AddViolation("order_by", "a condition on due lists by due_time")
		}
	case "due_time":
		f.Query.ByDue = true
		if f.Query.Thread != "" {
			v.AddViolation("order_by", "the order of due_time is that of all threads: leave thread_id out")
		}
	default:
		v.AddViolation("order_by", `must be "create_time" or "due_time"`)
	}
}

// RequireWatchIndex refuses a watch whose open interrupts no index finds, and one of claims: a
// change that ends a claim has no trace of it.
func (f *InterruptFilter) RequireWatchIndex(v *wire.Validator) {
	if f.holder != "" {
		v.AddViolation(f.field, "claimed_by can't be watched: watch a graph or a group, and look at claimed_by of the questions")
	}
	if f.mine != "" {
		claim := checkpoint.ClaimTag(f.mine)
		f.Query.AnyTag = slices.DeleteFunc(f.Query.AnyTag, func(tag string) bool { return tag == claim })
	}
	states := f.Query.States
	if len(states) == 0 {
		f.Query.States = []checkpoint.InterruptState{checkpoint.InterruptOpen}
	}
	f.RequireIndex(v)
	f.Query.States = states
}

// RequireIndex refuses a list that no index finds.
func (f *InterruptFilter) RequireIndex(v *wire.Validator) {
	q := &f.Query
	if q.Thread != "" {
		return
	}
	if q.Run != "" {
		v.AddViolation(f.field, "run_id needs thread_id")
	}
	hasTags := len(q.Tags)+len(q.AnyTag) > 0 || q.ByDue
	isOpen := len(q.States) == 1 && q.States[0] == checkpoint.InterruptOpen
	if hasTags && !isOpen {
		v.AddViolation(f.field, "only open questions are found by graph, assignee, group, claimed_by, priority, mine or due: "+
			"leave state out, or name the thread_id")
	}
	if !hasTags && (f.compared.Node != "" || f.compared.Reason != "" || len(f.compared.Tags) > 0) {
		v.AddViolation(f.field, "no index finds questions by node, reason or the priority NORMAL alone: "+
			"name the graph, or another of assignee, group, claimed_by, mine, due and thread_id")
	}
}

// Compares reports whether Matches may refuse what the store found.
func (f *InterruptFilter) Compares() bool {
	c := &f.compared
	return c.Node != "" || c.Reason != "" || len(c.Tags) > 0 || f.holder != "" || f.mine != ""
}

// Matches reports whether the filter selects an interrupt that the store found. A claim that
// has ended by now is none.
func (f *InterruptFilter) Matches(in *checkpoint.Interrupt, now time.Time) bool {
	if !f.compared.MatchesInterrupt(in) {
		return false
	}
	if in.ClaimedBy == "" || in.ClaimHolder(now) != "" {
		return true
	}
	if f.holder != "" {
		return false
	}
	if f.mine == "" {
		return true
	}
	others := checkpoint.InterruptQuery{AnyTag: slices.DeleteFunc(slices.Clone(f.Query.AnyTag), func(tag string) bool {
		return tag == checkpoint.ClaimTag(f.mine)
	})}
	return others.MatchesInterrupt(in)
}

// MayHaveMatched reports whether a watch may have shown an interrupt that the filter does not
// select any more.
func (f *InterruptFilter) MayHaveMatched(in *checkpoint.Interrupt) bool {
	all := f.Query
	all.Node, all.Reason, all.Tags = f.compared.Node, f.compared.Reason, slices.Concat(f.Query.Tags, f.compared.Tags)
	return all.MayHaveSelected(in)
}

// CountsClaims reports whether a count has claims, among which there may be some that have ended.
func (f *InterruptFilter) CountsClaims() bool { return f.holder != "" || f.mine != "" }

// CountedTags returns the tags of which one is counted, none = all open interrupts are. It
// refuses a filter that needs more than counters.
func (f *InterruptFilter) CountedTags(v *wire.Validator) []string {
	q := &f.Query
	isView := len(f.conditions) == 0 || len(f.conditions) == 1 && len(q.Tags)+len(q.AnyTag) > 0
	if !isView {
		v.AddViolation(f.field, "must be empty, or one condition on graph, assignee, group, claimed_by, mine or a priority other than NORMAL")
	}
	return append(slices.Clone(q.Tags), q.AnyTag...)
}
