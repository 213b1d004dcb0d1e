package index

import (
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// Threads lists heads by update time, or with conditions by creation time, newest first. Without a
// tenant SQLite sorts the threads of all. Errors wrap ErrUnavailable, or ErrCorrupt for a damaged
// file.
func (x *Index) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	chosen, others, err := x.chooseConditions(ctx, &q)
	if err != nil {
		return nil, err
	}
	statement, args := x.buildThreadQuery(&q, chosen, others)
	rows, err := x.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	return collectReadable(rows, q.Limit, func() (checkpoint.Head, error) {
		var row layout.HeadRow
		var place int64
		if err := rows.Scan(&row.Thread, &row.Revision, &row.Expires, &row.Record, &place); err != nil {
			return checkpoint.Head{}, err
		}
		return layout.DecodeHead(x.box, &row, x.now())
	}, q.MatchesThread, (*checkpoint.Head).Size)
}

// maxCounted bounds how many threads are counted for a condition.
const maxCounted = 1000

// chooseConditions returns the condition of a query that the fewest threads meet, and the others.
func (x *Index) chooseConditions(
	ctx context.Context, q *checkpoint.ThreadQuery,
) (chosen checkpoint.ThreadCondition, others []checkpoint.ThreadCondition, err error) {
	all := q.Conditions()
	switch {
	case len(all) == 0:
		return chosen, nil, nil
	case len(all) == 1 || q.Tenant == "":
		return all[0], all[1:], nil
	}
	at, least := 0, maxCounted
	for i, c := range all {
		n, err := x.countThreads(ctx, q.Tenant, c)
		if err != nil {
			return chosen, nil, err
		}
		if n < least {
			at, least = i, n
		}
	}
	chosen = all[at]
	return chosen, slices.Delete(all, at, at+1), nil
}

// countThreads returns how many threads of a tenant meet a condition, at most maxCounted.
func (x *Index) countThreads(ctx context.Context, owner string, c checkpoint.ThreadCondition) (n int, err error) {
	var f queryBuilder
	f.addEqual("tenant", owner)
	from := "threads"
	if c.Kind == checkpoint.ConditionLabel {
		from = "thread_labels"
		f.addLabel("label", x.box.TagForms(c.Value))
	} else {
		f.addEqual(conditionColumn(c.Kind), c.Value)
	}
	statement := "SELECT count(*) FROM (SELECT 1 FROM " + from + " WHERE " + strings.Join(f.conditions, " AND ") + " LIMIT ?)"
	if err := x.db.QueryRowContext(ctx, statement, append(f.args, maxCounted)...).Scan(&n); err != nil {
		return 0, layout.ToContractError(err)
	}
	return n, nil
}

func conditionColumn(k checkpoint.ThreadConditionKind) string {
	if k == checkpoint.ConditionState {
		return "state"
	}
	return "graph"
}

// addLabel adds a condition on the forms of a label.
func (f *queryBuilder) addLabel(column string, forms []string) {
	args := make([]any, len(forms))
	for i, form := range forms {
		args[i] = form
	}
	f.addCondition(column+" IN (?"+strings.Repeat(", ?", len(forms)-1)+")", args...)
}

const threadColumns = ".thread, t.revision, t.lease_expires, t.head, "

// buildThreadQuery returns the statement that answers a query by a chosen condition, and its
// arguments. SQLite reads an index in the order of the list; it merges the forms of a label.
func (x *Index) buildThreadQuery(
	q *checkpoint.ThreadQuery, chosen checkpoint.ThreadCondition, others []checkpoint.ThreadCondition,
) (statement string, args []any) {
	switch chosen.Kind {
	case "":
		var f queryBuilder
		f.addEqual("t.tenant", q.Tenant)
		f.addPlaceAfter(q, "t.updated", "t.thread")
		return f.buildQuery("SELECT t"+threadColumns+"t.updated FROM threads AS t", "t.updated DESC, t.thread"), f.args
	case checkpoint.ConditionLabel:
		var parts []string
		for _, form := range x.box.TagForms(chosen.Value) {
			var f queryBuilder
			f.addEqual("l.tenant", q.Tenant)
			f.addCondition("l.label = ?", form)
			f.addPlaceAfter(q, "l.created", "l.thread")
			x.addOthers(&f, others)
			parts = append(parts, "SELECT l"+threadColumns+"l.created FROM thread_labels AS l CROSS JOIN threads AS t ON t.thread = l.thread WHERE "+
				strings.Join(f.conditions, " AND "))
			args = append(args, f.args...)
		}
		return strings.Join(parts, " UNION ALL ") + " ORDER BY 5 DESC, 1", args
	default:
		var f queryBuilder
		f.addEqual("t.tenant", q.Tenant)
		f.addCondition("t."+conditionColumn(chosen.Kind)+" = ?", chosen.Value)
		f.addPlaceAfter(q, "t.created", "t.thread")
		x.addOthers(&f, others)
		return f.buildQuery("SELECT t"+threadColumns+"coalesce(t.created, 0) FROM threads AS t", "t.created DESC, t.thread"), f.args
	}
}

// addPlaceAfter adds that a thread stands behind the place where the page begins.
func (f *queryBuilder) addPlaceAfter(q *checkpoint.ThreadQuery, time, thread string) {
	if q.Before == (checkpoint.ThreadPosition{}) {
		return
	}
	at := layout.ToUnixNanos(q.Before.Time())
	f.addCondition(time+" <= ? AND ("+time+" < ? OR "+thread+" > ?)", at, at, q.Before.Thread)
}

// addOthers adds conditions that are compared, and not found by an index of their own.
func (x *Index) addOthers(f *queryBuilder, others []checkpoint.ThreadCondition) {
	for _, c := range others {
		if c.Kind != checkpoint.ConditionLabel {
			f.addCondition("+t."+conditionColumn(c.Kind)+" = ?", c.Value)
			continue
		}
		var o queryBuilder
		o.addLabel("o.label", x.box.TagForms(c.Value))
		f.addCondition("EXISTS (SELECT 1 FROM thread_labels AS o WHERE o.tenant = t.tenant AND "+o.conditions[0]+
			" AND o.created = t.created AND o.thread = t.thread)", o.args...)
	}
}
