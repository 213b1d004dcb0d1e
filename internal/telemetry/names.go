package telemetry

import "sync"

// otherName stands for all values of a label beyond its limit.
const otherName = "other"

// names are the values that a label may have. Clients choose them, and each
// costs the process and whatever scrapes it, so there is a limit: the first
// ones have a series of their own for as long as the process lives. It is safe
// for concurrent use.
type names[K comparable] struct {
	limit int

	mu    sync.RWMutex
	known map[K]struct{}
}

func newNames[K comparable](limit int) *names[K] {
	return &names[K]{limit: limit, known: make(map[K]struct{})}
}

// has reports whether a value has series of its own.
func (n *names[K]) has(value K) bool {
	n.mu.RLock()
	_, ok := n.known[value]
	full := len(n.known) >= n.limit
	n.mu.RUnlock()
	if ok || full {
		return ok
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= n.limit {
		_, ok = n.known[value]
		return ok
	}
	n.known[value] = struct{}{}
	return true
}

// label is the value, or what stands for it.
func label(n *names[string], value string) string {
	if n.has(value) {
		return value
	}
	return otherName
}
