// Package graphs keeps the versions of graphs in Redis, and tombstones of those that
// were deleted.
package graphs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Graphs keeps the versions of graphs, and tombstones of those that were deleted.
type Graphs struct {
	database *setup.Database
	// maxTombstones is how many deleted versions are remembered.
	maxTombstones int
}

// New makes the part of a store that keeps graphs.
func New(d *setup.Database, maxTombstones int) *Graphs {
	return &Graphs{database: d, maxTombstones: maxTombstones}
}

// storedGraph is how a version of a graph is stored. The source is a string within
// it, so its bytes are kept.
type storedGraph struct {
	Format  int    `json:"v"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Created int64  `json:"created"` // nanoseconds since 1970
	Source  string `json:"source"`
}

func encodeGraph(g *storedGraph) string {
	b, _ := json.Marshal(g) // no field of it can fail to be written
	return string(b)
}

// decodeGraph opens and decodes the record of a version. It returns checkpoint.ErrCorrupt
// when the record can't be read.
func (s *Graphs) decodeGraph(field, record string) (storedGraph, error) {
	record, err := s.database.Box.Open(seal.RecordPlace{Kind: layout.KindGraph, Name: field}, record)
	if err != nil {
		return storedGraph{}, err
	}
	var g storedGraph
	if err := json.Unmarshal([]byte(record), &g); err != nil || g.Format < layout.OldestFormat || g.Format > layout.Format {
		return storedGraph{}, layout.CorruptError("%.40q is no graph of format %d", record, layout.Format)
	}
	return g, nil
}

func (g *storedGraph) toRecord() checkpoint.GraphRecord {
	return checkpoint.GraphRecord{Name: g.Name, Version: g.Version, Source: g.Source, Created: layout.FromUnixNanos(g.Created)}
}

func (s *Graphs) decodeGraphs(records map[string]string) ([]checkpoint.GraphRecord, error) {
	out := make([]checkpoint.GraphRecord, 0, len(records))
	for field, record := range records {
		g, err := s.decodeGraph(field, record)
		if err != nil {
			return nil, layout.WrapRecordError(err, "key %s, field %q", s.database.Keys.GraphsKey(), field)
		}
		out = append(out, g.toRecord())
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

// graphEntry is the entry of a version of a graph: a record, a tombstone, or
// nothing.
type graphEntry struct {
	record, tombstone string // as they are stored, "" = none
	graph             storedGraph
	digest            string // of the source of a deleted version

	// What a condition needs, else empty. The count of changes is older than the versions.
	changeCount string
	versions    []string // of the graph
}

// PutGraph stores a version of a graph. It returns checkpoint.ErrGraphExists when the
// version has, or had, another source, and checkpoint.ErrVersionsChanged when the condition
// does not hold.
func (s *Graphs) PutGraph(ctx context.Context, g checkpoint.GraphRecord, condition checkpoint.GraphCondition) error {
	return s.changeGraph(ctx, graphChange{g.Name, g.Version, condition}, func(old graphEntry) (*storedGraph, error) {
		switch {
		case old.record != "" && old.graph.Source == g.Source:
			return nil, errNothingToChange
		case old.record != "", old.tombstone != "" && old.digest != checkpoint.GraphDigest(g.Source):
			return nil, checkpoint.ErrGraphExists
		}
		return &storedGraph{Format: layout.Format, Name: g.Name, Version: g.Version, Created: layout.ToUnixNanos(g.Created), Source: g.Source}, nil
	})
}

// DeleteGraph removes a version of a graph, and keeps its tombstone. It returns
// checkpoint.ErrGraphNotFound when there is no such version, and checkpoint.ErrVersionsChanged
// when the condition does not hold.
func (s *Graphs) DeleteGraph(ctx context.Context, name, version string, condition checkpoint.GraphCondition) error {
	tried := false // the answer to a first try may have been lost
	return s.changeGraph(ctx, graphChange{name, version, condition}, func(old graphEntry) (*storedGraph, error) {
		switch {
		case tried && old.tombstone != "":
			return nil, errNothingToChange
		case old.record == "":
			return nil, checkpoint.ErrGraphNotFound
		}
		tried = true
		return nil, nil
	})
}

// errNothingToChange is returned by a decision that leaves the version as it is.
var errNothingToChange = errors.New("nothing is to be changed")

// graphChange is a change of a version of a graph.
type graphChange struct {
	name, version string
	condition     checkpoint.GraphCondition
}

// hashField returns the field of the version in the hash of graphs.
func (c *graphChange) hashField() string { return layout.AddLength(c.name) + c.version }

// changeGraph replaces the entry of a version by the graph that decide returns,
// nil = by a tombstone.
func (s *Graphs) changeGraph(ctx context.Context, c graphChange, decide func(graphEntry) (*storedGraph, error)) error {
	if err := s.database.CheckMetadata(ctx); err != nil { // nothing is put into another store
		return script.ToContractError(ctx, err)
	}
	missed := &script.Unanswered{}
	for {
		err := script.Retry(ctx, func() error { return s.replaceGraph(ctx, &c, decide, missed) })
		switch {
		case errors.Is(err, errNothingToChange):
			return nil
		case errors.Is(err, checkpoint.ErrGraphExists), errors.Is(err, checkpoint.ErrGraphNotFound),
			errors.Is(err, checkpoint.ErrVersionsChanged):
			return err
		case !errors.Is(err, errGraphChanged):
			return script.ToContractError(ctx, missed.WrapRefusal(err))
		}
	}
}

func (s *Graphs) replaceGraph(ctx context.Context, c *graphChange, decide func(graphEntry) (*storedGraph, error), missed *script.Unanswered) error {
	field := c.hashField()
	old, err := s.readGraphEntry(ctx, c)
	if err != nil {
		return err
	}
	next, err := decide(old)
	if err != nil {
		return err
	}
	if err := c.condition.CheckVersions(old.versions); err != nil {
		return err
	}
	var record, with string
	if next != nil {
		record = s.database.Box.Seal(seal.RecordPlace{Kind: layout.KindGraph, Name: field}, encodeGraph(next))
		with = strconv.FormatInt(next.Created, 10)
	} else {
		with = s.database.Box.Seal(seal.RecordPlace{Kind: layout.KindTombstone, Name: field}, checkpoint.GraphDigest(old.graph.Source))
	}
	keys := []string{s.database.Keys.GraphsKey(), s.database.Keys.GraphIndexKey(), s.database.Keys.TombstonesKey(), s.database.Keys.TombstoneOrderKey()}
	made, err := s.database.Scripts.Graph.Run(missed.WithContext(ctx), s.database.Client, keys,
		field, old.record, old.tombstone, record, with, s.maxTombstones, old.changeCount).Int()
	switch {
	case err == nil && made == 0:
		return errGraphChanged
	case err != nil && ctx.Err() != nil:
		missed.RecordCause(err) // the caller did not wait for the answer
	}
	return err
}

// readGraphEntry reads the entry of a version, and what the condition of its change needs.
// The script notices changes of other servers between the reads.
func (s *Graphs) readGraphEntry(ctx context.Context, c *graphChange) (old graphEntry, err error) {
	field := c.hashField()
	pipe := s.database.Client.Pipeline()
	var count *goredis.StringCmd
	var fields *goredis.StringSliceCmd
	if c.condition.IsSet() {
		count, fields = pipe.HGet(ctx, s.database.Keys.GraphIndexKey(), ""), pipe.HKeys(ctx, s.database.Keys.GraphsKey())
	}
	record, tombstone := pipe.HGet(ctx, s.database.Keys.GraphsKey(), field), pipe.HGet(ctx, s.database.Keys.TombstonesKey(), field)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return old, err
	}
	if err := record.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return old, err
	}
	if err := tombstone.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return old, err
	}
	if c.condition.IsSet() {
		if old.changeCount, old.versions, err = parseVersions(c.name, count, fields); err != nil {
			return old, err
		}
	}
	old.record, old.tombstone = record.Val(), tombstone.Val()
	if old.record != "" {
		if old.graph, err = s.decodeGraph(field, old.record); err != nil {
			return old, layout.WrapRecordError(err, "key %s, field %q", s.database.Keys.GraphsKey(), field)
		}
	}
	if old.tombstone != "" {
		_, text := splitDatedRecord(old.tombstone)
		old.digest, err = s.database.Box.Open(seal.RecordPlace{Kind: layout.KindTombstone, Name: field}, text)
	}
	return old, layout.WrapRecordError(err, "key %s, field %q", s.database.Keys.TombstonesKey(), field)
}

// parseVersions returns the number of changes of graphs and the versions of a graph.
func parseVersions(name string, count *goredis.StringCmd, fields *goredis.StringSliceCmd) (changes string, versions []string, err error) {
	if err := count.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return "", nil, err
	}
	for _, field := range fields.Val() {
		if of, version := layout.CutLength(field); of == name {
			versions = append(versions, version)
		}
	}
	return cmp.Or(count.Val(), "0"), versions, fields.Err()
}

// GraphRecord returns a version of a graph. It returns checkpoint.ErrGraphNotFound when
// there is no such version.
func (s *Graphs) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	field := layout.AddLength(name) + version
	var record string
	err := script.Retry(ctx, func() (err error) {
		record, err = s.database.Client.HGet(ctx, s.database.Keys.GraphsKey(), field).Result()
		return err
	})
	if errors.Is(err, goredis.Nil) {
		return checkpoint.GraphRecord{}, checkpoint.ErrGraphNotFound
	}
	if err != nil {
		return checkpoint.GraphRecord{}, script.ToContractError(ctx, err)
	}
	g, err := s.decodeGraph(field, record)
	if err != nil {
		return checkpoint.GraphRecord{}, layout.WrapRecordError(err, "key %s, field %q", s.database.Keys.GraphsKey(), field)
	}
	return g.toRecord(), nil
}

// GraphVersions lists every version of every graph without its source, oldest first, and
// returns the revision of the list. The list may be nil when known is the revision still.
func (s *Graphs) GraphVersions(ctx context.Context, known uint64) (list []checkpoint.GraphRecord, revision uint64, err error) {
	err = script.Retry(ctx, func() (err error) {
		revision, err = s.countGraphChanges(ctx)
		if err != nil || revision == known {
			return err
		}
		list, err = s.listGraphVersions(ctx)
		return err
	})
	return list, revision, script.ToContractError(ctx, err)
}

// countGraphChanges is read before the list, so that versions that change
// meanwhile are listed again and nothing is missed.
func (s *Graphs) countGraphChanges(ctx context.Context) (uint64, error) {
	n, err := s.database.Client.HGet(ctx, s.database.Keys.GraphIndexKey(), "").Uint64()
	if errors.Is(err, goredis.Nil) {
		err = nil // nothing has changed since a format without an index
	}
	return n + 1, err
}

func (s *Graphs) listGraphVersions(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	fields, err := s.database.Client.HKeys(ctx, s.database.Keys.GraphsKey()).Result()
	if err != nil {
		return nil, err
	}
	index, err := s.database.Client.HGetAll(ctx, s.database.Keys.GraphIndexKey()).Result()
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
		name, version := layout.CutLength(field)
		list = append(list, checkpoint.GraphRecord{Name: name, Version: version, Created: layout.FromUnixNanos(created)})
	}
	old, err := s.readGraphsWithoutIndex(ctx, missing)
	list = append(list, old...)
	sortGraphs(list)
	return list, err
}

// readGraphsWithoutIndex reads the graphs that a graphd without an index has put.
func (s *Graphs) readGraphsWithoutIndex(ctx context.Context, fields []string) (list []checkpoint.GraphRecord, err error) {
	for chunk := range slices.Chunk(fields, 16) {
		records, err := s.database.Client.HMGet(ctx, s.database.Keys.GraphsKey(), chunk...).Result()
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
				return nil, layout.WrapRecordError(err, "key %s, field %q", s.database.Keys.GraphsKey(), chunk[i])
			}
			r := g.toRecord()
			r.Source = ""
			list = append(list, r)
		}
	}
	return list, nil
}

// GraphRecords lists every version of every graph, oldest first.
func (s *Graphs) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	var all map[string]string
	err := script.Retry(ctx, func() (err error) {
		all, err = s.database.Client.HGetAll(ctx, s.database.Keys.GraphsKey()).Result()
		return err
	})
	if err != nil {
		return nil, script.ToContractError(ctx, err)
	}
	return s.decodeGraphs(all)
}

// ResealRecords seals all graphs, and the tombstones of deleted ones, with the
// present key: no server starts without its graphs, so they must not need an old
// key.
func (s *Graphs) ResealRecords(ctx context.Context) error {
	if s.database.Box.ActiveKeyID() == "" {
		return nil
	}
	if err := s.resealHash(ctx, s.database.Keys.GraphsKey(), layout.KindGraph, splitPlainRecord); err != nil {
		return err
	}
	return s.resealHash(ctx, s.database.Keys.TombstonesKey(), layout.KindTombstone, splitDatedRecord)
}

// splitPlainRecord says that a value is a record and nothing else.
func splitPlainRecord(value string) (before, record string) { return "", value }

// splitDatedRecord parts the time of a tombstone, and the space behind it, from its record.
func splitDatedRecord(value string) (before, record string) {
	end := strings.IndexByte(value, ' ') + 1
	return value[:end], value[end:]
}

// resealHash seals the records in a hash with the present key.
func (s *Graphs) resealHash(ctx context.Context, key, kind string, part func(value string) (before, record string)) error {
	all, err := s.database.Client.HGetAll(ctx, key).Result()
	if err != nil {
		return err
	}
	for field, value := range all {
		before, text := part(value)
		if id, _ := seal.SealingKeyID(text); id == s.database.Box.ActiveKeyID() {
			continue
		}
		at := seal.RecordPlace{Kind: kind, Name: field}
		record, err := s.database.Box.Open(at, text)
		if err != nil {
			continue // a read of the graph returns the error
		}
		if err := s.database.Client.HSet(ctx, key, field, before+s.database.Box.Seal(at, record)).Err(); err != nil {
			return err
		}
	}
	return nil
}
