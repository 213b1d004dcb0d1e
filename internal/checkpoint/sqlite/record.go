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
	kindInterrupt  = "question"
	kindRun        = "run"
	kindRequest    = "request" // of which the digest alone is sealed
	kindEvents     = "events"
	kindGraph      = "graph"
	kindTombstone  = "tombstone" // of a graph
)

func formatUint(n uint64) string { return strconv.FormatUint(n, 10) }

func valueName(seq uint64, channel string) string { return formatUint(seq) + ":" + channel }

func itemName(segment uint64, index int, channel string) string {
	return formatUint(segment) + ":" + strconv.Itoa(index) + ":" + channel
}

// memoName is what the query for memos calls one.
func memoName(m *checkpoint.Memo) string {
	return m.Task + "/" + m.Scope + "/" + m.Key + "/" + strconv.Itoa(m.Index)
}

func graphPlace(g *checkpoint.GraphRecord) seal.RecordPlace { return recordPlaceOf(kindGraph, g) }

func tombstonePlace(g *checkpoint.GraphRecord) seal.RecordPlace {
	return recordPlaceOf(kindTombstone, g)
}

func recordPlaceOf(kind string, g *checkpoint.GraphRecord) seal.RecordPlace {
	return seal.RecordPlace{Kind: kind, Name: strconv.Itoa(len(g.Name)) + ":" + g.Name + g.Version}
}

// sealRecord makes what is written of a record of the change's thread.
func (d *encodedChange) sealRecord(kind, name, record string) string {
	written := d.box.Seal(seal.RecordPlace{Thread: d.Thread, Kind: kind, Name: name}, record)
	d.bytes += len(written)
	d.rows++
	return written
}

// decodeRecord opens a record of a thread and reads it.
func decodeRecord[T any](s *Store, thread, kind, name, text string, read func(string) (T, error)) (v T, err error) {
	text, err = s.box.Open(seal.RecordPlace{Thread: thread, Kind: kind, Name: name}, text)
	if err != nil {
		return v, err
	}
	return read(text)
}

func keepText(text string) (string, error) { return text, nil }

// decodeManifest reads a checkpoint without what is kept beside it.
func decodeManifest(text string) (*checkpoint.Checkpoint, error) {
	cp, _, err := codec.DecodeCheckpoint(text)
	return cp, err
}

const keyCheckPrefix = "key:"

// checkEncryptionKeys refuses keys that don't fit what the file holds, and notes the one
// that new records are sealed with.
func (s *Store) checkEncryptionKeys(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT key, value FROM meta WHERE key LIKE '`+keyCheckPrefix+`%'`)
	if err != nil {
		return toContractError(err)
	}
	words := map[string]string{}
	for rows.Next() {
		var key, word string
		if err := rows.Scan(&key, &word); err != nil {
			return toContractError(errors.Join(err, rows.Close()))
		}
		words[strings.TrimPrefix(key, keyCheckPrefix)] = word
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return toContractError(err)
	}
	missing, err := s.box.VerifyKeys(words)
	if err != nil {
		return err
	}
	if m := seal.MissingKeysWarning(missing); m != "" {
		s.warnings = append(s.warnings, m)
	}
	id := s.box.ActiveKeyID()
	if id == "" {
		return nil
	}
	_, err = db.ExecContext(ctx, `INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)`, keyCheckPrefix+id, s.box.ActiveKeyCheck())
	if err != nil {
		return toContractError(err)
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
	ctx context.Context, db *sql.DB, place func(*checkpoint.GraphRecord) seal.RecordPlace, query, update string,
) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return toContractError(err)
	}
	all, err := collectRows(rows, func() (g checkpoint.GraphRecord, err error) {
		err = rows.Scan(&g.Name, &g.Version, &g.Source)
		return g, err
	})
	if err != nil {
		return toContractError(err)
	}
	for i := range all {
		g := &all[i]
		if id, _ := seal.SealingKeyID(g.Source); id == s.box.ActiveKeyID() {
			continue
		}
		text, err := s.box.Open(place(g), g.Source)
		if err != nil {
			continue // a read of the graph returns the error
		}
		if _, err := db.ExecContext(ctx, update, s.box.Seal(place(g), text), g.Name, g.Version); err != nil {
			return toContractError(err)
		}
	}
	return nil
}

// Warnings tells what an operator should know, in sentences; none when all is
// well.
func (s *Store) Warnings() []string { return s.warnings }
