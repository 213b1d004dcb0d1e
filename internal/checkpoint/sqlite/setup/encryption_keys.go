package setup

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// sealedRecords is the records of a database, and the keys that a server has for them.
type sealedRecords struct {
	db       *sql.DB
	box      *seal.Box
	warnings []string // for the operator, in sentences
}

// PrepareKeys refuses keys that don't fit what the file holds, and seals graphs with the
// present key. The warnings say what an operator should know.
func PrepareKeys(ctx context.Context, db *sql.DB, box *seal.Box) (warnings []string, err error) {
	r := &sealedRecords{db: db, box: box}
	err = r.checkKeys(ctx)
	return r.warnings, err
}

const keyCheckPrefix = "key:"

// readKeyChecks reads by which word each key of a file is recognized.
func readKeyChecks(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT key, value FROM meta WHERE key LIKE '`+keyCheckPrefix+`%'`)
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	words := map[string]string{}
	for rows.Next() {
		var key, word string
		if err := rows.Scan(&key, &word); err != nil {
			return nil, layout.ToContractError(errors.Join(err, rows.Close()))
		}
		words[strings.TrimPrefix(key, keyCheckPrefix)] = word
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, layout.ToContractError(err)
	}
	return words, nil
}

// checkKeys refuses keys that don't fit what the file holds, and notes the one
// that new records are sealed with.
func (r *sealedRecords) checkKeys(ctx context.Context) error {
	words, err := readKeyChecks(ctx, r.db)
	if err != nil {
		return err
	}
	missing, err := r.box.VerifyKeys(words)
	if err != nil {
		return err
	}
	if m := seal.MissingKeysWarning(missing); m != "" {
		r.warnings = append(r.warnings, m)
	}
	id := r.box.ActiveKeyID()
	if id == "" {
		return nil
	}
	_, err = r.db.ExecContext(ctx, `INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)`, keyCheckPrefix+id, r.box.ActiveKeyCheck())
	if err != nil {
		return layout.ToContractError(err)
	}
	return r.resealGraphs(ctx)
}

// resealGraphs seals all graphs, and the tombstones of deleted ones, with the
// present key: no server starts without its graphs, so they must not be what an
// old key is kept for.
func (r *sealedRecords) resealGraphs(ctx context.Context) error {
	err := r.resealRows(ctx, layout.GraphPlace,
		`SELECT name, version, source FROM graphs`, `UPDATE graphs SET source = ? WHERE name = ? AND version = ?`)
	if err != nil {
		return err
	}
	return r.resealRows(ctx, layout.TombstonePlace,
		`SELECT name, version, digest FROM graph_tombstones`, `UPDATE graph_tombstones SET digest = ? WHERE name = ? AND version = ?`)
}

// resealRows seals what a query finds with the present key, and writes it back.
func (r *sealedRecords) resealRows(
	ctx context.Context, place func(*checkpoint.GraphRecord) seal.RecordPlace, query, update string,
) error {
	rows, err := r.db.QueryContext(ctx, query)
	if err != nil {
		return layout.ToContractError(err)
	}
	all, err := layout.CollectRows(rows, func() (g checkpoint.GraphRecord, err error) {
		err = rows.Scan(&g.Name, &g.Version, &g.Source)
		return g, err
	})
	if err != nil {
		return layout.ToContractError(err)
	}
	for i := range all {
		g := &all[i]
		if id, _ := seal.SealingKeyID(g.Source); id == r.box.ActiveKeyID() {
			continue
		}
		text, err := r.box.Open(place(g), g.Source)
		if err != nil {
			continue // a read of the graph returns the error
		}
		if _, err := r.db.ExecContext(ctx, update, r.box.Seal(place(g), text), g.Name, g.Version); err != nil {
			return layout.ToContractError(err)
		}
	}
	return nil
}
