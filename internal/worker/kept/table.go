// Package kept knows which values of states a worker keeps, so that each is sent to it once.
//
// The server alone decides what a worker keeps: it says with each value whether to keep it, and
// later when to forget it. So the worker needs no rule, and both sides know the same.
package kept

import (
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"
)

// Bounds of what a worker keeps.
const (
	// MinBytes is the size below which a value is sent each time: its digest would cost more.
	MinBytes = 4 << 10
	// MaxValues bounds the values of one worker, and with them the memory of the server: about
	// 200 bytes for each.
	MaxValues = 1024
)

// Digest names a value: the SHA-256 of its JSON text.
type Digest = [sha256.Size]byte

// Table has the values that the worker of one stream keeps. It is safe for concurrent use. A nil
// table is that of a worker that keeps nothing.
type Table struct {
	maxBytes int64
	counts   *Counts

	mu        sync.Mutex
	bytes     int64
	values    map[Digest]*value
	order     value    // in the ring of all values, between the oldest and the newest
	forgotten []Digest // the worker has not been told
}

// Counts are those of all tables of a server.
type Counts struct {
	OmittedBytes atomic.Uint64 // of values that were not sent, because the worker keeps them
	ResentTasks  atomic.Uint64 // tasks that were sent again because their workers lacked values
}

// value is one that the worker keeps, in the ring of all.
type value struct {
	digest       Digest
	size         int
	newer, older *value
}

// linkBehind puts a value into the ring, as the one that is older than another.
func (v *value) linkBehind(newer *value) {
	v.newer, v.older = newer, newer.older
	v.older.newer, newer.older = v, v
}

func (v *value) unlink() { v.newer.older, v.older.newer = v.older, v.newer }

// NewTable makes the table of a worker that keeps some bytes. It returns nil for one that keeps none.
func NewTable(maxBytes int64, counts *Counts) *Table {
	if maxBytes < MinBytes {
		return nil
	}
	t := &Table{maxBytes: maxBytes, counts: counts, values: make(map[Digest]*value)}
	t.order.newer, t.order.older = &t.order, &t.order
	return t
}

// MayKeep reports whether a value of a size takes part.
func (t *Table) MayKeep(size int) bool {
	return t != nil && size >= MinBytes && int64(size) <= t.maxBytes
}

// UseValue reports whether the worker keeps a value, which need not be sent then. It counts as used.
func (t *Table) UseValue(d Digest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.values[d]
	if v == nil {
		return false
	}
	v.unlink()
	v.linkBehind(&t.order)
	t.counts.OmittedBytes.Add(uint64(v.size))
	return true
}

// AddValue notes that the worker is about to be told to keep a value. The values that were not used
// for longest make place.
func (t *Table) AddValue(d Digest, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[d] != nil {
		return
	}
	t.forgotten = slices.DeleteFunc(t.forgotten, func(f Digest) bool { return f == d })
	v := &value{digest: d, size: size}
	v.linkBehind(&t.order)
	t.values[d] = v
	t.bytes += int64(size)
	for t.bytes > t.maxBytes || len(t.values) > MaxValues {
		t.forgetValue(t.order.newer)
	}
}

// RemoveValues forgets values that the worker lacks. Others are ignored.
func (t *Table) RemoveValues(digests []Digest) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range digests {
		if v := t.values[d]; v != nil {
			t.forgetValue(v)
		}
	}
}

// forgetValue removes a value. The worker is told also when it lacks it: the value may still be on
// its way. mu is held.
func (t *Table) forgetValue(v *value) {
	v.unlink()
	delete(t.values, v.digest)
	t.bytes -= int64(v.size)
	t.forgotten = append(t.forgotten, v.digest)
}

// TakeForgotten returns the values that the worker has to be told to forget, the first ones of them.
func (t *Table) TakeForgotten(most int) []Digest {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.forgotten[:min(most, len(t.forgotten))]
	if t.forgotten = t.forgotten[len(out):]; len(t.forgotten) == 0 {
		t.forgotten = nil
	}
	return slices.Clip(out)
}
