package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

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

func encodeGraph(g *checkpoint.GraphRecord) string {
	// No field of it can fail to be written.
	b, _ := json.Marshal(graph{
		Format: format, Name: g.Name, Version: g.Version, Created: nanos(g.Created), Source: g.Source,
	})
	return string(b)
}

func (s *Store) decodeGraph(field, record string) (checkpoint.GraphRecord, error) {
	record, err := s.box.Open(seal.Place{Kind: kindGraph, Name: field}, record)
	if err != nil {
		return checkpoint.GraphRecord{}, err
	}
	var g graph
	if err := json.Unmarshal([]byte(record), &g); err != nil || g.Format != format {
		return checkpoint.GraphRecord{}, corrupt("%.40q is no graph of format %d", record, format)
	}
	return checkpoint.GraphRecord{
		Name: g.Name, Version: g.Version, Source: g.Source, Created: instant(g.Created),
	}, nil
}

func (s *Store) decodeGraphs(records map[string]string) ([]checkpoint.GraphRecord, error) {
	out := make([]checkpoint.GraphRecord, 0, len(records))
	for field, record := range records {
		g, err := s.decodeGraph(field, record)
		if err != nil {
			return nil, of(err, "key %s, field %q", s.keys.graphs(), field)
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b checkpoint.GraphRecord) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return out, nil
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
