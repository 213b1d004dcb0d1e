package snapshot

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// builder builds snapshots of a thread.
type builder struct {
	reader        *query.Reader
	store         Store
	head          *checkpoint.Head
	reservation   *runtime.ReadReservation // for records that it reads; nil = without a limit
	withSubgraphs bool
	onlyOutput    bool
	maxBytes      int // limit of the bytes that a snapshot holds besides its values, 0 = no limit
	heldBytes     int // of these
	subgraphInterrupts
}

// addBytes adds to the size of the snapshot. It returns errTooManyResults when the snapshot
// is too large for an answer.
func (b *builder) addBytes(bytes int) error {
	if b.heldBytes += bytes; b.maxBytes > 0 && b.heldBytes > b.maxBytes {
		return errTooManyResults
	}
	return nil
}

// taskBytes returns about how many bytes a task adds to an answer.
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
