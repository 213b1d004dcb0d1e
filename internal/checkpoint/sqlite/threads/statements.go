package threads

import (
	"database/sql"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// maxStatementRows bounds the checkpoints that a statement writes.
const maxStatementRows = 8

// statements are the prepared statements of the writer.
type statements struct {
	head, putHead                      *sql.Stmt
	updateHead, updateState            *sql.Stmt
	value, item, events                *sql.Stmt
	task, memo, run                    *sql.Stmt
	checkpoints                        []*sql.Stmt // by the number of rows, from 1
	interrupt, request                 *sql.Stmt
	lastChange, readLastChange         *sql.Stmt
	clearTasks, clearMemos, trimEvents *sql.Stmt
	manifests, deleteCheckpoint        *sql.Stmt
	valueOrigins, deleteValue          *sql.Stmt
	listOrigins, deleteItems           *sql.Stmt
	rollBackThread, deleteThread       []*sql.Stmt
}

// headColumns are set by each change of a thread.
const headColumns = `revision = ?, log_id = ?, op = ?, applied = ?, updated = ?, seq = ?, first_event = ?, last_event = ?, owner = ?,
	lease_expires = ?, wake = ?, head = ?`

func prepareStatements(p *layout.Preparer) (*statements, error) {
	s := &statements{
		head: p.PrepareStatement(`SELECT revision, log_id, op, applied, lease_expires, seq, first_event, last_event, graph, state,
			coalesce(created, 0), coalesce(labels, ''), created IS NOT NULL FROM threads WHERE thread = ?`),
		putHead: p.PrepareStatement(`INSERT INTO threads (thread, revision, log_id, op, applied, graph, state, updated, seq,
			first_event, last_event, owner, lease_expires, wake, created, labels, head)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (thread) DO UPDATE SET revision = excluded.revision, log_id = excluded.log_id, op = excluded.op,
			applied = excluded.applied, graph = excluded.graph, state = excluded.state, updated = excluded.updated,
			seq = excluded.seq, first_event = excluded.first_event, last_event = excluded.last_event,
			owner = excluded.owner, lease_expires = excluded.lease_expires, wake = excluded.wake,
			created = excluded.created, labels = excluded.labels, head = excluded.head`),
		// SQLite writes the indexes of each column that a statement names.
		updateHead:  p.PrepareStatement(`UPDATE threads SET ` + headColumns + ` WHERE thread = ?`),
		updateState: p.PrepareStatement(`UPDATE threads SET ` + headColumns + `, state = ? WHERE thread = ?`),
		value:       p.PrepareStatement(`INSERT INTO channel_values (thread, seq, channel, value) VALUES (?, ?, ?, ?)`),
		item:        p.PrepareStatement(`INSERT INTO list_items (thread, channel, segment, idx, seq, value) VALUES (?, ?, ?, ?, ?, ?)`),
		events:      p.PrepareStatement(`INSERT INTO events (thread, last, record) VALUES (?, ?, ?)`),
		task:        p.PrepareStatement(`INSERT OR REPLACE INTO tasks (thread, checkpoint, id, record) VALUES (?, ?, ?, ?)`),
		memo: p.PrepareStatement(`INSERT OR IGNORE INTO memos (thread, checkpoint, task, scope, key, idx, record)
			VALUES (?, ?, ?, ?, ?, ?, ?)`),
		run: p.PrepareStatement(`INSERT INTO runs (thread, id, ord, revision, state, record) VALUES (?, ?, ?, 1, ?, ?)
			ON CONFLICT (thread, id) DO UPDATE SET ord = excluded.ord, revision = revision + 1,
			state = excluded.state, record = excluded.record RETURNING revision`),
		interrupt: p.PrepareStatement(`INSERT INTO interrupts (thread, id, born, change, revision, created, checkpoint, run,
			graph, node, reason, state, record, tags)
			VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
			ON CONFLICT (thread, id) DO UPDATE SET change = excluded.change, revision = revision + 1,
			created = excluded.created, checkpoint = excluded.checkpoint, run = excluded.run, graph = excluded.graph,
			node = excluded.node, reason = excluded.reason, state = excluded.state,
			record = excluded.record, tags = excluded.tags`),
		readLastChange:   p.PrepareStatement(`SELECT value FROM meta WHERE key = 'last_change'`),
		lastChange:       p.PrepareStatement(`UPDATE meta SET value = ? WHERE key = 'last_change'`),
		request:          p.PrepareStatement(`INSERT OR REPLACE INTO requests (thread, id, digest, run, event, created) VALUES (?, ?, ?, ?, ?, ?)`),
		clearTasks:       p.PrepareStatement(`DELETE FROM tasks WHERE thread = ? AND checkpoint = ?`),
		clearMemos:       p.PrepareStatement(`DELETE FROM memos WHERE thread = ? AND checkpoint = ?`),
		trimEvents:       p.PrepareStatement(`DELETE FROM events WHERE thread = ? AND last < ?`),
		manifests:        p.PrepareStatement(`SELECT id, manifest FROM checkpoints WHERE thread = ? ORDER BY seq`),
		deleteCheckpoint: p.PrepareStatement(`DELETE FROM checkpoints WHERE thread = ? AND id = ?`),
		valueOrigins:     p.PrepareStatement(`SELECT seq, channel FROM channel_values WHERE thread = ?`),
		deleteValue:      p.PrepareStatement(`DELETE FROM channel_values WHERE thread = ? AND seq = ? AND channel = ?`),
		listOrigins:      p.PrepareStatement(`SELECT DISTINCT segment, channel FROM list_items WHERE thread = ?`),
		deleteItems:      p.PrepareStatement(`DELETE FROM list_items WHERE thread = ? AND channel = ? AND segment = ? AND idx >= ?`),
	}
	for n := range maxStatementRows {
		s.checkpoints = append(s.checkpoints, p.PrepareStatement(
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
		s.rollBackThread = append(s.rollBackThread, p.PrepareStatement(q))
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
		s.deleteThread = append(s.deleteThread, p.PrepareStatement(q))
	}
	return s, p.Err()
}
