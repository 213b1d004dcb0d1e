package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// PutGraph keeps a version of a graph.
func (s *Store) PutGraph(ctx context.Context, g checkpoint.GraphRecord) error {
	err := s.writer.runChange(ctx, func(w *writer) error {
		source, err := s.readSource(w, &g)
		switch {
		case err == nil && source != g.Source:
			return checkpoint.ErrGraphExists
		case !errors.Is(err, checkpoint.ErrGraphNotFound):
			return err
		}
		if err := s.removeTombstone(w, &g); err != nil {
			return err
		}
		return w.execStatement(w.statements.putGraph, g.Name, g.Version, toUnixNanos(g.Created), s.box.Seal(graphPlace(&g), g.Source))
	})
	s.graphChanges.Add(1)
	return err
}

// removeTombstone removes the tombstone of a version that comes back as it was.
func (s *Store) removeTombstone(w *writer, g *checkpoint.GraphRecord) error {
	digest, err := s.readSealed(w, w.statements.tombstone, g, tombstonePlace(g))
	switch {
	case errors.Is(err, checkpoint.ErrGraphNotFound):
		return nil
	case err == nil && digest != checkpoint.GraphDigest(g.Source):
		return checkpoint.ErrGraphExists
	case err != nil:
		return err
	}
	return w.execStatement(w.statements.removeTombstone, g.Name, g.Version)
}

// DeleteGraph removes a version of a graph.
func (s *Store) DeleteGraph(ctx context.Context, name, version string) error {
	g := checkpoint.GraphRecord{Name: name, Version: version}
	err := s.writer.runJob(ctx, &job{freesSpace: true, run: func(w *writer) error {
		source, err := s.readSource(w, &g)
		if err != nil {
			return err
		}
		if err := w.execStatement(w.statements.removeGraph, name, version); err != nil {
			return err
		}
		digest := s.box.Seal(tombstonePlace(&g), checkpoint.GraphDigest(source))
		if err := w.execStatement(w.statements.putTombstone, name, version, toUnixNanos(s.currentTime()), digest); err != nil {
			return err
		}
		return w.execStatement(w.statements.trimTombstones, s.tombstones)
	}})
	s.graphChanges.Add(1)
	return err
}

// readSource reads the source of a version.
func (s *Store) readSource(w *writer, g *checkpoint.GraphRecord) (string, error) {
	return s.readSealed(w, w.statements.graph, g, graphPlace(g))
}

// readSealed reads what a statement finds of a version.
func (s *Store) readSealed(w *writer, stmt *sql.Stmt, g *checkpoint.GraphRecord, at seal.RecordPlace) (string, error) {
	var text string
	err := stmt.QueryRowContext(w.life, g.Name, g.Version).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", checkpoint.ErrGraphNotFound
	}
	if err != nil {
		return "", err
	}
	return s.box.Open(at, text)
}

// GraphRecord returns a version of a graph.
func (s *Store) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	rows, err := s.queries.graph.QueryContext(ctx, name, version)
	return readOne(rows, err, checkpoint.ErrGraphNotFound, func() (checkpoint.GraphRecord, error) { return s.scanGraph(rows) })
}

func (s *Store) scanGraph(rows *sql.Rows) (g checkpoint.GraphRecord, err error) {
	var created int64
	if err := rows.Scan(&g.Name, &g.Version, &created, &g.Source); err != nil {
		return g, err
	}
	g.Created = fromUnixNanos(created)
	g.Source, err = s.box.Open(graphPlace(&g), g.Source)
	return g, wrapRecordError(err, "graph %q, version %q", g.Name, g.Version)
}

// GraphVersions lists every version of every graph without its source. No
// other process changes the file, so changes are counted here.
func (s *Store) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	revision := s.graphChanges.Load() + 1
	if known == revision {
		// A store that is closed, or whose file is gone, must not look as if nothing had changed.
		return nil, revision, toContractError(s.readDB.PingContext(ctx))
	}
	rows, err := s.queries.versions.QueryContext(ctx)
	if err != nil {
		return nil, 0, toContractError(err)
	}
	list, err := collectRows(rows, func() (g checkpoint.GraphRecord, err error) {
		var created int64
		err = rows.Scan(&g.Name, &g.Version, &created)
		g.Created = fromUnixNanos(created)
		return g, err
	})
	return list, revision, toContractError(err)
}

// GraphRecords lists every version of every graph, oldest first.
func (s *Store) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	rows, err := s.queries.graphs.QueryContext(ctx)
	if err != nil {
		return nil, toContractError(err)
	}
	out, err := collectRows(rows, func() (checkpoint.GraphRecord, error) { return s.scanGraph(rows) })
	return out, toContractError(err)
}
