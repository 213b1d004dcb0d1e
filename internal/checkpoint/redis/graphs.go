package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// graph is how a version of a graph is stored. The source is a string within
// it, so its bytes are kept.
type graph struct {
	Format  int    `json:"v"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Created int64  `json:"created"` // nanoseconds since 1970
	Source  string `json:"source"`
}

func encodeGraph(g *graph) string {
	b, _ := json.Marshal(g) // no field of it can fail to be written
	return string(b)
}

func (s *Store) decodeGraph(field, record string) (graph, error) {
	record, err := s.box.Open(seal.Place{Kind: kindGraph, Name: field}, record)
	if err != nil {
		return graph{}, err
	}
	var g graph
	if err := json.Unmarshal([]byte(record), &g); err != nil || g.Format < oldestFormat || g.Format > Format {
		return graph{}, corrupt("%.40q is no graph of format %d", record, Format)
	}
	return g, nil
}

func (g *graph) record() checkpoint.GraphRecord {
	return checkpoint.GraphRecord{Name: g.Name, Version: g.Version, Source: g.Source, Created: instant(g.Created)}
}

func (s *Store) decodeGraphs(records map[string]string) ([]checkpoint.GraphRecord, error) {
	out := make([]checkpoint.GraphRecord, 0, len(records))
	for field, record := range records {
		g, err := s.decodeGraph(field, record)
		if err != nil {
			return nil, of(err, "key %s, field %q", s.keys.graphs(), field)
		}
		out = append(out, g.record())
	}
	sortGraphs(out)
	return out, nil
}

func sortGraphs(list []checkpoint.GraphRecord) {
	slices.SortFunc(list, func(a, b checkpoint.GraphRecord) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
}

// errGraphChanged says that another server was quicker.
var errGraphChanged = errors.New("the record has changed")

// standing is what stands for a version of a graph: a record, a tombstone, or
// nothing.
type standing struct {
	record, tombstone string // as they are stored, "" = none
	graph             graph
	digest            string // of the source of a deleted version
}

// PutGraph keeps a version of a graph.
func (s *Store) PutGraph(ctx context.Context, g checkpoint.GraphRecord) error {
	return s.changeGraph(ctx, g.Name, g.Version, func(old standing) (*graph, error) {
		switch {
		case old.record != "" && old.graph.Source == g.Source:
			return nil, errSettled
		case old.record != "", old.tombstone != "" && old.digest != checkpoint.GraphDigest(g.Source):
			return nil, checkpoint.ErrGraphExists
		}
		return &graph{Format: Format, Name: g.Name, Version: g.Version, Created: nanos(g.Created), Source: g.Source}, nil
	})
}

// DeleteGraph removes a version of a graph.
func (s *Store) DeleteGraph(ctx context.Context, name, version string) error {
	tried := false // the answer to a first try may have been lost
	return s.changeGraph(ctx, name, version, func(old standing) (*graph, error) {
		switch {
		case tried && old.tombstone != "":
			return nil, errSettled
		case old.record == "":
			return nil, checkpoint.ErrGraphNotFound
		}
		tried = true
		return nil, nil
	})
}

// errSettled says that there is nothing to do.
var errSettled = errors.New("nothing is to be changed")

// changeGraph replaces what stands for a version by the graph that decide
// returns, nil = by a tombstone.
func (s *Store) changeGraph(ctx context.Context, name, version string, decide func(standing) (*graph, error)) error {
	done, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	field := sized(name) + version
	if err := s.agreed(ctx); err != nil { // nothing is put into another store
		return failed(ctx, err)
	}
	missed := &lost{}
	for {
		err := again(ctx, func() error { return s.replaceGraph(ctx, field, decide, missed) })
		switch {
		case errors.Is(err, errSettled):
			return nil
		case errors.Is(err, checkpoint.ErrGraphExists), errors.Is(err, checkpoint.ErrGraphNotFound):
			return err
		case !errors.Is(err, errGraphChanged):
			return failed(ctx, missed.earlier(err))
		}
	}
}

func (s *Store) replaceGraph(ctx context.Context, field string, decide func(standing) (*graph, error), missed *lost) error {
	old, err := s.standing(ctx, field)
	if err != nil {
		return err
	}
	next, err := decide(old)
	if err != nil {
		return err
	}
	var record, with string
	if next != nil {
		record = s.box.Seal(seal.Place{Kind: kindGraph, Name: field}, encodeGraph(next))
		with = strconv.FormatInt(next.Created, 10)
	} else {
		with = s.box.Seal(seal.Place{Kind: kindTombstone, Name: field}, checkpoint.GraphDigest(old.graph.Source))
	}
	keys := []string{s.keys.graphs(), s.keys.graphIndex(), s.keys.tombstones(), s.keys.tombstoneOrder()}
	sent := context.WithValue(ctx, lostKey{}, missed)
	made, err := s.scripts.graph.Run(sent, s.client, keys, field, old.record, old.tombstone, record, with, s.mostTombstones).Int()
	switch {
	case err == nil && made == 0:
		return errGraphChanged
	case err != nil && ctx.Err() != nil:
		missed.cause.Store(&err) // the caller did not wait for the answer
	}
	return err
}

// standing reads what stands for a version. What other servers change between
// the two looks, the script notices.
func (s *Store) standing(ctx context.Context, field string) (old standing, err error) {
	pipe := s.client.Pipeline()
	record, tombstone := pipe.HGet(ctx, s.keys.graphs(), field), pipe.HGet(ctx, s.keys.tombstones(), field)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return old, err
	}
	if err := record.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return old, err
	}
	if err := tombstone.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return old, err
	}
	old.record, old.tombstone = record.Val(), tombstone.Val()
	if old.record != "" {
		if old.graph, err = s.decodeGraph(field, old.record); err != nil {
			return old, of(err, "key %s, field %q", s.keys.graphs(), field)
		}
	}
	if old.tombstone != "" {
		_, text := dated(old.tombstone)
		old.digest, err = s.box.Open(seal.Place{Kind: kindTombstone, Name: field}, text)
	}
	return old, of(err, "key %s, field %q", s.keys.tombstones(), field)
}

// GraphRecord returns a version of a graph.
func (s *Store) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return checkpoint.GraphRecord{}, err
	}
	defer done()
	field := sized(name) + version
	var record string
	err = again(ctx, func() (err error) {
		record, err = s.client.HGet(ctx, s.keys.graphs(), field).Result()
		return err
	})
	if errors.Is(err, goredis.Nil) {
		return checkpoint.GraphRecord{}, checkpoint.ErrGraphNotFound
	}
	if err != nil {
		return checkpoint.GraphRecord{}, failed(ctx, err)
	}
	g, err := s.decodeGraph(field, record)
	if err != nil {
		return checkpoint.GraphRecord{}, of(err, "key %s, field %q", s.keys.graphs(), field)
	}
	return g.record(), nil
}

// GraphVersions lists every version of every graph without its source.
func (s *Store) GraphVersions(ctx context.Context, known uint64) (list []checkpoint.GraphRecord, revision uint64, err error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	err = again(ctx, func() (err error) {
		revision, err = s.graphChanges(ctx)
		if err != nil || revision == known {
			return err
		}
		list, err = s.graphVersions(ctx)
		return err
	})
	return list, revision, failed(ctx, err)
}

// graphChanges is read before the list, so that what changes meanwhile is
// listed again and nothing is missed.
func (s *Store) graphChanges(ctx context.Context) (uint64, error) {
	n, err := s.client.HGet(ctx, s.keys.graphIndex(), "").Uint64()
	if errors.Is(err, goredis.Nil) {
		err = nil // nothing has changed since a format without an index
	}
	return n + 1, err
}

func (s *Store) graphVersions(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	fields, err := s.client.HKeys(ctx, s.keys.graphs()).Result()
	if err != nil {
		return nil, err
	}
	index, err := s.client.HGetAll(ctx, s.keys.graphIndex()).Result()
	if err != nil {
		return nil, err
	}
	list := make([]checkpoint.GraphRecord, 0, len(fields))
	var missing []string
	for _, field := range fields {
		created, err := strconv.ParseInt(index[field], 10, 64)
		if err != nil {
			missing = append(missing, field)
			continue
		}
		name, version := unsized(field)
		list = append(list, checkpoint.GraphRecord{Name: name, Version: version, Created: instant(created)})
	}
	old, err := s.graphsWithoutIndex(ctx, missing)
	list = append(list, old...)
	sortGraphs(list)
	return list, err
}

// graphsWithoutIndex reads what a graphd without an index has put.
func (s *Store) graphsWithoutIndex(ctx context.Context, fields []string) (list []checkpoint.GraphRecord, err error) {
	for chunk := range slices.Chunk(fields, 16) {
		records, err := s.client.HMGet(ctx, s.keys.graphs(), chunk...).Result()
		if err != nil {
			return nil, err
		}
		for i := range records {
			text, ok := records[i].(string)
			if !ok {
				continue
			}
			g, err := s.decodeGraph(chunk[i], text)
			if err != nil {
				return nil, of(err, "key %s, field %q", s.keys.graphs(), chunk[i])
			}
			r := g.record()
			r.Source = ""
			list = append(list, r)
		}
	}
	return list, nil
}

// GraphRecords lists every version of every graph, oldest first.
func (s *Store) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var all map[string]string
	err = again(ctx, func() (err error) {
		all, err = s.client.HGetAll(ctx, s.keys.graphs()).Result()
		return err
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	return s.decodeGraphs(all)
}

// Present is the time by the server's clock.
func (s *Store) Present(ctx context.Context) (now time.Time, err error) {
	done, err := s.enter(ctx)
	if err != nil {
		return now, err
	}
	defer done()
	return now, failed(ctx, again(ctx, func() (err error) {
		now, err = s.client.Time(ctx).Result()
		return err
	}))
}
