package runtime

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// past is the snapshot of an older state with what calls have updated on it.
// What its tasks did later is told by the event log, as far as it reaches. It
// lists every question that was asked, also those that have been answered.
func (r *reader) past(s *pregel.State, done deeds) (Snapshot, error) {
	cp := s.Checkpoint()
	snap := Snapshot{Checkpoint: cp}
	p, err := r.pending(s)
	if err != nil {
		return snap, err
	}
	l := &loop{state: s, pending: newProgress(p)}
	due := l.due(cp.Next)
	snap.Values = l.state.Values()
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
		snap.Interrupts = append(snap.Interrupts, t.Interrupts...)
		snap.Next = append(snap.Next, next.Node)
		snap.Tasks = append(snap.Tasks, t)
	}
	return snap, nil
}

// below lists what the subgraph of a task asked last, and the subgraphs in it.
func (r *reader) below(space string) ([]checkpoint.Interrupt, error) {
	if r.asked == nil {
		all, err := r.engine.store.Interrupts(r.ctx, checkpoint.InterruptQuery{Thread: r.head.Thread})
		if err != nil {
			return nil, storeError(err)
		}
		r.asked = make(map[string][]checkpoint.Interrupt)
		for _, q := range all {
			if q.Namespace != "" && q.Task != "" {
				r.asked[q.Namespace] = append(r.asked[q.Namespace], q)
			}
		}
	}
	var out []checkpoint.Interrupt
	for _, ns := range slices.Sorted(maps.Keys(r.asked)) {
		if ns != space && !strings.HasPrefix(ns, space+"|") {
			continue
		}
		list := r.asked[ns]
		newest := list[len(list)-1].Checkpoint
		out = append(out, slices.DeleteFunc(slices.Clone(list), func(q checkpoint.Interrupt) bool { return q.Checkpoint != newest })...)
	}
	return out, nil
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

// resultScan bounds how much of the log is searched for results of old tasks.
const resultScan = 8192

// results finds in the event log what tasks did since the oldest of some
// checkpoints.
func (r *reader) results(list []*checkpoint.Checkpoint) (deeds, error) {
	from, due := ^uint64(0), 0
	for _, cp := range list {
		from = min(from, cp.Event)
		due += len(cp.Next)
	}
	found := make(deeds, due)
	for read := 0; due > 0 && read < resultScan; {
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
		if len(events) == 0 {
			return found, nil
		}
		for i := range events {
			found.note(&events[i])
		}
		from = events[len(events)-1].Seq
		read += len(events)
	}
	return found, nil
}

// note takes in one event.
func (d deeds) note(e *checkpoint.Event) {
	if e.Task == "" {
		return
	}
	did := d[e.Task]
	switch {
	case e.Kind == checkpoint.EventUpdate:
		did.ended, did.result = true, e.Value
	case e.Kind == checkpoint.EventTask && e.Failure != nil && e.Phase != checkpoint.PhaseRetrying:
		did.failure = e.Failure
	default:
		return
	}
	d[e.Task] = did
}
