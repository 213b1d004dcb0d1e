package worker

import "sync"

// resultBudget counts the bytes of results that came on streams and wait for their
// runs.
type resultBudget struct {
	maxBytes int64

	mu        sync.Mutex
	usedBytes int64
}

// newResultBudget makes a budget of so many bytes.
func newResultBudget(maxBytes int64) *resultBudget { return &resultBudget{maxBytes: maxBytes} }

// resultOverhead is about how many bytes a result takes that waits, besides its own.
const resultOverhead = 8 << 10

// reserveResult counts a result, if the limit allows it. A single one always fits.
func (b *resultBudget) reserveResult(c Completion) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usedBytes > 0 && b.usedBytes+int64(c.Bytes) > b.maxBytes {
		return false
	}
	b.usedBytes += int64(c.Bytes) + resultOverhead
	return true
}

// releaseResult counts a result no more.
func (b *resultBudget) releaseResult(c Completion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usedBytes -= int64(c.Bytes) + resultOverhead
}
