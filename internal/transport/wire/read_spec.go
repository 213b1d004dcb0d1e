package wire

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// ReadSpec converts a graph from a message, for clients that draw or check it. The
// error lists the fields that can't be read.
func ReadSpec(s *graphdv1.GraphSpec) (*graph.Spec, error) {
	v := &Validator{limits: payload.Limits{MaxBytes: DefaultMaxPayload, MaxDepth: DefaultMaxDepth}}
	spec := GraphSpecFromProto(v, s)
	return spec, v.Err()
}
