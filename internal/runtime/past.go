package runtime

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// past is the snapshot of an older state with what calls have updated on it.
// What its tasks did later is told by the event log, as far as it reaches. It
// lists every question that was asked, also those that have been answered.
func (r *reader) past(s *pregel.State, done deeds, values bool) (Snapshot, error) {
	cp := s.Checkpoint()
	snap := Snapshot{Checkpoint: cp}
	p, err := r.pending(s)
	if err != nil {
		return snap, err
	}
	l := &loop{state: s, pending: newProgress(p)}
	due := l.due(cp.Next)
	if values {
		snap.Values = l.state.Values()
	}
	for _, next := range due {
		t := SnapshotTask{ID: next.ID, Node: next.Node}
		if next.Node == graph.Start && cp.ID != r.head.Checkpoint { // tells nobody of its result
			t.Result = s.Restrict(s.StartInput())
		} else {
			done.of(l.state, &t)
		}
		t.Interrupts = l.pending.interrupts[next.ID]
		if n, ok := s.Graph().Node(next.Node); ok && n.Kind == graph.KindGraph && persistence(n) != persist {
			if t.Interrupts, err = r.below(spaceOf(s.Namespace(), n, next.ID)); err != nil {
				return snap, err
			}
		}
		if err := r.hold(sizeOfTask(&t)); err != nil {
			return snap, err
		}
		snap.Interrupts = append(snap.Interrupts, t.Interrupts...)
		snap.Next = append(snap.Next, next.Node)
		snap.Tasks = append(snap.Tasks, t)
	}
	return snap, nil
}

// due lists the tasks of a superstep: as they were planned, and what calls have
// added since. It leaves the loop's state with those updates.
func (l *loop) due(planned []checkpoint.NextTask) []checkpoint.NextTask {
	if len(l.pending.commands) == 0 && len(planned) < 2 {
		return planned
	}
	s, err := l.inject(l.state)
	if err != nil {
		return planned // the graph has changed, and has no place for them any more
	}
	l.state = s
	tasks, err := s.Plan()
	if err != nil || len(tasks) < len(planned) {
		return planned
	}
	return pregel.Next(s.Shown(tasks))
}

// deed is what a task did.
type deed struct {
	ended   bool
	result  payload.JSON
	run     string
	failure *checkpoint.Failure // of its last attempt that failed
}

// deeds holds what tasks did, by task.
type deeds map[string]deed

// of fills in what a task did. One whose error handler took over has ended with
// nothing.
func (d deeds) of(s *pregel.State, t *SnapshotTask) {
	did := d[t.ID]
	t.Result, t.Failure = did.result, did.failure
	if did.ended || did.failure == nil {
		return
	}
	n, ok := s.Graph().Node(t.Node)
	if !ok || n.Handler == nil {
		return
	}
	if d[pregel.HandlerID(n.Handler.Name, t.ID)].ended {
		t.Result = "{}"
	}
}

// resultScan bounds how much of the log is searched for results of old tasks, and
// scanBytes what its events may have.
const (
	resultScan = 8192
	scanBytes  = resultScan / readBatch * checkpoint.ReadBytes
)

// results finds in the event log what tasks did since the oldest of some
// checkpoints. The error is errManyResults when they are too much for one answer.
func (r *reader) results(list []*checkpoint.Checkpoint) (deeds, error) {
	from, due := ^uint64(0), make(map[string]bool)
	for _, cp := range list {
		from = min(from, cp.Event)
		for _, next := range cp.Next {
			due[next.ID] = true
		}
	}
	found := make(deeds, len(due))
	for read, bytes := 0, 0; len(due) > 0 && read < resultScan && bytes < scanBytes; {
		events, err := r.engine.store.Events(r.ctx, r.head.Thread, from, readBatch)
		if errors.Is(err, checkpoint.ErrTrimmed) {
			from = r.head.FirstEvent
			if r.head.FirstEvent == 0 {
				return found, nil
			}
			read += readBatch
			continue
		}
		if err != nil {
			return nil, storeError(err)
		}
		for i := range events {
			bytes += events[i].Size()
			found.note(&events[i], due)
		}
		if r.room > 0 && found.bytes() > r.room {
			return nil, errManyResults
		}
		if len(events) == 0 || !checkpoint.IsPart(events, readBatch, (*checkpoint.Event).Size) {
			return found, nil
		}
		from = events[len(events)-1].Seq
		read += len(events)
		if all, err := r.settled(list, found); err != nil || all {
			return found, err
		}
	}
	return found, nil
}

// errManyResults says that tasks have returned more than one answer takes.
var errManyResults = errors.New("results are too large for one answer")

// bytes is about how many bytes the results have.
func (d deeds) bytes() (n int) {
	for _, did := range d {
		n += len(did.result)
	}
	return n
}

// settled reports whether nothing that comes later in the log can change what
// the tasks did. It can where a superstep is run again in place: after a copy or
// an update of a state, and when the run was rolled back.
func (r *reader) settled(list []*checkpoint.Checkpoint, found deeds) (bool, error) {
	runs := make(map[string]bool)
	for _, cp := range list {
		if len(cp.Next) > 0 && cp.Source != checkpoint.SourceLoop && cp.Source != checkpoint.SourceInput {
			return false, nil
		}
		for _, next := range cp.Next {
			did := found[next.ID]
			if !did.ended {
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
			return false, storeError(err)
		case run.State == checkpoint.RunCancelled, run.State == checkpoint.RunCancelling, run.State == checkpoint.RunSuperseded:
			return false, nil
		}
	}
	return true, nil
}

// note takes in one event. Of tasks that are not due it is known only that they
// have ended: they may be error handlers.
func (d deeds) note(e *checkpoint.Event, due map[string]bool) {
	if e.Task == "" {
		return
	}
	did := d[e.Task]
	switch {
	case e.Kind == checkpoint.EventUpdate:
		did.ended = true
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
