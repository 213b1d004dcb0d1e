package snapshot

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// builder puts snapshots of one thread together.
type builder struct {
	reader        *query.Reader
	store         Store
	head          *checkpoint.Head
	reservation   *runtime.ReadReservation // for what is read; nil = its size does not matter
	withSubgraphs bool
	maxBytes      int // bytes that what is shown beside the values may hold, 0 = any number
	heldBytes     int // of these
	subgraphInterrupts
}

// addBytes counts what is shown. The error is errTooManyResults when it is too much
// for one answer.
func (b *builder) addBytes(bytes int) error {
	if b.heldBytes += bytes; b.maxBytes > 0 && b.heldBytes > b.maxBytes {
		return errTooManyResults
	}
	return nil
}

// taskBytes is about how many bytes a task adds to an answer.
func taskBytes(t *runtime.SnapshotTask) int {
	n := len(t.Result) + len(t.Namespace)
	if t.Failure != nil {
		n += len(t.Failure.Message) + len(t.Failure.Stack)
	}
	for i := range t.Interrupts {
		n += t.Interrupts[i].Size()
	}
	if t.State != nil {
		n += len(t.State.Values)
	}
	return n
}
