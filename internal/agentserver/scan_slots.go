package agentserver

import "context"

// maxScans bounds how many searches look at more than one page at once: each holds a page in memory,
// and its time is that of the processor.
const maxScans = 4

// scanSlots has a slot for each of these searches.
type scanSlots chan struct{}

func newScanSlots() scanSlots { return make(scanSlots, maxScans) }

// takeSlot waits for a slot, until ctx ends.
func (s scanSlots) takeSlot(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s scanSlots) freeSlot() { <-s }
