// Package graphs keeps versions of graphs, and tombstones of deleted ones.
package graphs

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/writer"
)

// Graphs keeps the graphs of a store.
type Graphs struct {
	changes    *writer.Writer
	db         *sql.DB
	box        *seal.Box
	now        func() time.Time
	tombstones int // how many are remembered

	// Statements of changes.
	source, putSource, removeSource  *sql.Stmt
	versionsOf                       *sql.Stmt
	tombstone, putTombstone          *sql.Stmt
	removeTombstones, trimTombstones *sql.Stmt
	// Statements of reads, which have connections of their own.
	graphs, graph, versions *sql.Stmt

	changeCount atomic.Uint64
}

var _ checkpoint.Graphs = (*Graphs)(nil)

// Options configure Graphs.
type Options struct {
	Box        *seal.Box
	Now        func() time.Time
	Tombstones int // how many deleted versions are remembered
}

// New makes the graphs of a store; db has the connections of reads, which live as long as ctx.
// Errors wrap checkpoint.ErrUnavailable or ErrCorrupt.
func New(ctx context.Context, changes *writer.Writer, db *sql.DB, opts Options) (*Graphs, error) {
	w := changes.NewPreparer()
	r := layout.NewPreparer(func(query string) (*sql.Stmt, error) { return db.PrepareContext(ctx, query) })
	k := &Graphs{
		changes: changes, db: db, box: opts.Box, now: opts.Now, tombstones: opts.Tombstones,
		source:           w.PrepareStatement(`SELECT source FROM graphs WHERE name = ? AND version = ?`),
		putSource:        w.PrepareStatement(`INSERT INTO graphs (name, version, created, source) VALUES (?, ?, ?, ?)`),
		removeSource:     w.PrepareStatement(`DELETE FROM graphs WHERE name = ? AND version = ?`),
		versionsOf:       w.PrepareStatement(`SELECT version FROM graphs WHERE name = ?`),
		tombstone:        w.PrepareStatement(`SELECT digest FROM graph_tombstones WHERE name = ? AND version = ?`),
		putTombstone:     w.PrepareStatement(`INSERT INTO graph_tombstones (name, version, deleted, digest) VALUES (?, ?, ?, ?)`),
		removeTombstones: w.PrepareStatement(`DELETE FROM graph_tombstones WHERE name = ? AND version = ?`),
		trimTombstones: w.PrepareStatement(`DELETE FROM graph_tombstones WHERE number IN
			(SELECT number FROM graph_tombstones ORDER BY number DESC LIMIT -1 OFFSET ?)`),
		graphs:   r.PrepareStatement(`SELECT name, version, created, source FROM graphs ORDER BY created, name, version`),
		graph:    r.PrepareStatement(`SELECT name, version, created, source FROM graphs WHERE name = ? AND version = ?`),
		versions: r.PrepareStatement(`SELECT name, version, created FROM graphs ORDER BY created, name, version`),
	}
	if err := errors.Join(w.Err(), r.Err()); err != nil {
		return nil, err
	}
	return k, nil
}

// PutGraph stores a version of a graph. It returns ErrGraphExists for another
// source of the version, and ErrVersionsChanged when the condition does not hold; other
// errors are those of writer.RunChange.
func (k *Graphs) PutGraph(ctx context.Context, g checkpoint.GraphRecord, condition checkpoint.GraphCondition) error {
	err := k.changes.RunChange(ctx, func(ctx context.Context, _ *sql.Conn) error {
		source, err := k.readSource(ctx, &g)
		switch {
		case err == nil && source != g.Source:
			return checkpoint.ErrGraphExists
		case !errors.Is(err, checkpoint.ErrGraphNotFound):
			return err
		}
		isDeleted, err := k.findTombstone(ctx, &g)
		if err != nil {
			return err
		}
		if err := k.checkVersions(ctx, g.Name, condition); err != nil {
			return err
		}
		if isDeleted {
			if err := execStatement(ctx, k.removeTombstones, g.Name, g.Version); err != nil {
				return err
			}
		}
		return execStatement(ctx, k.putSource, g.Name, g.Version, layout.ToUnixNanos(g.Created), k.box.Seal(layout.GraphPlace(&g), g.Source))
	})
	k.changeCount.Add(1)
	return err
}

// checkVersions checks the condition of a change.
func (k *Graphs) checkVersions(ctx context.Context, name string, condition checkpoint.GraphCondition) error {
	if !condition.IsSet() {
		return nil
	}
	rows, err := k.versionsOf.QueryContext(ctx, name)
	if err != nil {
		return err
	}
	versions, err := layout.CollectRows(rows, func() (version string, err error) {
		err = rows.Scan(&version)
		return version, err
	})
	if err != nil {
		return err
	}
	return condition.CheckVersions(versions)
}

// findTombstone reports whether a version that comes back as it was has a tombstone. It
// returns ErrGraphExists for a version that was another one.
func (k *Graphs) findTombstone(ctx context.Context, g *checkpoint.GraphRecord) (found bool, err error) {
	digest, err := k.readSealed(ctx, k.tombstone, g, layout.TombstonePlace(g))
	switch {
	case errors.Is(err, checkpoint.ErrGraphNotFound):
		return false, nil
	case err == nil && digest != checkpoint.GraphDigest(g.Source):
		return false, checkpoint.ErrGraphExists
	}
	return err == nil, err
}

// DeleteGraph removes a version of a graph. It returns ErrGraphNotFound for an
// unknown version, and ErrVersionsChanged when the condition does not hold; other errors
// are those of writer.RunJob.
func (k *Graphs) DeleteGraph(ctx context.Context, name, version string, condition checkpoint.GraphCondition) error {
	g := checkpoint.GraphRecord{Name: name, Version: version}
	err := k.changes.RunJob(ctx, &writer.Job{FreesSpace: true, Run: func(ctx context.Context, _ *sql.Conn) error {
		source, err := k.readSource(ctx, &g)
		if err != nil {
			return err
		}
		if err := k.checkVersions(ctx, name, condition); err != nil {
			return err
		}
		if err := execStatement(ctx, k.removeSource, name, version); err != nil {
			return err
		}
		digest := k.box.Seal(layout.TombstonePlace(&g), checkpoint.GraphDigest(source))
		if err := execStatement(ctx, k.putTombstone, name, version, layout.ToUnixNanos(k.now()), digest); err != nil {
			return err
		}
		return execStatement(ctx, k.trimTombstones, k.tombstones)
	}})
	k.changeCount.Add(1)
	return err
}

func execStatement(ctx context.Context, s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(ctx, args...)
	return err
}

// readSource reads the source of a version.
func (k *Graphs) readSource(ctx context.Context, g *checkpoint.GraphRecord) (string, error) {
	return k.readSealed(ctx, k.source, g, layout.GraphPlace(g))
}

// readSealed reads the text that a statement finds for a version.
func (k *Graphs) readSealed(ctx context.Context, stmt *sql.Stmt, g *checkpoint.GraphRecord, at seal.RecordPlace) (string, error) {
	var text string
	err := stmt.QueryRowContext(ctx, g.Name, g.Version).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", checkpoint.ErrGraphNotFound
	}
	if err != nil {
		return "", err
	}
	return k.box.Open(at, text)
}

// GraphRecord returns a version of a graph, or ErrGraphNotFound. Other errors
// wrap ErrUnavailable or ErrCorrupt.
func (k *Graphs) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	rows, err := k.graph.QueryContext(ctx, name, version)
	return layout.ReadOne(rows, err, checkpoint.ErrGraphNotFound, func() (checkpoint.GraphRecord, error) { return k.scanGraph(rows) })
}

func (k *Graphs) scanGraph(rows *sql.Rows) (g checkpoint.GraphRecord, err error) {
	var created int64
	if err := rows.Scan(&g.Name, &g.Version, &created, &g.Source); err != nil {
		return g, err
	}
	g.Created = layout.FromUnixNanos(created)
	g.Source, err = k.box.Open(layout.GraphPlace(&g), g.Source)
	return g, layout.WrapRecordError(err, "graph %q, version %q", g.Name, g.Version)
}

// GraphVersions lists every version of every graph without its source. No other
// process changes the file, so changes are counted here. Errors wrap
// ErrUnavailable or ErrCorrupt.
func (k *Graphs) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	revision := k.changeCount.Load() + 1
	if known == revision {
		// A store that is closed, or whose file is gone, must not look as if nothing had changed.
		return nil, revision, layout.ToContractError(k.db.PingContext(ctx))
	}
	rows, err := k.versions.QueryContext(ctx)
	if err != nil {
		return nil, 0, layout.ToContractError(err)
	}
	list, err := layout.CollectRows(rows, func() (g checkpoint.GraphRecord, err error) {
		var created int64
		err = rows.Scan(&g.Name, &g.Version, &created)
		g.Created = layout.FromUnixNanos(created)
		return g, err
	})
	return list, revision, layout.ToContractError(err)
}

// GraphRecords lists every version of every graph, oldest first. Errors wrap
// ErrUnavailable or ErrCorrupt.
func (k *Graphs) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	rows, err := k.graphs.QueryContext(ctx)
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	out, err := layout.CollectRows(rows, func() (checkpoint.GraphRecord, error) { return k.scanGraph(rows) })
	return out, layout.ToContractError(err)
}
