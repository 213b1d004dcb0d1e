// Package index lists threads, interrupts of all threads, and due threads.
package index

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// An Index reads durable records of all threads.
type Index struct {
	db  *sql.DB
	due *sql.Stmt
	// interrupts reads those that are named, in order, and tagCount how many have a tag.
	interrupts, tagCount *sql.Stmt
	latestChange         *sql.Stmt
	queries              *preparedQueries
	box                  *seal.Box
	now                  func() time.Time
}

// New makes an index that uses connections of their own for as long as ctx lives.
// Errors wrap checkpoint.ErrUnavailable or ErrCorrupt.
func New(ctx context.Context, db *sql.DB, box *seal.Box, now func() time.Time) (*Index, error) {
	p := layout.NewPreparer(func(q string) (*sql.Stmt, error) { return db.PrepareContext(ctx, q) })
	x := &Index{
		db: db, queries: newPreparedQueries(db), box: box, now: now,
		due: p.PrepareStatement(`SELECT thread, wake FROM threads WHERE wake IS NOT NULL ORDER BY wake, thread`),
		interrupts: p.PrepareStatement(`SELECT i.thread, i.id, i.change, i.revision, i.record FROM json_each(?) AS k
			CROSS JOIN interrupts AS i WHERE i.thread = k.value ->> 0 AND i.id = k.value ->> 1`),
		latestChange: p.PrepareStatement(`SELECT value FROM meta WHERE key = 'last_change'`),
		tagCount:     p.PrepareStatement(`SELECT open FROM tag_counts WHERE tenant = ? AND tag = ?`),
	}
	return x, p.Err()
}

// queryBuilder puts a query together from conditions that are asked for.
type queryBuilder struct {
	conditions []string
	args       []any
}

func (f *queryBuilder) addCondition(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

func (f *queryBuilder) addEqual(column, value string) {
	if value != "" {
		f.addCondition(column+" = ?", value)
	}
}

func (f *queryBuilder) buildQuery(selection, order string) string {
	if len(f.conditions) == 0 {
		return selection + " ORDER BY " + order
	}
	return selection + " WHERE " + strings.Join(f.conditions, " AND ") + " ORDER BY " + order
}

// Interrupts lists interrupts over all threads. Without a tenant SQLite sorts those of all.
// Errors wrap ErrUnavailable, or ErrCorrupt for a damaged file.
func (x *Index) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) ([]checkpoint.Interrupt, error) {
	if q.UsesTags() {
		return x.listTagged(ctx, &q)
	}
	statement, args := buildInterruptQuery(&q)
	rows, err := x.queries.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	return collectReadable(rows, q.Limit, func() (checkpoint.Interrupt, error) {
		return layout.ScanInterrupt(x.box, rows)
	}, q.MatchesInterrupt, (*checkpoint.Interrupt).Size)
}

// LatestChange returns the number of the last change of any interrupt. Errors wrap
// ErrUnavailable, or ErrCorrupt for a damaged file.
func (x *Index) LatestChange(ctx context.Context) (n uint64, err error) {
	if err := x.latestChange.QueryRowContext(ctx).Scan(&n); err != nil {
		return 0, layout.ToContractError(err)
	}
	return n, nil
}

// buildInterruptQuery returns the statement that answers a query, and its arguments.
func buildInterruptQuery(q *checkpoint.InterruptQuery) (statement string, args []any) {
	var f queryBuilder
	plus := ""
	if q.Thread != "" {
		plus = "+" // by the thread's rows, which are few, not by an index over all threads
	}
	f.addEqual(plus+"tenant", q.Tenant)
	f.addEqual("thread", q.Thread)
	f.addEqual("run", q.Run)
	f.addEqual("node", q.Node)
	f.addEqual("reason", q.Reason)
	if len(q.States) > 0 {
		states := make([]any, len(q.States))
		for i, st := range q.States {
			states[i] = string(st)
		}
		f.addCondition(plus+"state IN (?"+strings.Repeat(", ?", len(states)-1)+")", states...)
	}
	order := plus + "created, thread, id"
	if q.ByChange {
		order = plus + "change"
		f.addCondition(plus+"change > ?", layout.ClampInt64(q.After.Change))
	} else if q.After != (checkpoint.InterruptPosition{}) {
		f.addCondition("("+plus+"created, thread, id) > (?, ?, ?)", layout.ToUnixNanos(q.After.Created), q.After.Thread, q.After.ID)
	}
	return f.buildQuery(`SELECT thread, id, change, revision, record FROM interrupts`, order), f.args
}

// countOpenInterrupts counts up to a number of rows.
const countOpenInterrupts = `SELECT count(*) FROM (SELECT 1 FROM interrupts WHERE tenant = ? AND state = 'open' LIMIT ?)`

// CountThreads returns how many threads a tenant has, or atMost if it has more. Errors wrap
// ErrUnavailable, or ErrCorrupt for a damaged file.
func (x *Index) CountThreads(ctx context.Context, owner string, atMost int) (int, error) {
	if owner == "" {
		return 0, nil // no thread is of it, and a query without a tenant selects those of all
	}
	return x.CountSelectedThreads(ctx, checkpoint.ThreadQuery{Tenant: owner}, atMost)
}

// CountOpenInterrupts returns how many interrupts of a tenant are open, or atMost if more
// are. Errors are those of CountThreads.
func (x *Index) CountOpenInterrupts(ctx context.Context, owner string, atMost int) (n int, err error) {
	err = x.db.QueryRowContext(ctx, countOpenInterrupts, owner, max(0, atMost)).Scan(&n) // a negative limit would be none
	if err != nil {
		return 0, layout.ToContractError(err)
	}
	return n, nil
}

// collectReadable reads up to limit records that fit and leaves out corrupt
// records: a bad record must not hide the others.
func collectReadable[T any](
	rows *sql.Rows, limit int, scan func() (T, error), fits func(*T) bool, size func(*T) int,
) (out []T, err error) {
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		v, err := scan()
		if errors.Is(err, checkpoint.ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, layout.ToContractError(errors.Join(err, rows.Close()))
		}
		if fits(&v) {
			portion.Take(size(&v))
			out = append(out, v)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, layout.ToContractError(err)
	}
	return out, nil
}

// Due lists threads that a server should look at. Errors wrap ErrUnavailable or
// ErrCorrupt.
func (x *Index) Due(ctx context.Context, limit int) (threads []string, next time.Time, err error) {
	now := layout.ToUnixNanos(x.now())
	rows, err := x.due.QueryContext(ctx)
	if err != nil {
		return nil, time.Time{}, layout.ToContractError(err)
	}
	for rows.Next() {
		var thread string
		var wake int64
		if err := rows.Scan(&thread, &wake); err != nil {
			return nil, time.Time{}, layout.ToContractError(errors.Join(err, rows.Close()))
		}
		if wake > now || (limit > 0 && len(threads) == limit) {
			next = layout.FromUnixNanos(wake)
			break
		}
		threads = append(threads, thread)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, time.Time{}, layout.ToContractError(err)
	}
	return threads, next, nil
}
