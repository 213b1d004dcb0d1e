package snapshot

import (
	"context"
	"errors"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// maxPageReadBytes is the limit of the bytes of checkpoints that a page of a history reads.
// The last read of the store may pass it.
const maxPageReadBytes = 16 * checkpoint.ReadBytes

// ListStates lists older states of a namespace, newest first: at most the limit of the
// query, and fewer when they are large. more reports whether there may be others. It
// reads the states in parts, and holds a single part at a time. The errors are *Error:
// THREAD_NOT_FOUND, GRAPH_NOT_FOUND, PAYLOAD_TOO_LARGE, and those of the store.
func (r *Reader) ListStates(ctx context.Context, q runtime.HistoryQuery) (list []runtime.Snapshot, more bool, err error) {
	memory := r.reader.CallReservation(q.Memory, q.MaxBytes)
	err = r.reader.RetryLargeRead(ctx, memory, runtime.ReadWaitTimeout, func() error {
		list, more, err = r.listStates(ctx, q, memory)
		return err
	})
	return list, more, err
}

// listStates reads checkpoints until the page is full. It reports whether there may be
// more.
func (r *Reader) listStates(ctx context.Context, q runtime.HistoryQuery, memory *runtime.ReadReservation) (list []runtime.Snapshot, more bool, err error) {
	head, err := r.reader.Thread(ctx, q.Thread)
	if err != nil {
		return nil, false, err
	}
	h := &historyPage{builder: builder{reader: r.reader, store: r.store, head: &head, maxBytes: q.MaxBytes, reservation: memory}, query: q}
	for {
		limit := 0
		if q.Limit > 0 {
			limit = q.Limit - len(h.snapshots) + 1
		}
		part, err := r.store.Checkpoints(ctx, checkpoint.CheckpointQuery{
			Thread: q.Thread, Namespace: q.Namespace, Before: h.query.Before, Limit: limit, AnyTask: q.Namespace != "",
		})
		if err != nil {
			return nil, false, runtime.TranslateStoreError(err)
		}
		portion := checkpoint.Portion{Limit: limit}
		for _, cp := range part {
			portion.Take(cp.Size())
			h.readBytes += cp.Size()
		}
		if err := memory.CheckFits(h.readBytes); err != nil {
			return nil, false, err
		}
		done, err := h.addCheckpoints(ctx, part)
		if err != nil || done {
			return h.snapshots, true, err
		}
		if !portion.Full() {
			return h.snapshots, false, nil
		}
	}
}

// historyPage builds a page of a history.
type historyPage struct {
	builder

	query         runtime.HistoryQuery // Before is where the page goes on
	snapshots     []runtime.Snapshot
	snapshotBytes int  // that snapshots hold
	readBytes     int  // that were read for it
	readsAlone    bool // interrupts of subgraphs are read for each snapshot alone
}

// addCheckpoints adds snapshots of checkpoints, and reports whether the page is full or has
// read enough.
func (h *historyPage) addCheckpoints(ctx context.Context, part []*checkpoint.Checkpoint) (done bool, err error) {
	for len(part) > 0 {
		some, results, err := h.findFittingResults(ctx, part)
		if err != nil {
			return false, err
		}
		h.setShown(some)
		for _, cp := range some {
			if h.query.Limit > 0 && len(h.snapshots) == h.query.Limit {
				return true, nil
			}
			if done, err := h.addSnapshot(ctx, cp, results); err != nil || done {
				return done, err
			}
			h.query.Before = cp.Seq
		}
		part = part[len(some):]
	}
	return h.readBytes >= maxPageReadBytes, nil
}

// findFittingResults finds the results of the tasks of checkpoints. When they are too much
// for an answer it leaves out the last checkpoints, and returns the others.
func (h *historyPage) findFittingResults(ctx context.Context, part []*checkpoint.Checkpoint) ([]*checkpoint.Checkpoint, taskResults, error) {
	for {
		results, err := h.findResults(ctx, part)
		switch {
		case !errors.Is(err, errTooManyResults):
			return part, results, err
		case len(part) == 1:
			return nil, nil, tooLargeError(part[0], h.maxBytes)
		}
		part = part[:len(part)/2]
	}
}

// addSnapshot adds the snapshot of a checkpoint, or reports that the page has no room for
// it.
func (h *historyPage) addSnapshot(ctx context.Context, cp *checkpoint.Checkpoint, results taskResults) (done bool, err error) {
	g, err := h.reader.GraphOfCheckpoint(h.head, cp)
	if err != nil {
		return false, err
	}
	snap, err := h.buildSnapshot(ctx, pregel.LoadState(g, cp, true, pregel.Limits{}), results)
	bare := *cp // without the state: snap.Values has it
	bare.Channels = nil
	size := bare.Size() + len(snap.Values) + h.heldBytes
	over := errors.Is(err, errTooManyResults) || h.maxBytes > 0 && h.snapshotBytes+size > h.maxBytes
	switch {
	case over && len(h.snapshots) > 0:
		return true, nil
	case over:
		return false, tooLargeError(cp, h.maxBytes)
	case err != nil:
		return false, err
	}
	snap.Checkpoint = &bare
	snap.LastEvent, snap.LogID = h.head.LastEvent, h.head.LogID
	h.snapshots = append(h.snapshots, snap)
	h.snapshotBytes += size
	return false, nil
}

// buildSnapshot returns the snapshot of a state. It reads the interrupts in the subgraphs
// of all tasks on the page at once, unless they are too much for an answer.
func (h *historyPage) buildSnapshot(ctx context.Context, s *pregel.State, results taskResults) (runtime.Snapshot, error) {
	one := []*checkpoint.Checkpoint{s.Checkpoint()}
	if h.readsAlone {
		h.setShown(one)
	}
	h.heldBytes = 0
	snap, err := h.pastSnapshot(ctx, s, results, h.query.WithValues)
	if errors.Is(err, errTooManyResults) && !h.readsAlone {
		h.readsAlone = true
		h.setShown(one)
		h.heldBytes = 0
		snap, err = h.pastSnapshot(ctx, s, results, h.query.WithValues)
	}
	return snap, err
}

// tooLargeError returns the error for a snapshot that is too large for any answer.
func tooLargeError(cp *checkpoint.Checkpoint, memory int) error {
	return runtime.Errorf(runtime.ReasonPayloadTooLarge,
		"the state at checkpoint %q has more than %d bytes, with what its tasks have returned and asked; "+
			"ask for it alone with GetState and a few keys, or for subgraphs by their namespaces", cp.ID, memory).
		With("checkpointId", cp.ID).With("limitBytes", strconv.Itoa(memory)).WithLimit("max-message", int64(memory), 0)
}
