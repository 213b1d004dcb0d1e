package superstep

import (
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// replay is a replay under way, shared by all loops of the run.
type replay struct {
	beforeSeq uint64                 // subgraphs stand where they stood before this number
	target    *checkpoint.Checkpoint // of a subgraph, to be replayed; nil = of the root

	mu      sync.Mutex
	visited map[string]bool // namespaces that were put back already
}
