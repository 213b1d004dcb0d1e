package runtime

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// journey is a replay under way, shared by all loops of the run that makes it.
type journey struct {
	before uint64                 // subgraphs stand where they stood before this number
	target *checkpoint.Checkpoint // of a subgraph, to be replayed; nil = of the root

	mu   sync.Mutex
	been map[string]bool // namespaces that were put back already
}

// replay goes back to an older checkpoint. It is copied, so that what follows
// has ids of its own and asks again, unless it is a copy or an update on which
// nobody has answered anything.
func (e *Engine) replay(ctx context.Context, t *tx, l *loop) error {
	cp, err := e.destination(ctx, t, l)
	if err != nil {
		return err
	}
	if err := e.withdraw(ctx, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	p, err := e.pendingWithin(ctx, &l.session.load, t.Thread, cp.ID)
	if err != nil {
		return err
	}
	l.state = pregel.Load(l.graph(), cp, true, l.session.engine.opts.Limits)
	l.stop = l.state.NextStep() + 1 + l.limit()
	l.pending = progress{commands: newProgress(p).commands}
	r := &l.run.Request
	if r.Input != "" {
		return takeIn(ctx, t, l)
	}
	switch {
	case used(cp, p):
		if err := l.branch(t); err != nil {
			return refusal("replay_from", err)
		}
	case r.Update == "" && len(r.Goto) == 0 && l.state.Idle():
		// Nothing follows from there: the thread stays where it is.
	default:
		t.Head.Branched = t.Head.Branched || t.Head.Checkpoint != cp.ID
		t.Head.Checkpoint = cp.ID
		t.ClearTasks = append(t.ClearTasks, cp.ID) // nothing of an earlier visit counts
	}
	if err := command(t, l, r.Update, r.Goto); err != nil {
		return err
	}
	return prepare(t, l)
}

// destination finds the root checkpoint to go back to. For a checkpoint of a
// subgraph it is the one under which that was written.
func (e *Engine) destination(ctx context.Context, t *tx, l *loop) (*checkpoint.Checkpoint, error) {
	r := &l.run.Request
	cp, err := e.find(ctx, &l.session.load, t.Thread, r.FromNamespace, r.From)
	if err != nil {
		return nil, err
	}
	j := &journey{been: make(map[string]bool)}
	if cp.Namespace != "" {
		j.target = cp
		if cp, err = e.checkpointWithin(ctx, &l.session.load, t.Thread, "", cp.Parents[""]); err != nil {
			return nil, largeOrStoreError(err)
		}
	}
	j.before = cp.Seq
	if cp.Source == checkpoint.SourceFork || cp.Source == checkpoint.SourceUpdate {
		if seq, err := e.seqOfCheckpoint(ctx, t.Thread, cp.Parent); err == nil {
			j.before = seq
		}
	}
	l.level.journey, l.level.onWay = j, j.target != nil
	return cp, nil
}

// used reports whether a checkpoint must be copied before it is run again.
func used(cp *checkpoint.Checkpoint, p checkpoint.Pending) bool {
	if cp.Source == checkpoint.SourceLoop || cp.Source == checkpoint.SourceInput {
		return true
	}
	return len(newProgress(p).commands) > 0 || slices.ContainsFunc(p.Interrupts, func(q checkpoint.Interrupt) bool {
		return q.State != checkpoint.InterruptOpen && q.State != checkpoint.InterruptSuperseded
	})
}

// branch copies the loop's checkpoint, with what calls have updated on it, into
// a new one that is not bound to what followed it.
func (l *loop) branch(t *tx) error {
	s, err := l.inject(l.state)
	if err != nil {
		return err
	}
	s = s.Restamp(l.stamp(t, checkpoint.SourceFork))
	tasks, err := s.Plan()
	if err != nil {
		return err
	}
	l.keep(t, s, tasks)
	l.state, l.tasks, l.pending = s, tasks, progress{}
	return nil
}

// addressed returns the checkpoint from which a journey wants the subgraph of a
// task to go on, or nil when the journey does not lead through it.
func (l *loop) addressed(v visit) (*checkpoint.Checkpoint, error) {
	j := l.level.journey
	if !l.level.onWay || !j.enter(v.space) {
		return nil, nil
	}
	then, id := j.stop(l.level.then, v.space)
	if then == "" {
		return nil, nil
	}
	if same, err := l.sameTask(v.task, then); err != nil || !same {
		return nil, err
	}
	cp, err := l.session.engine.store.Checkpoint(l.session.calls, l.session.thread, then, id)
	return cp, storeError(err)
}

// enter reports whether a namespace is visited for the first time.
func (j *journey) enter(ns string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := !j.been[ns]
	j.been[ns] = true
	return first
}

// stop finds the namespace of then, and the checkpoint, that correspond to a
// namespace of now: the target's, or those of a graph on the way to it. outer
// is the namespace of then that the graph around corresponds to.
func (j *journey) stop(outer, ns string) (then, id string) {
	fits := func(then string) bool {
		around, _ := split(then)
		return then != "" && pregel.NodePath(then) == pregel.NodePath(ns) &&
			(around == outer || around == pregel.NodePath(outer))
	}
	if fits(j.target.Namespace) {
		return j.target.Namespace, j.target.ID
	}
	for then, id := range j.target.Parents {
		if fits(then) {
			return then, id
		}
	}
	return "", ""
}

// split takes the last level off a namespace.
func split(ns string) (outer, last string) {
	if i := strings.LastIndexByte(ns, '|'); i >= 0 {
		return ns[:i], ns[i+1:]
	}
	return "", ns
}

// sameTask reports whether a task of now is the one in whose namespace the
// subgraph was then: ids differ after a copy, places among the tasks do not.
func (l *loop) sameTask(t *pregel.Task, then string) (bool, error) {
	_, last := split(then)
	_, id, ok := strings.Cut(last, ":")
	if !ok {
		return true, nil // the namespace has no task: it is kept over all of them
	}
	around := l.level.then
	at := l.level.journey.target.Parents[around]
	parent, err := l.session.engine.store.Checkpoint(l.session.calls, l.session.thread, around, at)
	if err != nil {
		return false, storeError(err)
	}
	place := slices.IndexFunc(parent.Next, func(n checkpoint.NextTask) bool { return n.ID == id })
	return place >= 0 && place < len(l.tasks) && l.tasks[place].ID == t.ID, nil
}

// standing returns where a namespace stands: on a journey, where it stood
// before the checkpoint that is replayed, until the run itself writes there.
func (l *loop) standing(ns string) (*checkpoint.Checkpoint, error) {
	store, thread := l.session.engine.store, l.session.thread
	cp, err := store.Checkpoint(l.session.calls, thread, ns, "")
	j := l.level.journey
	if err != nil || j == nil || cp.Run == l.run.ID {
		return cp, err
	}
	older, err := store.Checkpoints(l.session.calls, checkpoint.CheckpointQuery{
		Thread: thread, Namespace: ns, Before: j.before, Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(older) == 0 {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	return older[0], nil
}
