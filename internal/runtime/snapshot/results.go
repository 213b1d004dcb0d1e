package snapshot

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// taskResult is the result of a task as the event log has it.
type taskResult struct {
	isEnded bool
	result  payload.JSON
	run     string
	failure *checkpoint.Failure // of its last attempt that failed
}

// taskResults are results of tasks, by task id.
type taskResults map[string]taskResult

// fillTask fills the result of a task in. A task whose error handler has taken over has
// a failure and no result.
func (tr taskResults) fillTask(t *runtime.SnapshotTask) {
	did := tr[t.ID]
	t.Result, t.Failure = did.result, did.failure
}

// maxScannedEvents and maxScannedBytes bound the part of the log that is searched for the
// results of old tasks.
const (
	maxScannedEvents = 8192
	maxScannedBytes  = maxScannedEvents / query.EventPageSize * checkpoint.ReadBytes
)

// findResults finds the results of tasks since the oldest of some checkpoints in the event
// log. It returns errTooManyResults when they are too much for an answer.
func (b *builder) findResults(ctx context.Context, list []*checkpoint.Checkpoint) (taskResults, error) {
	from, due := ^uint64(0), make(map[string]bool)
	for _, cp := range list {
		from = min(from, cp.Event)
		for _, next := range cp.Next {
			due[next.ID] = true
		}
	}
	found := make(taskResults, len(due))
	for read, bytes := 0, 0; len(due) > 0 && read < maxScannedEvents && bytes < maxScannedBytes; {
		events, err := b.store.Events(ctx, b.head.Thread, from, query.EventPageSize)
		if errors.Is(err, checkpoint.ErrTrimmed) {
			from = b.head.FirstEvent
			if b.head.FirstEvent == 0 {
				return found, nil
			}
			read += query.EventPageSize
			continue
		}
		if err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		for i := range events {
			bytes += events[i].Size()
			found.recordEvent(&events[i], due)
		}
		if b.maxBytes > 0 && found.totalBytes() > b.maxBytes {
			return nil, errTooManyResults
		}
		if len(events) == 0 || !checkpoint.IsPart(events, query.EventPageSize, (*checkpoint.Event).Size) {
			return found, nil
		}
		from = events[len(events)-1].Seq
		read += len(events)
		if all, err := b.areResultsFinal(ctx, list, found); err != nil || all {
			return found, err
		}
	}
	return found, nil
}

// errTooManyResults says that the results of tasks are too large for an answer.
var errTooManyResults = errors.New("results are too large for one answer")

// totalBytes returns about how many bytes the results have.
func (tr taskResults) totalBytes() (n int) {
	for _, did := range tr {
		n += len(did.result)
	}
	return n
}

// areResultsFinal reports whether no later event in the log can change the results of the
// tasks. It can where a superstep runs again in place: after a copy or an update of a
// state, and after the rollback of a run.
func (b *builder) areResultsFinal(ctx context.Context, list []*checkpoint.Checkpoint, found taskResults) (bool, error) {
	runs := make(map[string]bool)
	for _, cp := range list {
		if len(cp.Next) > 0 && cp.Source != checkpoint.SourceLoop && cp.Source != checkpoint.SourceInput {
			return false, nil
		}
		for _, next := range cp.Next {
			did := found[next.ID]
			if !did.isEnded {
				return false, nil
			}
			runs[did.run] = true
		}
	}
	for id := range runs {
		run, err := b.reader.StoredRun(ctx, b.head.Thread, id)
		switch {
		case errors.Is(err, checkpoint.ErrRunNotFound):
			return false, nil
		case err != nil:
			return false, runtime.TranslateStoreError(err)
		case run.State == checkpoint.RunCancelled, run.State == checkpoint.RunCancelling, run.State == checkpoint.RunSuperseded:
			return false, nil
		}
	}
	return true, nil
}

// recordEvent adds the result in an event of a task that is due.
func (tr taskResults) recordEvent(e *checkpoint.Event, due map[string]bool) {
	if !due[e.Task] {
		return
	}
	did := tr[e.Task]
	switch {
	case e.Kind == checkpoint.EventUpdate:
		did.isEnded, did.result, did.run = true, e.Value, e.Run
	case e.Kind == checkpoint.EventTask && e.Failure != nil && e.Phase != checkpoint.PhaseRetrying:
		did.failure = e.Failure
	default:
		return
	}
	tr[e.Task] = did
}
