// Package snapshot shows threads as they are and as they were: states with the tasks of
// their supersteps, the results of the tasks, and their questions.
package snapshot

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// Store reads the history and the log of a thread, which the query reader does not read.
type Store interface {
	Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error)
	Checkpoints(ctx context.Context, q checkpoint.CheckpointQuery) ([]*checkpoint.Checkpoint, error)
	Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error)
}

// Options are the dependencies and limits of a Reader.
type Options struct {
	Store     Store
	Reader    *query.Reader
	Committer *commit.Committer
}

// Reader reads threads as snapshots. It keeps nothing between two calls.
type Reader struct {
	store     Store
	reader    *query.Reader
	committer *commit.Committer
}

// New makes a reader.
func New(o Options) *Reader {
	return &Reader{store: o.Store, reader: o.Reader, committer: o.Committer}
}

// ReadState reads a state. The newest state includes the results so far of the tasks of its
// superstep, and an older state is as it was. For a large state the call waits for memory
// until timeout. The errors are *Error: THREAD_NOT_FOUND,
// CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, INVALID_FIELD, and those of the store.
func (r *Reader) ReadState(ctx context.Context, req runtime.StateRequest, timeout time.Duration) (runtime.Snapshot, error) {
	return commit.RetryOnConflict(ctx, r.committer, func(seen *checkpoint.Head) (runtime.Snapshot, error) { return r.tryState(ctx, req, timeout, seen) })
}

func (r *Reader) tryState(
	ctx context.Context, req runtime.StateRequest, timeout time.Duration, seen *checkpoint.Head,
) (snap runtime.Snapshot, err error) {
	memory := r.reader.CallReservation(req.Memory, req.MaxBytes)
	err = r.reader.RetryLargeRead(ctx, memory, timeout, func() error {
		snap, err = r.readState(ctx, req, memory, seen)
		return err
	})
	return snap, err
}

// readState reads the state of a request. It stores the head that it has read in seen.
func (r *Reader) readState(ctx context.Context, req runtime.StateRequest, memory *runtime.ReadReservation, seen *checkpoint.Head) (runtime.Snapshot, error) {
	head, err := r.reader.Thread(ctx, req.Thread)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	*seen = head
	if head.Graph == "" {
		return runtime.Snapshot{Values: "{}", Checkpoint: &checkpoint.Checkpoint{}, LogID: head.LogID}, nil
	}
	b := &builder{reader: r.reader, store: r.store, head: &head, withSubgraphs: req.WithSubgraphs, onlyOutput: req.OnlyOutput, maxBytes: req.MaxBytes, reservation: memory}
	snap, err := b.readSnapshot(ctx, req.Namespace, req.Checkpoint)
	if errors.Is(err, errTooManyResults) {
		return snap, tooLargeError(snap.Checkpoint, b.maxBytes)
	}
	if err != nil {
		return snap, err
	}
	if len(req.Keys) > 0 {
		snap.Values, err = selectKeys(snap.Values, req.Keys)
	}
	snap.LastEvent, snap.LogID = head.LastEvent, head.LogID
	return snap, err
}

// ReadOutputOfWaiting returns the output keys of the newest state of a run that waits for
// answers, with the results so far of the tasks of its superstep. It is "" when the thread has
// gone on with another run. The errors are those of ReadState.
func (r *Reader) ReadOutputOfWaiting(ctx context.Context, memory *runtime.CallMemory, run *checkpoint.Run) (payload.JSON, error) {
	head, err := r.reader.Thread(ctx, run.Thread)
	if err != nil || head.Run != run.ID {
		return "", err
	}
	snap, err := r.ReadState(ctx, runtime.StateRequest{Thread: run.Thread, OnlyOutput: true, Memory: memory}, runtime.PartWaitTimeout)
	return snap.Values, err
}

func selectKeys(values payload.JSON, keys []string) (payload.JSON, error) {
	fields, err := payload.Fields(values)
	if err != nil {
		return values, runtime.Errorf(runtime.ReasonInvalidField, "the state is one value and has no keys").
			WithViolation("keys", "must be empty for this graph")
	}
	fields = slices.DeleteFunc(fields, func(f payload.Field) bool { return !slices.Contains(keys, f.Key) })
	return payload.Object(fields), nil
}

// ReadValues returns the values at a checkpoint. The errors are those of ReadInput.
func (r *Reader) ReadValues(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string) (values payload.JSON, err error) {
	err = r.showState(ctx, memory, thread, namespace, id, func(s *pregel.State) { values = s.Values() })
	return values, err
}

// ReadInput returns the input of a node from the state at a checkpoint. The errors are
// *Error: CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, and those of the store; a node
// that the graph no longer has sees nothing.
func (r *Reader) ReadInput(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id, node string) (input payload.JSON, err error) {
	err = r.showState(ctx, memory, thread, namespace, id, func(s *pregel.State) {
		if n, ok := s.Graph().Node(node); ok {
			input = s.NodeView(n).Object()
		}
	})
	return input, err
}

// showState shows the state at a checkpoint, and holds memory for it meanwhile.
func (r *Reader) showState(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string, show func(*pregel.State)) error {
	head, err := r.reader.Thread(ctx, thread)
	if err != nil {
		return err
	}
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	s, err := r.reader.LoadStateReserved(ctx, r.reader.AnswerReservation(memory, &own, 0), runtime.WaitForever, &head, namespace, id)
	if err != nil {
		return err
	}
	show(s)
	return nil
}
