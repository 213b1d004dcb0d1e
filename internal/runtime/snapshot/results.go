package snapshot

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
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

// fillTask fills the result of a task in. A task whose error handler has taken over ends
// without a result.
func (tr taskResults) fillTask(s *pregel.State, t *runtime.SnapshotTask) {
	did := tr[t.ID]
	t.Result, t.Failure = did.result, did.failure
	if did.isEnded || did.failure == nil {
		return
	}
	n, ok := s.Graph().Node(t.Node)
	if !ok || n.Handler == nil {
		return
	}
	if tr[pregel.HandlerID(n.Handler.Name, t.ID)].isEnded {
		t.Result = "{}"
	}
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

// recordEvent adds the result in an event. Of a task that is not due it records only that
// the task has ended, because the task may be an error handler.
func (tr taskResults) recordEvent(e *checkpoint.Event, due map[string]bool) {
	if e.Task == "" {
		return
	}
	did := tr[e.Task]
	switch {
	case e.Kind == checkpoint.EventUpdate:
		did.isEnded = true
		if due[e.Task] {
			did.result, did.run = e.Value, e.Run
		}
	case e.Kind == checkpoint.EventTask && e.Failure != nil && e.Phase != checkpoint.PhaseRetrying && due[e.Task]:
		did.failure = e.Failure
	default:
		return
	}
	tr[e.Task] = did
}
