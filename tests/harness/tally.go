package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tally counts what happened, by name.
type Tally struct {
	mu     sync.Mutex
	counts map[string]int
}

// CountEvent counts what happened once more.
func (t *Tally) CountEvent(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	t.counts[what]++
}

// CountOf returns how often it happened.
func (t *Tally) CountOf(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[what]
}

// String lists the counts.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, t.counts[what]))
	}
	return strings.Join(parts, ", ")
}
