package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// maxRows is how many checkpoints one statement writes at most.
const maxRows = 8

// statements are what the writer runs, prepared once.
type statements struct {
	all []*sql.Stmt

	begin, commit, rollback *sql.Stmt

	head, putHead                      *sql.Stmt
	value, item, events                *sql.Stmt
	task, memo, run                    *sql.Stmt
	checkpoints                        []*sql.Stmt // by the number of rows, from 1
	interrupt, lastChange, request     *sql.Stmt
	clearTasks, clearMemos, trimEvents *sql.Stmt
	manifests, deleteCheckpoint        *sql.Stmt
	valueOrigins, deleteValue          *sql.Stmt
	listOrigins, deleteItems           *sql.Stmt
	rollBackThread, deleteThread       []*sql.Stmt
	graph, putGraph, removeGraph       *sql.Stmt
	tombstone, putTombstone            *sql.Stmt
	removeTombstone                    *sql.Stmt
	trimTombstones                     *sql.Stmt
}

func prepareStatements(ctx context.Context, conn *sql.Conn) (*statements, error) {
	p := preparer{prepare: func(q string) (*sql.Stmt, error) { return conn.PrepareContext(ctx, q) }}
	s := &statements{
		begin:    p.prepareStatement(`BEGIN IMMEDIATE`),
		commit:   p.prepareStatement(`COMMIT`),
		rollback: p.prepareStatement(`ROLLBACK`),

		head: p.prepareStatement(`SELECT revision, log_id, op, applied, lease_expires, seq, first_event, last_event
			FROM threads WHERE thread = ?`),
		putHead: p.prepareStatement(`INSERT INTO threads (thread, revision, log_id, op, applied, graph, state, updated, seq,
			first_event, last_event, owner, lease_expires, wake, metadata, head)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (thread) DO UPDATE SET revision = excluded.revision, log_id = excluded.log_id, op = excluded.op,
			applied = excluded.applied, graph = excluded.graph, state = excluded.state, updated = excluded.updated,
			seq = excluded.seq, first_event = excluded.first_event, last_event = excluded.last_event,
			owner = excluded.owner, lease_expires = excluded.lease_expires, wake = excluded.wake,
			metadata = excluded.metadata, head = excluded.head`),
		value:  p.prepareStatement(`INSERT INTO channel_values (thread, seq, channel, value) VALUES (?, ?, ?, ?)`),
		item:   p.prepareStatement(`INSERT INTO list_items (thread, channel, segment, idx, seq, value) VALUES (?, ?, ?, ?, ?, ?)`),
		events: p.prepareStatement(`INSERT INTO events (thread, last, record) VALUES (?, ?, ?)`),
		task:   p.prepareStatement(`INSERT OR REPLACE INTO tasks (thread, checkpoint, id, record) VALUES (?, ?, ?, ?)`),
		memo: p.prepareStatement(`INSERT OR IGNORE INTO memos (thread, checkpoint, task, scope, key, idx, record)
			VALUES (?, ?, ?, ?, ?, ?, ?)`),
		run: p.prepareStatement(`INSERT INTO runs (thread, id, ord, revision, state, record) VALUES (?, ?, ?, 1, ?, ?)
			ON CONFLICT (thread, id) DO UPDATE SET ord = excluded.ord, revision = revision + 1,
			state = excluded.state, record = excluded.record RETURNING revision`),
		interrupt: p.prepareStatement(`INSERT INTO interrupts (thread, id, born, change, revision, created, checkpoint, run,
			graph, node, reason, state, assignees, record)
			VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
			ON CONFLICT (thread, id) DO UPDATE SET change = excluded.change, revision = revision + 1,
			created = excluded.created, checkpoint = excluded.checkpoint, run = excluded.run, graph = excluded.graph,
			node = excluded.node, reason = excluded.reason, state = excluded.state,
			assignees = excluded.assignees, record = excluded.record`),
		lastChange:       p.prepareStatement(`UPDATE meta SET value = ? WHERE key = 'last_change'`),
		request:          p.prepareStatement(`INSERT OR REPLACE INTO requests (thread, id, digest, run, event, created) VALUES (?, ?, ?, ?, ?, ?)`),
		clearTasks:       p.prepareStatement(`DELETE FROM tasks WHERE thread = ? AND checkpoint = ?`),
		clearMemos:       p.prepareStatement(`DELETE FROM memos WHERE thread = ? AND checkpoint = ?`),
		trimEvents:       p.prepareStatement(`DELETE FROM events WHERE thread = ? AND last < ?`),
		manifests:        p.prepareStatement(`SELECT id, manifest FROM checkpoints WHERE thread = ? ORDER BY seq`),
		deleteCheckpoint: p.prepareStatement(`DELETE FROM checkpoints WHERE thread = ? AND id = ?`),
		valueOrigins:     p.prepareStatement(`SELECT seq, channel FROM channel_values WHERE thread = ?`),
		deleteValue:      p.prepareStatement(`DELETE FROM channel_values WHERE thread = ? AND seq = ? AND channel = ?`),
		listOrigins:      p.prepareStatement(`SELECT DISTINCT segment, channel FROM list_items WHERE thread = ?`),
		deleteItems:      p.prepareStatement(`DELETE FROM list_items WHERE thread = ? AND channel = ? AND segment = ? AND idx >= ?`),
		graph:            p.prepareStatement(`SELECT source FROM graphs WHERE name = ? AND version = ?`),
		putGraph:         p.prepareStatement(`INSERT INTO graphs (name, version, created, source) VALUES (?, ?, ?, ?)`),
		removeGraph:      p.prepareStatement(`DELETE FROM graphs WHERE name = ? AND version = ?`),
		tombstone:        p.prepareStatement(`SELECT digest FROM graph_tombstones WHERE name = ? AND version = ?`),
		putTombstone:     p.prepareStatement(`INSERT INTO graph_tombstones (name, version, deleted, digest) VALUES (?, ?, ?, ?)`),
		removeTombstone:  p.prepareStatement(`DELETE FROM graph_tombstones WHERE name = ? AND version = ?`),
		trimTombstones: p.prepareStatement(`DELETE FROM graph_tombstones WHERE number IN
			(SELECT number FROM graph_tombstones ORDER BY number DESC LIMIT -1 OFFSET ?)`),
	}
	for n := range maxRows {
		s.checkpoints = append(s.checkpoints, p.prepareStatement(
			`INSERT INTO checkpoints (thread, seq, id, namespace, path, manifest) VALUES (?, ?, ?, ?, ?, ?)`+
				strings.Repeat(`, (?, ?, ?, ?, ?, ?)`, n)))
	}
	// The checkpoints go last: the task records are found through them.
	for _, q := range []string{
		`DELETE FROM tasks WHERE thread = ?1 AND checkpoint IN
			(SELECT id FROM checkpoints WHERE thread = ?1 AND seq > ?2)`,
		`DELETE FROM memos WHERE thread = ?1 AND checkpoint IN
			(SELECT id FROM checkpoints WHERE thread = ?1 AND seq > ?2)`,
		`DELETE FROM list_items WHERE thread = ? AND seq > ?`,
		`DELETE FROM channel_values WHERE thread = ? AND seq > ?`,
		`DELETE FROM checkpoints WHERE thread = ? AND seq > ?`,
	} {
		s.rollBackThread = append(s.rollBackThread, p.prepareStatement(q))
	}
	for _, q := range []string{
		`DELETE FROM threads WHERE thread = ?`,
		`DELETE FROM checkpoints WHERE thread = ?`,
		`DELETE FROM channel_values WHERE thread = ?`,
		`DELETE FROM list_items WHERE thread = ?`,
		`DELETE FROM tasks WHERE thread = ?`,
		`DELETE FROM memos WHERE thread = ?`,
		`DELETE FROM interrupts WHERE thread = ?`,
		`DELETE FROM runs WHERE thread = ?`,
		`DELETE FROM events WHERE thread = ?`,
		`DELETE FROM requests WHERE thread = ?`,
	} {
		s.deleteThread = append(s.deleteThread, p.prepareStatement(q))
	}
	s.all = p.all
	return s, p.err
}

// queries are the fixed reads; lists with filters are put together on demand.
type queries struct {
	head, headFirst                 *sql.Stmt
	newest, checkpoint              *sql.Stmt
	value, items                    *sql.Stmt
	tasks, memos, pendingInterrupts *sql.Stmt
	events, run, runs               *sql.Stmt
	interrupt, request              *sql.Stmt
	due                             *sql.Stmt
	graphs, graph, versions         *sql.Stmt
	checkpoints, checkpointsPath    *sql.Stmt
	checkpointsAll                  *sql.Stmt
}

func prepareQueries(ctx context.Context, db *sql.DB) (*queries, error) {
	p := preparer{prepare: func(q string) (*sql.Stmt, error) { return db.PrepareContext(ctx, q) }}
	q := &queries{
		head:      p.prepareStatement(`SELECT revision, lease_expires, head FROM threads WHERE thread = ?`),
		headFirst: p.prepareStatement(`SELECT first_event FROM threads WHERE thread = ?`),
		newest: p.prepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND path = ? AND namespace = ? ORDER BY seq DESC LIMIT 1`),
		checkpoint: p.prepareStatement(`SELECT id, manifest FROM checkpoints WHERE thread = ? AND path = ? AND namespace = ? AND id = ?`),
		checkpoints: p.prepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND path = ? AND namespace = ? AND seq < ? ORDER BY seq DESC LIMIT ?`),
		checkpointsPath: p.prepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND path = ? AND seq < ? ORDER BY seq DESC LIMIT ?`),
		checkpointsAll: p.prepareStatement(`SELECT id, manifest FROM checkpoints
			WHERE thread = ? AND seq < ? ORDER BY seq DESC LIMIT ?`),
		value: p.prepareStatement(`SELECT value FROM channel_values WHERE thread = ? AND seq = ? AND channel = ?`),
		items: p.prepareStatement(`SELECT value FROM list_items
			WHERE thread = ? AND channel = ? AND segment = ? AND idx < ? ORDER BY idx`),
		tasks: p.prepareStatement(`SELECT id, record FROM tasks WHERE thread = ? AND checkpoint = ? ORDER BY id`),
		memos: p.prepareStatement(`SELECT task || '/' || scope || '/' || key || '/' || idx, record FROM memos
			WHERE thread = ? AND checkpoint = ? ORDER BY task, scope, key, idx`),
		pendingInterrupts: p.prepareStatement(`SELECT thread, id, change, revision, record FROM interrupts
			WHERE thread = ? AND checkpoint = ? ORDER BY born`),
		events: p.prepareStatement(`SELECT last, record FROM events WHERE thread = ? AND last > ? ORDER BY last`),
		run:    p.prepareStatement(`SELECT id, revision, record FROM runs WHERE thread = ? AND id = ?`),
		runs: p.prepareStatement(`SELECT id, revision, record FROM runs
			WHERE thread = ? AND ord < ? ORDER BY ord DESC, id DESC LIMIT ?`),
		interrupt: p.prepareStatement(`SELECT thread, id, change, revision, record FROM interrupts WHERE thread = ? AND id = ?`),
		request:   p.prepareStatement(`SELECT id, digest, run, event, created FROM requests WHERE thread = ? AND id = ?`),
		due:       p.prepareStatement(`SELECT thread, wake FROM threads WHERE wake IS NOT NULL ORDER BY wake, thread`),
		graphs:    p.prepareStatement(`SELECT name, version, created, source FROM graphs ORDER BY created, name, version`),
		graph:     p.prepareStatement(`SELECT name, version, created, source FROM graphs WHERE name = ? AND version = ?`),
		versions:  p.prepareStatement(`SELECT name, version, created FROM graphs ORDER BY created, name, version`),
	}
	return q, p.err
}

// closeAll ends all statements: SQLite does not end a connection that has one.
func (s *statements) closeAll() error {
	var errs []error
	for _, one := range s.all {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// preparer keeps the first error, so that a list of statements reads as one.
type preparer struct {
	all     []*sql.Stmt
	prepare func(query string) (*sql.Stmt, error)
	err     error
}

func (p *preparer) prepareStatement(query string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	s, err := p.prepare(query)
	if err != nil {
		p.err = toContractError(err)
		return nil
	}
	p.all = append(p.all, s)
	return s
}
