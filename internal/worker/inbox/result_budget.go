package inbox

import (
	"sync"

	"github.com/graphd-dev/graphd/internal/worker/message"
)

// ResultBudget counts the bytes of results that came on streams and wait for their
// runs.
type ResultBudget struct {
	maxBytes int64

	mu        sync.Mutex
	usedBytes int64
}

// NewResultBudget makes a budget of so many bytes.
func NewResultBudget(maxBytes int64) *ResultBudget { return &ResultBudget{maxBytes: maxBytes} }

// resultOverhead estimates the bytes of memory that a waiting result takes in
// addition to its own.
const resultOverhead = 8 << 10

// ReserveResult counts a result, if the limit allows it. A single result always
// fits.
func (b *ResultBudget) ReserveResult(c message.Completion) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usedBytes > 0 && b.usedBytes+int64(c.Bytes) > b.maxBytes {
		return false
	}
	b.usedBytes += int64(c.Bytes) + resultOverhead
	return true
}

// ReleaseResult counts a result no more.
func (b *ResultBudget) ReleaseResult(c message.Completion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usedBytes -= int64(c.Bytes) + resultOverhead
}
