package server

import (
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/schema"
)

// GraphOptions bound the cost of graphs and their schemas.
type GraphOptions struct {
	SchemaLimits   schema.Limits
	GraphLimits    graph.Limits
	RegistryLimits registry.Limits
}

// RegisterFlags registers these limits.
func (o *GraphOptions) RegisterFlags(f *pflag.FlagSet) {
	standard := graph.DefaultLimits()
	f.IntVar(&o.GraphLimits.Nodes, "max-graph-nodes", standard.Nodes, "how many nodes a graph may have, and how many state keys")
	f.IntVar(&o.GraphLimits.Bytes, "max-graph-bytes", standard.Bytes, "how long a graph may be, written as JSON")
	f.IntVar(&o.GraphLimits.ExpressionBytes, "max-graph-expression-bytes", standard.ExpressionBytes,
		"how long all expressions of a graph may be together")
	f.IntVar(&o.GraphLimits.Depth, "max-graph-depth", standard.Depth, "how many graphs may be inside of one another")
	f.IntVar(&o.GraphLimits.Expanded, "max-graph-expanded-nodes", standard.Expanded,
		"how many nodes a graph may have together with the graphs in it, each counted as often as it is there")
	f.IntVar(&o.RegistryLimits.Graphs, "max-graphs", 1000, "how many graphs there may be")
	f.IntVar(&o.RegistryLimits.Versions, "max-graph-versions", 10_000, "how many versions all graphs may have together")
	f.IntVar(&o.RegistryLimits.CacheBytes, "graph-cache-bytes", 64<<20, "how much memory compiled graphs may take that are kept ready")
	f.IntVar(&o.SchemaLimits.Bytes, "max-schema-bytes", 256<<10, "how long the text of a JSON Schema may be")
	f.IntVar(&o.SchemaLimits.Objects, "max-schema-objects", 4096, "how many objects, and so subschemas, a JSON Schema may have")
	f.IntVar(&o.SchemaLimits.Steps, "max-schema-steps", 4_000_000,
		"how many steps of some 50 ns a check against a JSON Schema may take, counted before it begins")
	f.IntVar(&o.SchemaLimits.CacheBytes, "schema-cache-bytes", 32<<20, "how much memory JSON Schemas may take that are kept ready")
}

// validateOptions refuses limits that are too small to work with.
func (o *GraphOptions) validateOptions() error {
	for _, limit := range []struct {
		flag        string
		value, most int
	}{
		{"max-graph-nodes", o.GraphLimits.Nodes, 1 << 20},
		{"max-graph-bytes", o.GraphLimits.Bytes, 1 << 30},
		{"max-graph-expression-bytes", o.GraphLimits.ExpressionBytes, 1 << 30},
		{"max-graph-depth", o.GraphLimits.Depth, 1000},
		{"max-graph-expanded-nodes", o.GraphLimits.Expanded, 1 << 30},
		{"max-graphs", o.RegistryLimits.Graphs, 1 << 20},
		{"max-graph-versions", o.RegistryLimits.Versions, 1 << 20},
		{"graph-cache-bytes", o.RegistryLimits.CacheBytes, 1 << 40},
		{"max-schema-bytes", o.SchemaLimits.Bytes, 1 << 24},
		{"max-schema-objects", o.SchemaLimits.Objects, 1 << 16},
		{"max-schema-steps", o.SchemaLimits.Steps, 1 << 30},
		{"schema-cache-bytes", o.SchemaLimits.CacheBytes, 1 << 40},
	} {
		if limit.value < 1 || limit.value > limit.most {
			return exit.Usagef("--%s is %d", limit.flag, limit.value).WithHint("want a number from 1 to %d", limit.most)
		}
	}
	return nil
}
