package main

import (
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/schema"
)

// graphOptions bound what graphs and their schemas may cost.
type graphOptions struct {
	Schemas schema.Limits
	Limits  graph.Limits
	Kept    registry.Limits
}

// register is the table of these limits.
func (o *graphOptions) register(f *pflag.FlagSet) {
	standard := graph.DefaultLimits()
	f.IntVar(&o.Limits.Nodes, "max-graph-nodes", standard.Nodes, "how many nodes a graph may have, and how many state keys")
	f.IntVar(&o.Limits.Bytes, "max-graph-bytes", standard.Bytes, "how long a graph may be, written as JSON")
	f.IntVar(&o.Limits.ExpressionBytes, "max-graph-expression-bytes", standard.ExpressionBytes,
		"how long all expressions of a graph may be together")
	f.IntVar(&o.Limits.Depth, "max-graph-depth", standard.Depth, "how many graphs may be inside of one another")
	f.IntVar(&o.Limits.Expanded, "max-graph-expanded-nodes", standard.Expanded,
		"how many nodes a graph may have together with the graphs in it, each counted as often as it is there")
	f.IntVar(&o.Kept.Graphs, "max-graphs", 1000, "how many graphs there may be")
	f.IntVar(&o.Kept.Versions, "max-graph-versions", 10_000, "how many versions all graphs may have together")
	f.IntVar(&o.Kept.CacheBytes, "graph-cache-bytes", 64<<20, "how much memory compiled graphs may take that are kept ready")
	f.IntVar(&o.Schemas.Bytes, "max-schema-bytes", 256<<10, "how long the text of a JSON Schema may be")
	f.IntVar(&o.Schemas.Objects, "max-schema-objects", 4096, "how many objects, and so subschemas, a JSON Schema may have")
	f.IntVar(&o.Schemas.Steps, "max-schema-steps", 4_000_000,
		"how many steps of some 50 ns a check against a JSON Schema may take, counted before it begins")
	f.IntVar(&o.Schemas.CacheBytes, "schema-cache-bytes", 32<<20, "how much memory JSON Schemas may take that are kept ready")
}

// check refuses limits that leave no room to work.
func (o *graphOptions) check() error {
	for _, limit := range []struct {
		flag        string
		value, most int
	}{
		{"max-graph-nodes", o.Limits.Nodes, 1 << 20},
		{"max-graph-bytes", o.Limits.Bytes, 1 << 30},
		{"max-graph-expression-bytes", o.Limits.ExpressionBytes, 1 << 30},
		{"max-graph-depth", o.Limits.Depth, 1000},
		{"max-graph-expanded-nodes", o.Limits.Expanded, 1 << 30},
		{"max-graphs", o.Kept.Graphs, 1 << 20},
		{"max-graph-versions", o.Kept.Versions, 1 << 20},
		{"graph-cache-bytes", o.Kept.CacheBytes, 1 << 40},
		{"max-schema-bytes", o.Schemas.Bytes, 1 << 24},
		{"max-schema-objects", o.Schemas.Objects, 1 << 16},
		{"max-schema-steps", o.Schemas.Steps, 1 << 30},
		{"schema-cache-bytes", o.Schemas.CacheBytes, 1 << 40},
	} {
		if limit.value < 1 || limit.value > limit.most {
			return cli.Usagef("--%s is %d", limit.flag, limit.value).WithHint("want a number from 1 to %d", limit.most)
		}
	}
	return nil
}
