package redis

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// PutGraph stores a version of a graph. It returns checkpoint.ErrGraphExists when the
// version has, or had, another source, and checkpoint.ErrVersionsChanged when the condition
// does not hold.
func (s *Store) PutGraph(ctx context.Context, g checkpoint.GraphRecord, condition checkpoint.GraphCondition) error {
	done, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.graphs.PutGraph(ctx, g, condition)
}

// DeleteGraph removes a version of a graph, and keeps its tombstone. It returns
// checkpoint.ErrGraphNotFound when there is no such version, and checkpoint.ErrVersionsChanged
// when the condition does not hold.
func (s *Store) DeleteGraph(ctx context.Context, name, version string, condition checkpoint.GraphCondition) error {
	done, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.graphs.DeleteGraph(ctx, name, version, condition)
}

// GraphRecord returns a version of a graph. It returns checkpoint.ErrGraphNotFound when
// there is no such version.
func (s *Store) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	done, err := s.beginCall(ctx)
	if err != nil {
		return checkpoint.GraphRecord{}, err
	}
	defer done()
	return s.graphs.GraphRecord(ctx, name, version)
}

// GraphVersions lists every version of every graph without its source, oldest first, and
// returns the revision of the list. The list may be nil when known is the revision still.
func (s *Store) GraphVersions(ctx context.Context, known uint64) (list []checkpoint.GraphRecord, revision uint64, err error) {
	done, err := s.beginCall(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	return s.graphs.GraphVersions(ctx, known)
}

// GraphRecords lists every version of every graph, oldest first.
func (s *Store) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	done, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.graphs.GraphRecords(ctx)
}
