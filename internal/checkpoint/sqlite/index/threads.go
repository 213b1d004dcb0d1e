package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Threads lists heads by update time, or with conditions by creation time, newest first. Without a
// tenant SQLite sorts the threads of all. Errors wrap ErrUnavailable, or ErrCorrupt for a damaged
// file.
func (x *Index) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	l, err := x.newThreadList(ctx, &q)
	if err != nil {
		return nil, err
	}
	statement, args := l.headQuery()
	rows, err := x.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	return collectReadable(rows, q.Limit, func() (checkpoint.Head, error) {
		var row layout.HeadRow
		var place sql.NullInt64
		if err := rows.Scan(&row.Thread, &row.Revision, &row.Expires, &row.Record, &place); err != nil {
			return checkpoint.Head{}, err
		}
		return layout.DecodeHead(x.box, &row, x.now())
	}, q.MatchesThread, (*checkpoint.Head).Size)
}

// SkipThreads returns the place of the last of the first n threads that a query selects, zero when
// there are fewer. Errors are those of Threads.
func (x *Index) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (at checkpoint.ThreadPosition, err error) {
	l, err := x.newThreadList(ctx, &q)
	if err != nil {
		return at, err
	}
	statement, args := l.placeQuery(n - 1)
	var time sql.NullInt64
	var thread string
	err = x.db.QueryRowContext(ctx, statement, args...).Scan(&time, &thread)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return at, nil
	case err != nil:
		return at, layout.ToContractError(err)
	}
	at.Thread = thread
	if !time.Valid {
		time.Int64 = layout.ToUnixNanos(at.Time())
	}
	if q.HasConditions() {
		at.Created = layout.FromUnixNanos(time.Int64)
	} else {
		at.Updated = layout.FromUnixNanos(time.Int64)
	}
	return at, nil
}

// CountSelectedThreads returns how many threads a query selects, or atMost if it selects more.
// Errors are those of Threads.
func (x *Index) CountSelectedThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (n int, err error) {
	l, err := x.newThreadList(ctx, &q)
	if err != nil {
		return 0, err
	}
	statement, args := l.countQuery(atMost)
	if err := x.db.QueryRowContext(ctx, statement, args...).Scan(&n); err != nil {
		return 0, layout.ToContractError(err)
	}
	return n, nil
}

// maxCounted bounds how many threads are counted for a condition.
const maxCounted = 1000

// newThreadList chooses the condition of a query whose threads are read: that which the fewest
// threads meet.
func (x *Index) newThreadList(ctx context.Context, q *checkpoint.ThreadQuery) (*threadList, error) {
	all := q.Conditions()
	at := 0
	if len(all) > 1 && q.Tenant != "" {
		least := maxCounted
		for i := range all {
			n, err := x.countThreads(ctx, q.Tenant, all[i])
			if err != nil {
				return nil, err
			}
			if n < least {
				at, least = i, n
			}
		}
	}
	return x.buildThreadList(q, at), nil
}

// countThreads returns how many threads of a tenant meet a condition, at most maxCounted.
func (x *Index) countThreads(ctx context.Context, owner string, c checkpoint.ThreadCondition) (n int, err error) {
	q := &checkpoint.ThreadQuery{Tenant: owner}
	l := &threadList{}
	for _, p := range x.chosenParts(q, c) {
		l.addPart(p)
	}
	statement, args := l.countQuery(maxCounted)
	if err := x.db.QueryRowContext(ctx, statement, args...).Scan(&n); err != nil {
		return 0, layout.ToContractError(err)
	}
	return n, nil
}

// threadList is a list of threads as SQLite finds it: in one index, or in one for each form of a
// label, which it merges. An index has all that tells which threads are in the list, and their
// order.
type threadList struct {
	parts []threadPart
	args  []any
}

// threadPart is a range of an index of threads.
type threadPart struct {
	queryBuilder

	from, time string
}

func (l *threadList) addPart(p threadPart) {
	l.parts = append(l.parts, p)
	l.args = append(l.args, p.args...)
}

// buildParts returns the parts with the same selection.
func (l *threadList) buildParts(selection, join string) string {
	texts := make([]string, len(l.parts))
	for i := range l.parts {
		p := &l.parts[i]
		texts[i] = fmt.Sprintf(selection, p.time) + " FROM " + p.from + " AS k" + join
		if len(p.conditions) > 0 {
			texts[i] += " WHERE " + strings.Join(p.conditions, " AND ")
		}
	}
	return strings.Join(texts, " UNION ALL ")
}

// headQuery returns the statement that reads the heads of the list, in its order.
func (l *threadList) headQuery() (statement string, args []any) {
	return l.buildParts("SELECT k.thread, t.revision, t.lease_expires, t.head, %s", " CROSS JOIN threads AS t ON t.thread = k.thread") +
		" ORDER BY 5 DESC, 1", l.args
}

// placeQuery returns the statement that reads the place behind so many others.
func (l *threadList) placeQuery(others int) (statement string, args []any) {
	return l.buildParts("SELECT %s, k.thread", "") + " ORDER BY 1 DESC, 2 LIMIT 1 OFFSET ?", append(l.args, others)
}

// countQuery returns the statement that counts the threads of the list.
func (l *threadList) countQuery(atMost int) (statement string, args []any) {
	// A negative limit would be none.
	return "SELECT count(*) FROM (" + l.buildParts("SELECT %s", "") + " LIMIT ?)", append(l.args, max(0, atMost))
}

// buildThreadList returns the list of a query by the condition at a place, if it has conditions.
func (x *Index) buildThreadList(q *checkpoint.ThreadQuery, at int) *threadList {
	var chosen checkpoint.ThreadCondition
	others := q.Conditions()
	if len(others) > 0 {
		chosen = others[at]
		others = append(others[:at], others[at+1:]...)
	}
	l := &threadList{}
	for _, p := range x.chosenParts(q, chosen) {
		p.addPlaceAfter(q)
		x.addOthers(&p, chosen.Kind, others)
		if q.OnlyUUIDs {
			p.addUUID(q.Tenant)
		}
		l.addPart(p)
	}
	return l
}

// chosenParts returns the parts of a list by a condition, or by none.
func (x *Index) chosenParts(q *checkpoint.ThreadQuery, chosen checkpoint.ThreadCondition) []threadPart {
	if chosen.Kind == checkpoint.ConditionLabel {
		var parts []threadPart
		for _, form := range x.box.TagForms(chosen.Value) {
			p := threadPart{from: "thread_labels", time: "k.created"}
			p.addEqual("k.tenant", q.Tenant)
			p.addCondition("k.label = ?", form)
			parts = append(parts, p)
		}
		return parts
	}
	p := threadPart{from: "threads", time: "k.created"}
	p.addEqual(tenantOf("k.thread"), q.Tenant)
	if chosen.Kind == "" {
		p.time = "k.updated"
	} else {
		p.addCondition("k."+conditionColumn(chosen.Kind)+" = ?", chosen.Value)
	}
	return []threadPart{p}
}

// tenantOf returns the expression of the tenant of a thread, with which the indexes of threads
// begin.
func tenantOf(thread string) string {
	return strings.ReplaceAll(`CASE instr(_, '@') WHEN 0 THEN 'default' ELSE substr(_, 1, instr(_, '@') - 1) END`, "_", thread)
}

// addUUID adds that the id of a thread is a UUID: 32 hex digits besides the four dashes.
func (p *threadPart) addUUID(owner string) {
	id := "k.thread"
	switch owner {
	case tenant.Default:
	case "":
		id = "substr(k.thread, instr(k.thread, '@') + 1)"
	default:
		id = fmt.Sprintf("substr(k.thread, %d)", len(owner)+2)
	}
	p.addCondition(id + " GLOB '????????-????-????-????-????????????'")
	p.addCondition("length(unhex(" + id + ", '-')) = 16")
}

func conditionColumn(k checkpoint.ThreadConditionKind) string {
	if k == checkpoint.ConditionState {
		return "state"
	}
	return "graph"
}

// addPlaceAfter adds that a thread stands behind the place where the page begins.
func (p *threadPart) addPlaceAfter(q *checkpoint.ThreadQuery) {
	if q.Before == (checkpoint.ThreadPosition{}) {
		return
	}
	at := layout.ToUnixNanos(q.Before.Time())
	p.addCondition(p.time+" <= ? AND ("+p.time+" < ? OR k.thread > ?)", at, at, q.Before.Thread)
}

// addOthers adds conditions that are compared. The index of states has the graph as well. What
// else is in an index of its own is looked up there: its entries stand in the same order.
func (x *Index) addOthers(p *threadPart, chosen checkpoint.ThreadConditionKind, others []checkpoint.ThreadCondition) {
	var columns queryBuilder
	plus := ""
	if chosen != checkpoint.ConditionLabel {
		plus = "+" // by the index of the chosen condition
	}
	for _, c := range others {
		if c.Kind == checkpoint.ConditionLabel {
			x.addOtherLabel(p, c.Value)
			continue
		}
		columns.addCondition(plus+"_."+conditionColumn(c.Kind)+" = ?", c.Value)
		plus = "+"
	}
	switch conditions := strings.Join(columns.conditions, " AND "); {
	case conditions == "":
	case chosen == checkpoint.ConditionLabel:
		// With the affinity of the column the expression would not be found in the index.
		p.addCondition("EXISTS (SELECT 1 FROM threads AS o WHERE "+tenantOf("o.thread")+" = +k.tenant AND "+
			strings.ReplaceAll(conditions, "_.", "o.")+" AND o.created = k.created AND +o.thread = k.thread)", columns.args...)
	default:
		p.addCondition(strings.ReplaceAll(conditions, "_.", "k."), columns.args...)
	}
}

// addOtherLabel adds that a thread has a label, in any of its forms.
func (x *Index) addOtherLabel(p *threadPart, label string) {
	forms := x.box.TagForms(label)
	args := make([]any, len(forms))
	for i, form := range forms {
		args[i] = form
	}
	p.addCondition("EXISTS (SELECT 1 FROM thread_labels AS o WHERE o.tenant = "+tenantOf("k.thread")+
		" AND o.label IN (?"+strings.Repeat(", ?", len(forms)-1)+") AND o.created = k.created AND o.thread = k.thread)", args...)
}
