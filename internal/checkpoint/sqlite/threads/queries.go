package threads

import (
	"context"
	"database/sql"

	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// queries are the fixed reads; lists with filters are put together on demand.
type queries struct {
	head, headFirst                 *sql.Stmt
	newest, checkpoint              *sql.Stmt
	value, items                    *sql.Stmt
	tasks, memos, pendingInterrupts *sql.Stmt
	events, run, runs               *sql.Stmt
	interrupt, request              *sql.Stmt
	checkpoints, checkpointsPath    *sql.Stmt
	checkpointsAll                  *sql.Stmt
}

func prepareQueries(ctx context.Context, db *sql.DB) (*queries, error) {
	p := layout.NewPreparer(func(q string) (*sql.Stmt, error) { return db.PrepareContext(ctx, q) })
	q := &queries{
		head:      p.PrepareStatement(`SELECT revision, lease_expires, head FROM threads WHERE thread = ?`),
		headFirst: p.PrepareStatement(`SELECT first_event FROM threads WHERE thread = ?`),
		newest: p.PrepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND path = ? AND namespace = ? ORDER BY seq DESC LIMIT 1`),
		checkpoint: p.PrepareStatement(`SELECT id, manifest FROM checkpoints WHERE thread = ? AND path = ? AND namespace = ? AND id = ?`),
		checkpoints: p.PrepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND path = ? AND namespace = ? AND seq < ? ORDER BY seq DESC LIMIT ?`),
		checkpointsPath: p.PrepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND path = ? AND seq < ? ORDER BY seq DESC LIMIT ?`),
		checkpointsAll: p.PrepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND seq < ? ORDER BY seq DESC LIMIT ?`),
		value: p.PrepareStatement(`SELECT value FROM channel_values WHERE thread = ? AND seq = ? AND channel = ?`),
		items: p.PrepareStatement(`SELECT value FROM list_items
			WHERE thread = ? AND channel = ? AND segment = ? AND idx < ? ORDER BY idx`),
		tasks: p.PrepareStatement(`SELECT id, record FROM tasks WHERE thread = ? AND checkpoint = ? ORDER BY id`),
		memos: p.PrepareStatement(`SELECT task || '/' || scope || '/' || key || '/' || idx, record FROM memos
			WHERE thread = ? AND checkpoint = ? ORDER BY task, scope, key, idx`),
		pendingInterrupts: p.PrepareStatement(`SELECT thread, id, change, revision, record FROM interrupts
			WHERE thread = ? AND checkpoint = ? ORDER BY born`),
		events: p.PrepareStatement(`SELECT last, record FROM events WHERE thread = ? AND last > ? ORDER BY last`),
		run:    p.PrepareStatement(`SELECT id, revision, record FROM runs WHERE thread = ? AND id = ?`),
		runs: p.PrepareStatement(`SELECT id, revision, record FROM runs
			WHERE thread = ? AND ord < ? ORDER BY ord DESC, id DESC LIMIT ?`),
		interrupt: p.PrepareStatement(`SELECT thread, id, change, revision, record FROM interrupts WHERE thread = ? AND id = ?`),
		request:   p.PrepareStatement(`SELECT id, digest, run, event, created FROM requests WHERE thread = ? AND id = ?`),
	}
	return q, p.Err()
}
