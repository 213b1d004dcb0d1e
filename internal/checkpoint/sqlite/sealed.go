package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Kinds of records, as seal.Place has them. They are part of what is stored and
// must never change.
const (
	kindHead       = "head"
	kindCheckpoint = "checkpoint"
	kindValue      = "value"
	kindItem       = "item"
	kindTask       = "task"
	kindMemo       = "memo"
	kindQuestion   = "question"
	kindRun        = "run"
	kindRequest    = "request" // of which the digest alone is sealed
	kindEvents     = "events"
	kindGraph      = "graph"
	kindTombstone  = "tombstone" // of a graph
)

func unum(n uint64) string { return strconv.FormatUint(n, 10) }

func valueName(seq uint64, channel string) string { return unum(seq) + ":" + channel }

func itemName(segment uint64, index int, channel string) string {
	return unum(segment) + ":" + strconv.Itoa(index) + ":" + channel
}

// memoName is what the query for memos calls one.
func memoName(m *checkpoint.Memo) string {
	return m.Task + "/" + m.Scope + "/" + m.Key + "/" + strconv.Itoa(m.Index)
}

func graphPlace(g *checkpoint.GraphRecord) seal.Place { return placeOf(kindGraph, g) }

func tombstonePlace(g *checkpoint.GraphRecord) seal.Place { return placeOf(kindTombstone, g) }

func placeOf(kind string, g *checkpoint.GraphRecord) seal.Place {
	return seal.Place{Kind: kind, Name: strconv.Itoa(len(g.Name)) + ":" + g.Name + g.Version}
}

// write makes what is written of a record of the change's thread.
func (d *change) write(kind, name, record string) string {
	written := d.box.Seal(seal.Place{Thread: d.Thread, Kind: kind, Name: name}, record)
	d.bytes += len(written)
	d.rows++
	return written
}

// decode opens a record of a thread and reads it.
func decode[T any](s *Store, thread, kind, name, text string, read func(string) (T, error)) (v T, err error) {
	text, err = s.box.Open(seal.Place{Thread: thread, Kind: kind, Name: name}, text)
	if err != nil {
		return v, err
	}
	return read(text)
}

func asItIs(text string) (string, error) { return text, nil }

// manifestOnly reads a checkpoint without what is kept beside it.
func manifestOnly(text string) (*checkpoint.Checkpoint, error) {
	cp, _, err := codec.DecodeCheckpoint(text)
	return cp, err
}

const checkPrefix = "key:"

// unlock refuses keys that don't fit what the file holds, and notes the one
// that new records are sealed with.
func (s *Store) unlock(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT key, value FROM meta WHERE key LIKE '`+checkPrefix+`%'`)
	if err != nil {
		return failed(err)
	}
	words := map[string]string{}
	for rows.Next() {
		var key, word string
		if err := rows.Scan(&key, &word); err != nil {
			return failed(errors.Join(err, rows.Close()))
		}
		words[strings.TrimPrefix(key, checkPrefix)] = word
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return failed(err)
	}
	missing, err := s.box.Check(words)
	if err != nil {
		return err
	}
	if m := seal.Missing(missing); m != "" {
		s.warned = append(s.warned, m)
	}
	id := s.box.Active()
	if id == "" {
		return nil
	}
	_, err = db.ExecContext(ctx, `INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)`, checkPrefix+id, s.box.Word())
	if err != nil {
		return failed(err)
	}
	return s.resealGraphs(ctx, db)
}

// resealGraphs seals all graphs, and the tombstones of deleted ones, with the
// present key: no server starts without its graphs, so they must not be what an
// old key is kept for.
func (s *Store) resealGraphs(ctx context.Context, db *sql.DB) error {
	err := s.resealRows(ctx, db, graphPlace,
		`SELECT name, version, source FROM graphs`, `UPDATE graphs SET source = ? WHERE name = ? AND version = ?`)
	if err != nil {
		return err
	}
	return s.resealRows(ctx, db, tombstonePlace,
		`SELECT name, version, digest FROM graph_tombstones`, `UPDATE graph_tombstones SET digest = ? WHERE name = ? AND version = ?`)
}

// resealRows seals what a query finds with the present key, and writes it back.
func (s *Store) resealRows(
	ctx context.Context, db *sql.DB, place func(*checkpoint.GraphRecord) seal.Place, query, update string,
) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return failed(err)
	}
	all, err := collect(rows, func() (g checkpoint.GraphRecord, err error) {
		err = rows.Scan(&g.Name, &g.Version, &g.Source)
		return g, err
	})
	if err != nil {
		return failed(err)
	}
	for i := range all {
		g := &all[i]
		if id, _ := seal.Sealed(g.Source); id == s.box.Active() {
			continue
		}
		text, err := s.box.Open(place(g), g.Source)
		if err != nil {
			continue // whoever reads it is told
		}
		if _, err := db.ExecContext(ctx, update, s.box.Seal(place(g), text), g.Name, g.Version); err != nil {
			return failed(err)
		}
	}
	return nil
}

// Warnings tells what an operator should know, in sentences; none when all is
// well.
func (s *Store) Warnings() []string { return s.warned }
