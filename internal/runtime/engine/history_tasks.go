package engine

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/runtime/threads"
)

// pastSnapshot is the snapshot of an older state with what calls have updated on it.
// What its tasks did later is told by the event log, as far as it reaches. It
// lists every interrupt that was asked, also those that have been answered.
func (r *snapshotReader) pastSnapshot(s *pregel.State, done taskResults, values bool) (runtime.Snapshot, error) {
	cp := s.Checkpoint()
	snap := runtime.Snapshot{Checkpoint: cp}
	p, err := r.readProgress(s)
	if err != nil {
		return snap, err
	}
	v := superstep.NewPastPreview(s, p)
	due := v.ListDueTasks(cp.Next)
	if values {
		snap.Values = v.State().Values()
	}
	for _, next := range due {
		t := runtime.SnapshotTask{ID: next.ID, Node: next.Node}
		if next.Node == graph.Start && cp.ID != r.head.Checkpoint { // its result is not shown
			t.Result = s.RestrictInput(s.StartInput())
		} else {
			done.fillTask(v.State(), &t)
		}
		t.Interrupts = v.InterruptsOf(next.ID)
		if n, ok := s.Graph().Node(next.Node); ok && n.Kind == graph.KindGraph && !superstep.IsPersistent(n) {
			if t.Interrupts, err = r.interruptsBelow(superstep.TaskNamespace(s.Namespace(), n, next.ID)); err != nil {
				return snap, err
			}
		}
		if err := r.addBytes(taskBytes(&t)); err != nil {
			return snap, err
		}
		snap.Interrupts = append(snap.Interrupts, t.Interrupts...)
		snap.Next = append(snap.Next, next.Node)
		snap.Tasks = append(snap.Tasks, t)
	}
	return snap, nil
}

// taskResult is what a task did.
type taskResult struct {
	isEnded bool
	result  payload.JSON
	run     string
	failure *checkpoint.Failure // of its last attempt that failed
}

// taskResults holds what tasks did, by task.
type taskResults map[string]taskResult

// fillTask fills in what a task did. One whose error handler took over has ended with
// nothing.
func (d taskResults) fillTask(s *pregel.State, t *runtime.SnapshotTask) {
	did := d[t.ID]
	t.Result, t.Failure = did.result, did.failure
	if did.isEnded || did.failure == nil {
		return
	}
	n, ok := s.Graph().Node(t.Node)
	if !ok || n.Handler == nil {
		return
	}
	if d[pregel.HandlerID(n.Handler.Name, t.ID)].isEnded {
		t.Result = "{}"
	}
}

// maxScannedEvents bounds how much of the log is searched for results of old tasks, and
// maxScannedBytes what its events may have.
const (
	maxScannedEvents = 8192
	maxScannedBytes  = maxScannedEvents / threads.ReadPageSize * checkpoint.ReadBytes
)

// findResults finds in the event log what tasks did since the oldest of some
// checkpoints. The error is errTooManyResults when they are too much for one answer.
func (r *snapshotReader) findResults(list []*checkpoint.Checkpoint) (taskResults, error) {
	from, due := ^uint64(0), make(map[string]bool)
	for _, cp := range list {
		from = min(from, cp.Event)
		for _, next := range cp.Next {
			due[next.ID] = true
		}
	}
	found := make(taskResults, len(due))
	for read, bytes := 0, 0; len(due) > 0 && read < maxScannedEvents && bytes < maxScannedBytes; {
		events, err := r.engine.store.Events(r.ctx, r.head.Thread, from, threads.ReadPageSize)
		if errors.Is(err, checkpoint.ErrTrimmed) {
			from = r.head.FirstEvent
			if r.head.FirstEvent == 0 {
				return found, nil
			}
			read += threads.ReadPageSize
			continue
		}
		if err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		for i := range events {
			bytes += events[i].Size()
			found.recordEvent(&events[i], due)
		}
		if r.maxBytes > 0 && found.totalBytes() > r.maxBytes {
			return nil, errTooManyResults
		}
		if len(events) == 0 || !checkpoint.IsPart(events, threads.ReadPageSize, (*checkpoint.Event).Size) {
			return found, nil
		}
		from = events[len(events)-1].Seq
		read += len(events)
		if all, err := r.areResultsFinal(list, found); err != nil || all {
			return found, err
		}
	}
	return found, nil
}

// errTooManyResults says that tasks have returned more than one answer takes.
var errTooManyResults = errors.New("results are too large for one answer")

// totalBytes is about how many bytes the results have.
func (d taskResults) totalBytes() (n int) {
	for _, did := range d {
		n += len(did.result)
	}
	return n
}

// areResultsFinal reports whether nothing that comes later in the log can change what
// the tasks did. It can where a superstep is run again in place: after a copy or
// an update of a state, and when the run was rolled back.
func (r *snapshotReader) areResultsFinal(list []*checkpoint.Checkpoint, found taskResults) (bool, error) {
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
		run, err := r.engine.store.Run(r.ctx, r.head.Thread, id)
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

// recordEvent takes in one event. Of tasks that are not due it is known only that they
// have ended: they may be error handlers.
func (d taskResults) recordEvent(e *checkpoint.Event, due map[string]bool) {
	if e.Task == "" {
		return
	}
	did := d[e.Task]
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
	d[e.Task] = did
}
