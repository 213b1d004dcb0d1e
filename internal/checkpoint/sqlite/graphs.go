package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A deleted version leaves a row with the digest of its source, under a time
// at which none is made.
const (
	deletedAt   = math.MaxInt64
	deletedMark = "deleted:"
)

// PutGraph keeps a version of a graph.
func (s *Store) PutGraph(ctx context.Context, g checkpoint.GraphRecord) error {
	err := s.write.do(ctx, func(w *writer) error {
		source, err := s.source(w, &g)
		switch {
		case errors.Is(err, checkpoint.ErrGraphNotFound), source == deletedMark+checkpoint.GraphDigest(g.Source):
			return w.exec(w.stmt.putGraph, g.Name, g.Version, min(nanos(g.Created), deletedAt-1), s.box.Seal(graphPlace(&g), g.Source))
		case err == nil && source != g.Source:
			return checkpoint.ErrGraphExists
		}
		return err
	})
	s.graphChanges.Add(1)
	return err
}

// DeleteGraph removes a version of a graph.
func (s *Store) DeleteGraph(ctx context.Context, name, version string) error {
	g := checkpoint.GraphRecord{Name: name, Version: version}
	err := s.write.doJob(ctx, &job{frees: true, run: func(w *writer) error {
		source, err := s.source(w, &g)
		if err != nil {
			return err
		}
		if strings.HasPrefix(source, deletedMark) {
			return checkpoint.ErrGraphNotFound
		}
		mark := s.box.Seal(graphPlace(&g), deletedMark+checkpoint.GraphDigest(source))
		return w.exec(w.stmt.putGraph, name, version, int64(deletedAt), mark)
	}})
	s.graphChanges.Add(1)
	return err
}

// source reads what stands for a version.
func (s *Store) source(w *writer, g *checkpoint.GraphRecord) (string, error) {
	var source string
	err := w.stmt.graph.QueryRowContext(w.life, g.Name, g.Version).Scan(&source)
	if errors.Is(err, sql.ErrNoRows) {
		return "", checkpoint.ErrGraphNotFound
	}
	if err != nil {
		return "", err
	}
	return s.box.Open(graphPlace(g), source)
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
