package pregel

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// CheckpointInfo holds the fields of a new checkpoint that do not follow from the
// state.
type CheckpointInfo struct {
	ID       string
	Seq      uint64
	Time     time.Time
	Run      string
	Source   checkpoint.Source
	Step     int
	Metadata map[string]string
	Parents  map[string]string
	// IsSibling makes the new checkpoint a sibling of the checkpoint of the
	// state, not a child.
	IsSibling bool
}

// ApplyStep ends a superstep: it combines the writes of all its tasks with the state and
// returns the state at the next boundary. The order of the tasks does not matter.
// Errors, which leave the state unchanged: *UpdateError, *graph.LimitError.
func (s *State) ApplyStep(done []TaskWrites, stamp CheckpointInfo) (*State, error) {
	e := newStateEdit(s, stamp.Seq)
	slices.SortStableFunc(done, compareByPath)
	e.recordReactions(done)
	if err := e.applyWrites(done); err != nil {
		return nil, err
	}
	e.clearAndRelease()
	next := e.buildCheckpoint(stamp)
	if err := checkStateGrowth(s, next); err != nil {
		return nil, err
	}
	return next, nil
}

// InjectWrites applies writes that no task made, such as the update of a command,
// without ending a superstep: triggers are neither consumed nor cleared. Errors:
// *UpdateError, *graph.LimitError.
func (s *State) InjectWrites(writes []checkpoint.Write) (*State, error) {
	next, err := injectWithin(s, writes, s.limits)
	if err != nil {
		return nil, err
	}
	if err := checkStateGrowth(s, next); err != nil {
		return nil, err
	}
	return next, nil
}

// InjectUnlimited applies writes as InjectWrites does, but without limits: they were
// accepted before. The error is an *UpdateError.
func (s *State) InjectUnlimited(writes []checkpoint.Write) (*State, error) {
	return injectWithin(s, writes, Limits{})
}

func injectWithin(s *State, writes []checkpoint.Write, limits Limits) (*State, error) {
	e := newStateEdit(s, 0)
	e.limits = limits
	if err := e.applyWrites([]TaskWrites{{Writes: writes}}); err != nil {
		return nil, err
	}
	next := *s.checkpoint
	next.Channels, next.Seen, next.Updated = e.channels, e.seen, e.updatedNames()
	return e.buildState(&next), nil
}

// lookAhead applies writes to a state that is only read to decide a conditional
// edge; see InjectWrites. Its cost depends on the writes, not on the length of
// the lists.
func lookAhead(s *State, writes []checkpoint.Write) (*State, error) {
	e := newStateEdit(s, 0)
	e.tails = make(map[int][]payload.JSON)
	if err := e.applyWrites([]TaskWrites{{Writes: writes}}); err != nil {
		return nil, err
	}
	next := *s.checkpoint
	next.Channels = e.channels
	ahead := e.buildState(&next)
	ahead.tails = e.tails
	return ahead, nil
}

// PartialState returns the state with the writes of some tasks of a superstep that has
// not ended. Callers see it while other tasks wait. As at the end of the superstep, a
// channel that lasts for one superstep is cleared unless a task has written it. The order
// of the tasks does not matter. The error is an *UpdateError.
func (s *State) PartialState(done []TaskWrites) (*State, error) {
	if len(done) == 0 {
		return s, nil
	}
	done = slices.Clone(done)
	slices.SortStableFunc(done, compareByPath)
	e := newStateEdit(s, 0)
	e.limits = Limits{}
	if err := e.applyWrites(done); err != nil {
		return nil, err
	}
	for i := range s.graph.Channels {
		if s.graph.Channels[i].IsStateKey && !e.written[i] && e.channelAt(i).clearUnwritten() {
			e.markChanged(i)
		}
	}
	next := *s.checkpoint
	next.Channels, next.Seen, next.Updated = e.channels, e.seen, e.updatedNames()
	return e.buildState(&next), nil
}

// CopyToCheckpoint copies the state into a new checkpoint.
func (s *State) CopyToCheckpoint(stamp CheckpointInfo) *State {
	e := newStateEdit(s, stamp.Seq)
	for i := range e.channels {
		e.updated[i] = slices.Contains(s.checkpoint.Updated, e.channels[i].Name)
	}
	return e.buildCheckpoint(stamp)
}

// MoveToNamespace returns the state for another namespace, where none of it is stored
// yet.
func (s *State) MoveToNamespace(namespace string) *State {
	if namespace == s.checkpoint.Namespace {
		return s
	}
	e := newStateEdit(s, 0)
	for i := range e.channels {
		c := &e.channels[i]
		c.Stored = 0
		if c.List != nil {
			c.List = &checkpoint.List{Items: slices.Clip(c.List.Items), Appended: len(c.List.Items)}
		}
	}
	next := *s.checkpoint
	next.Namespace, next.Channels = namespace, e.channels
	return e.buildState(&next)
}
