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
	err := s.write.do(ctx, func(w *writer) error {
		source, err := s.source(w, &g)
		switch {
		case err == nil && source != g.Source:
			return checkpoint.ErrGraphExists
		case !errors.Is(err, checkpoint.ErrGraphNotFound):
			return err
		}
		if err := s.removeTombstone(w, &g); err != nil {
			return err
		}
		return w.exec(w.stmt.putGraph, g.Name, g.Version, nanos(g.Created), s.box.Seal(graphPlace(&g), g.Source))
	})
	s.graphChanges.Add(1)
	return err
}

// removeTombstone removes the tombstone of a version that comes back as it was.
func (s *Store) removeTombstone(w *writer, g *checkpoint.GraphRecord) error {
	digest, err := s.readSealed(w, w.stmt.tombstone, g, tombstonePlace(g))
	switch {
	case errors.Is(err, checkpoint.ErrGraphNotFound):
		return nil
	case err == nil && digest != checkpoint.GraphDigest(g.Source):
		return checkpoint.ErrGraphExists
	case err != nil:
		return err
	}
	return w.exec(w.stmt.removeTombstone, g.Name, g.Version)
}

// DeleteGraph removes a version of a graph.
func (s *Store) DeleteGraph(ctx context.Context, name, version string) error {
	g := checkpoint.GraphRecord{Name: name, Version: version}
	err := s.write.doJob(ctx, &job{frees: true, run: func(w *writer) error {
		source, err := s.source(w, &g)
		if err != nil {
			return err
		}
		if err := w.exec(w.stmt.removeGraph, name, version); err != nil {
			return err
		}
		digest := s.box.Seal(tombstonePlace(&g), checkpoint.GraphDigest(source))
		if err := w.exec(w.stmt.putTombstone, name, version, nanos(s.clock()), digest); err != nil {
			return err
		}
		return w.exec(w.stmt.trimTombstones, s.tombstones)
	}})
	s.graphChanges.Add(1)
	return err
}

// source reads the source of a version.
func (s *Store) source(w *writer, g *checkpoint.GraphRecord) (string, error) {
	return s.readSealed(w, w.stmt.graph, g, graphPlace(g))
}

// readSealed reads what a statement finds of a version.
func (s *Store) readSealed(w *writer, stmt *sql.Stmt, g *checkpoint.GraphRecord, at seal.Place) (string, error) {
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
	rows, err := s.query.graph.QueryContext(ctx, name, version)
	return one(rows, err, checkpoint.ErrGraphNotFound, func() (checkpoint.GraphRecord, error) { return s.scanGraph(rows) })
}

func (s *Store) scanGraph(rows *sql.Rows) (g checkpoint.GraphRecord, err error) {
	var created int64
	if err := rows.Scan(&g.Name, &g.Version, &created, &g.Source); err != nil {
		return g, err
	}
	g.Created = instant(created)
	g.Source, err = s.box.Open(graphPlace(&g), g.Source)
	return g, of(err, "graph %q, version %q", g.Name, g.Version)
}

// GraphVersions lists every version of every graph without its source. No
// other process changes the file, so changes are counted here.
func (s *Store) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	revision := s.graphChanges.Load() + 1
	if known == revision {
		// A store that is closed, or whose file is gone, must not look as if nothing had changed.
		return nil, revision, failed(s.reads.PingContext(ctx))
	}
	rows, err := s.query.versions.QueryContext(ctx)
	if err != nil {
		return nil, 0, failed(err)
	}
	list, err := collect(rows, func() (g checkpoint.GraphRecord, err error) {
		var created int64
		err = rows.Scan(&g.Name, &g.Version, &created)
		g.Created = instant(created)
		return g, err
	})
	return list, revision, failed(err)
}

// GraphRecords lists every version of every graph, oldest first.
func (s *Store) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	rows, err := s.query.graphs.QueryContext(ctx)
	if err != nil {
		return nil, failed(err)
	}
	out, err := collect(rows, func() (checkpoint.GraphRecord, error) { return s.scanGraph(rows) })
	return out, failed(err)
}
