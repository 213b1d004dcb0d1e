package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// LoadState reads the newest state of a thread's root graph. Errors:
// *checkpoint.LargeError when it is large and there is no memory for it yet, and those
// of runtime.TranslateStoreError.
func (r *Reader) LoadState(ctx context.Context, memory *runtime.ReadReservation, head *checkpoint.Head, g *graph.Graph) (*pregel.State, error) {
	if head.Checkpoint == "" {
		return pregel.NewState(g, "", r.opts.Limits), nil
	}
	cp, err := r.ReadCheckpoint(ctx, memory, head.Thread, "", head.Checkpoint)
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return nil, large
	}
	if err != nil {
		return nil, runtime.TranslateStoreError(fmt.Errorf("checkpoint %s: %w", head.Checkpoint, err))
	}
	return pregel.LoadState(g, cp, head.Branched, r.opts.Limits), nil
}

// FindGraph finds the graph that a thread is pinned to. Errors: those of runtime.Graphs.
func (r *Reader) FindGraph(name, version string) (*graph.Graph, error) {
	return r.opts.Graphs.Graph(name, version)
}

// LoadStateReserved loads the state of a namespace at a checkpoint, "" = the
// newest, when there is memory for it.
func (r *Reader) LoadStateReserved(
	ctx context.Context, memory *runtime.ReadReservation, timeout time.Duration, head *checkpoint.Head, namespace, id string,
) (s *pregel.State, err error) {
	err = r.RetryLargeRead(ctx, memory, timeout, func() error {
		s, err = r.LoadStateAt(ctx, memory, head, namespace, id)
		return err
	})
	memory.ReleaseUnused()
	return s, err
}

// LoadStateAt loads the state of a namespace at a checkpoint, "" = the newest. Without a
// memory its size does not matter. Errors: those of FindCheckpoint and FindGraph.
func (r *Reader) LoadStateAt(ctx context.Context, memory *runtime.ReadReservation, head *checkpoint.Head, namespace, id string) (*pregel.State, error) {
	if id == "" && namespace == "" {
		id = head.Checkpoint
	}
	if id == "" && namespace == "" {
		g, err := r.FindGraph(head.Graph, head.Version)
		if err != nil {
			return nil, err
		}
		return pregel.NewState(g, "", r.opts.Limits), nil
	}
	cp, err := r.FindCheckpoint(ctx, memory, head.Thread, namespace, id)
	if err != nil {
		return nil, err
	}
	g, err := r.GraphOfCheckpoint(head, cp)
	if err != nil {
		return nil, err
	}
	return pregel.LoadState(g, cp, head.Branched || cp.ID != head.Checkpoint, r.opts.Limits), nil
}

// GraphOfCheckpoint returns the graph of a checkpoint's namespace: the thread's present
// graph, or the graph that wrote the checkpoint. Errors: those of FindGraph.
func (r *Reader) GraphOfCheckpoint(head *checkpoint.Head, cp *checkpoint.Checkpoint) (*graph.Graph, error) {
	if cp.Namespace == "" {
		return r.FindGraph(head.Graph, head.Version)
	}
	return r.FindGraph(cp.Graph, cp.Version)
}

// FindCheckpoint loads a checkpoint. The namespace may lack the task ids. Errors: *Error
// CHECKPOINT_NOT_FOUND, those of runtime.TranslateStoreError, and *checkpoint.LargeError
// when there is no memory for it yet.
func (r *Reader) FindCheckpoint(ctx context.Context, memory *runtime.ReadReservation, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	cp, err := r.ReadCheckpoint(ctx, memory, thread, namespace, id)
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) && namespace != "" {
		if memory != nil && memory.MustKnowSize() { // its size is not known before it is found
			return nil, &checkpoint.LargeError{}
		}
		if cp, err = r.findAnyTask(ctx, thread, namespace, id); err == nil {
			err = memory.CheckFits(cp.Size())
		}
	}
	large, isLarge := errors.AsType[*checkpoint.LargeError](err)
	switch {
	case isLarge:
		return nil, large
	case errors.Is(err, checkpoint.ErrCheckpointNotFound):
		return nil, runtime.Errorf(runtime.ReasonCheckpointNotFound, "thread %q has no checkpoint %q in namespace %q",
			tenant.ClientName(thread), id, namespace).With("threadId", tenant.ClientName(thread)).With("checkpointId", id).WithCause(err)
	case err != nil:
		return nil, runtime.TranslateStoreError(err)
	}
	return cp, nil
}

// findAnyTask finds a checkpoint in all namespaces with the same node names.
func (r *Reader) findAnyTask(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	q := checkpoint.CheckpointQuery{Thread: thread, Namespace: namespace, AnyTask: true, Limit: 1}
	if seq, ok := checkpointSeq(id); ok {
		q.Before = seq + 1
	} else if id != "" {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	list, err := r.store.Checkpoints(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || id != "" && list[0].ID != id {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	return list[0], nil
}

// checkpointSeq returns the number in the id of a checkpoint.
func checkpointSeq(id string) (seq uint64, ok bool) {
	digits, _, ok := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(digits, 16, 64)
	return seq, ok && err == nil && len(digits) == 12
}

// FindCheckpointSeq returns the number of a checkpoint of the root. It does not read a
// large state. Errors: those of the store, as it gives them.
func (r *Reader) FindCheckpointSeq(ctx context.Context, thread, id string) (uint64, error) {
	cp, err := r.store.ReadCheckpointWithin(ctx, thread, "", id, r.opts.SmallStateBytes)
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large.Seq, nil
	}
	if err != nil {
		return 0, err
	}
	return cp.Seq, nil
}

// fillOutput fills in the output of a run from its checkpoint. It leaves the
// output unset when the checkpoint, or the graph, no longer exists.
func (r *Reader) fillOutput(ctx context.Context, memory *runtime.CallMemory, run *checkpoint.Run, answer int) error {
	if run.Result == "" {
		return nil
	}
	g, err := r.FindGraph(run.Graph, run.Version)
	if err != nil {
		return nil // the run is shown without it
	}
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	held := r.AnswerReservation(memory, &own, answer)
	var cp *checkpoint.Checkpoint
	err = r.RetryLargeRead(ctx, held, runtime.ReadWaitTimeout, func() error {
		cp, err = r.ReadCheckpoint(ctx, held, run.Thread, "", run.Result)
		return err
	})
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return nil
	}
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	run.Output = pregel.LoadState(g, cp, false, pregel.Limits{}).Output()
	return nil
}
