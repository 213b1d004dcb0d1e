package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// filter puts a query together from conditions that are asked for.
type filter struct {
	where []string
	args  []any
}

func (f *filter) add(condition string, args ...any) {
	f.where = append(f.where, condition)
	f.args = append(f.args, args...)
}

func (f *filter) equal(column, value string) {
	if value != "" {
		f.add(column+" = ?", value)
	}
}

// within is a condition on the members of a field of a record. Of a record that
// is no JSON, which may be a sealed one, it says nothing.
func within(column, field, condition string) string {
	return "CASE WHEN json_valid(" + column + ") THEN EXISTS (SELECT 1 FROM json_each(" + column +
		", '$." + field + "') AS j WHERE " + condition + ") ELSE 1 END"
}

func (f *filter) sql(selection, order string) string {
	if len(f.where) == 0 {
		return selection + " ORDER BY " + order
	}
	return selection + " WHERE " + strings.Join(f.where, " AND ") + " ORDER BY " + order
}

// Threads lists heads by update time, newest first.
func (s *Store) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	var f filter
	f.equal("state", string(q.State))
	f.equal("graph", q.Graph)
	for k, v := range q.Metadata {
		f.add(within("head", "metadata", "j.key = ? AND j.value = ?"), k, v)
	}
	if q.Before != (checkpoint.ThreadPosition{}) {
		at := nanos(q.Before.Updated)
		f.add(`updated <= ? AND (updated < ? OR thread > ?)`, at, at, q.Before.Thread)
	}
	rows, err := s.reads.QueryContext(ctx,
		f.sql(`SELECT thread, revision, lease_expires, head FROM threads`, `updated DESC, thread`), f.args...)
	if err != nil {
		return nil, failed(err)
	}
	return readable(rows, q.Limit, func() (checkpoint.Head, error) {
		var thread, record string
		var revision uint64
		var expires sql.NullInt64
		if err := rows.Scan(&thread, &revision, &expires, &record); err != nil {
			return checkpoint.Head{}, err
		}
		return s.decodeHead(thread, revision, expires, record)
	}, func(h *checkpoint.Head) bool {
		for k, v := range q.Metadata {
			if got, ok := h.Metadata[k]; !ok || got != v {
				return false
			}
		}
		return true
	}, (*checkpoint.Head).Size)
}

// Interrupts lists questions over all threads.
func (s *Store) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) ([]checkpoint.Interrupt, error) {
	statement, args := questions(&q)
	rows, err := s.reads.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, failed(err)
	}
	return readable(rows, q.Limit, func() (checkpoint.Interrupt, error) {
		return s.scanInterrupt(rows)
	}, func(in *checkpoint.Interrupt) bool {
		return q.Assignee == "" || slices.Contains(in.Assignees, q.Assignee)
	}, (*checkpoint.Interrupt).Size)
}

// questions is the statement that answers a query.
func questions(q *checkpoint.InterruptQuery) (statement string, args []any) {
	var f filter
	plus := ""
	if q.Thread != "" {
		plus = "+" // by the thread's rows, which are few, not by an index over all threads
	}
	f.equal("thread", q.Thread)
	f.equal("run", q.Run)
	f.equal("graph", q.Graph)
	f.equal("node", q.Node)
	f.equal("reason", q.Reason)
	if q.Assignee != "" {
		f.add(within("record", "assignees", "j.value = ?"), q.Assignee)
	}
	if len(q.States) > 0 {
		states := make([]any, len(q.States))
		for i, st := range q.States {
			states[i] = string(st)
		}
		f.add(plus+"state IN (?"+strings.Repeat(", ?", len(states)-1)+")", states...)
	}
	order := plus + "created, thread, id"
	if q.ByChange {
		order = plus + "change"
		f.add(plus+"change > ?", signed(q.After.Change))
	} else if q.After != (checkpoint.InterruptPosition{}) {
		f.add("("+plus+"created, thread, id) > (?, ?, ?)", nanos(q.After.Created), q.After.Thread, q.After.ID)
	}
	return f.sql(`SELECT thread, id, change, revision, record FROM interrupts`, order), f.args
}

// readable reads up to limit records that fit and leaves out those that are
// corrupt: one bad record must not hide everybody's.
func readable[T any](
	rows *sql.Rows, limit int, scan func() (T, error), fits func(*T) bool, size func(*T) int,
) (out []T, err error) {
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		v, err := scan()
		if errors.Is(err, checkpoint.ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, failed(errors.Join(err, rows.Close()))
		}
		if fits(&v) {
			portion.Take(size(&v))
			out = append(out, v)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, failed(err)
	}
	return out, nil
}

// Due lists threads that somebody should look at.
func (s *Store) Due(ctx context.Context, limit int) (threads []string, next time.Time, err error) {
	now := nanos(s.clock())
	rows, err := s.query.due.QueryContext(ctx)
	if err != nil {
		return nil, time.Time{}, failed(err)
	}
	for rows.Next() {
		var thread string
		var wake int64
		if err := rows.Scan(&thread, &wake); err != nil {
			return nil, time.Time{}, failed(errors.Join(err, rows.Close()))
		}
		if wake > now || (limit > 0 && len(threads) == limit) {
			next = instant(wake)
			break
		}
		threads = append(threads, thread)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, time.Time{}, failed(err)
	}
	return threads, next, nil
}

// instant is the inverse of nanos.
func instant(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
