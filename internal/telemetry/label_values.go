package telemetry

import "sync"

// otherValue stands for all values of a label beyond its limit.
const otherValue = "other"

// labelValues are the values that a label may have. Clients choose them, and each
// costs memory here and in every scraper, so their number is limited. The first
// values have series of their own for as long as the process lives. It is safe for
// concurrent use.
type labelValues[K comparable] struct {
	limit int

	mu     sync.RWMutex
	values map[K]struct{}
}

func newLabelValues[K comparable](limit int) *labelValues[K] {
	return &labelValues[K]{limit: limit, values: make(map[K]struct{})}
}

// admitValue reports whether a value has series of its own.
func (l *labelValues[K]) admitValue(value K) bool {
	l.mu.RLock()
	_, ok := l.values[value]
	full := len(l.values) >= l.limit
	l.mu.RUnlock()
	if ok || full {
		return ok
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.values) >= l.limit {
		_, ok = l.values[value]
		return ok
	}
	l.values[value] = struct{}{}
	return true
}

// valueOrOther returns the value, or otherValue beyond the limit.
func valueOrOther(n *labelValues[string], value string) string {
	if n.admitValue(value) {
		return value
	}
	return otherValue
}
