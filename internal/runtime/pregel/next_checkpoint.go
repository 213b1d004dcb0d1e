package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// buildCheckpoint closes the edit. It marks every change since the last checkpoint as
// stored by this checkpoint.
func (e *stateEdit) buildCheckpoint(stamp CheckpointInfo) *State {
	for i := range e.channels {
		c := &e.channels[i]
		if c.Version == 0 || c.Stored != 0 || (c.Value == "" && c.List == nil) {
			continue
		}
		c.Stored = stamp.Seq
		if c.List != nil {
			c.List = numberSegments(c.List, stamp.Seq)
		}
	}
	if e.beginsBranch() {
		e.startSegments(stamp.Seq)
	}
	old := e.before.checkpoint
	parent := old.ID
	if stamp.IsSibling {
		parent = old.Parent
	}
	return e.buildState(&checkpoint.Checkpoint{
		ID: stamp.ID, Seq: stamp.Seq, Parent: parent, Namespace: old.Namespace,
		Graph: e.before.graph.Name, Version: e.before.graph.Version, Run: stamp.Run,
		Source: stamp.Source, Step: stamp.Step, Time: stamp.Time,
		Metadata: stamp.Metadata, Parents: stamp.Parents,
		Channels: e.channels, Seen: e.seen, Updated: e.updatedNames(),
	})
}

// startSegments gives every list a segment of its own at the first checkpoint of a
// branch. An earlier segment may grow on another branch.
func (e *stateEdit) startSegments(seq uint64) {
	for i := range e.channels {
		c := &e.channels[i]
		if c.List == nil || len(c.List.Segments) == 0 || c.List.Segments[len(c.List.Segments)-1].ID == seq {
			continue
		}
		own := *c.List
		own.Segments = append(slices.Clip(own.Segments), checkpoint.Segment{ID: seq})
		own.Appended = 0
		c.List, c.Stored = &own, seq
	}
}

// numberSegments numbers the stored list that was begun between two
// checkpoints.
func numberSegments(l *checkpoint.List, seq uint64) *checkpoint.List {
	next := *l
	next.Segments = slices.Clone(l.Segments)
	if len(next.Segments) == 0 {
		next.Segments = []checkpoint.Segment{{ID: seq, Len: len(l.Items)}}
		next.Appended = len(l.Items)
	}
	for i := range next.Segments {
		if next.Segments[i].ID == 0 {
			next.Segments[i].ID = seq
		}
	}
	return &next
}

// beginsBranch reports whether the next checkpoint begins a branch of the history.
func (e *stateEdit) beginsBranch() bool { return e.before.sharedUpTo == allShared }

// buildState returns the state that the edit leads to.
func (e *stateEdit) buildState(cp *checkpoint.Checkpoint) *State {
	sealed := e.before.sharedUpTo
	if e.beginsBranch() && e.seq > 0 {
		sealed = e.seq - 1
	}
	top := e.before.topVersion
	if e.hasChanged { // else a state that is loaded again would count on from less
		top = e.nextVersion
	}
	s := &State{
		values: values{graph: e.before.graph, checkpoint: cp, untracked: e.untracked}, sharedUpTo: sealed, topVersion: top,
		messageIndexes: e.messageIndexes, limits: e.before.limits, size: stateSize{lists: e.listSizes},
	}
	if s.limits.isSet() {
		s.size.total = s.size.sumKeys(&s.values)
	}
	return s
}

func (e *stateEdit) updatedNames() []string {
	n := 0
	for _, u := range e.updated {
		if u {
			n++
		}
	}
	names := make([]string, 0, n)
	for i, u := range e.updated {
		if u {
			names = append(names, e.channels[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
