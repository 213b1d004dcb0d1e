package superstep

import (
	"crypto/sha256"
	"sync"

	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// valueDigests remember the digests of large values of a graph from one superstep to the
// next, so that a value that stays is read once. They hold one value of each key that was
// asked for.
type valueDigests struct {
	mu    sync.Mutex
	byKey map[string]valueDigest
}

// valueDigest is a digest with its value, so that it is never taken for that of another one.
type valueDigest struct {
	value pregel.StoredValue
	sum   [sha256.Size]byte
}

// DigestValue returns the SHA-256 of the text of a value.
func (d *valueDigests) DigestValue(key string, v pregel.StoredValue) [sha256.Size]byte {
	d.mu.Lock()
	defer d.mu.Unlock() // tasks of a superstep that want the same digest wait for it
	if known, ok := d.byKey[key]; ok && known.value.IsSame(v) {
		return known.sum
	}
	if d.byKey == nil {
		d.byKey = make(map[string]valueDigest, 1)
	}
	sum := v.Digest()
	d.byKey[key] = valueDigest{v, sum}
	return sum
}

// dropReplaced forgets the values that a state does not have any more, so that nothing holds them.
func (d *valueDigests) dropReplaced(s *pregel.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byKey) == 0 {
		return
	}
	present := make(map[string]valueDigest, len(d.byKey))
	for key, value := range s.FullView().StoredValues() {
		if known, ok := d.byKey[key]; ok && known.value.IsSame(value) {
			present[key] = known
		}
	}
	d.byKey = present
}
