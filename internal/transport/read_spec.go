package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// ReadSpec converts a graph that came over the wire, for clients that draw or
// check it. The error lists the fields that can't be read.
func ReadSpec(s *graphdv1.GraphSpec) (*graph.Spec, error) {
	b := &validator{limits: payload.Limits{MaxBytes: defaultMaxPayload, MaxDepth: defaultMaxDepth}}
	spec := graphSpecFromProto(b, s)
	return spec, b.err()
}
