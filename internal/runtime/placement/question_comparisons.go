package placement

import (
	"sync"
	"weak"

	"github.com/graphd-dev/graphd/internal/graph"
)

// maxComparisons bounds the comparisons that are remembered.
const maxComparisons = 1024

// questionComparisons compares the questions of versions of graphs, and remembers the
// results: a comparison encodes both graphs.
type questionComparisons struct {
	mu      sync.Mutex
	results map[versionPair]bool
}

// versionPair is two versions of a graph. It does not keep them in memory.
type versionPair struct{ newest, older weak.Pointer[graph.Graph] }

// keepsQuestions reports whether an older version asks all questions of the newest one,
// and has no way around them.
func (c *questionComparisons) keepsQuestions(newest, older *graph.Graph) bool {
	pair := versionPair{weak.Make(newest), weak.Make(older)}
	c.mu.Lock()
	kept, isKnown := c.results[pair]
	c.mu.Unlock()
	if isKnown {
		return kept
	}
	kept = len(graph.ListRemovedQuestions(newest.Spec, older.Spec)) == 0
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil || len(c.results) >= maxComparisons {
		c.results = make(map[versionPair]bool)
	}
	c.results[pair] = kept
	return kept
}
