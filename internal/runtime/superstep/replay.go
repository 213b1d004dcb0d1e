package superstep

import (
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// beginReplay goes back to an older checkpoint. It copies the checkpoint, so that the
// supersteps after it have ids of their own and ask again. It does not copy a copy, or
// an update, that is the newest checkpoint and on which nothing was answered.
func beginReplay(ctx context.Context, reader *query.Reader, t *commit.Tx, l *Loop) error {
	cp, err := findReplayTarget(ctx, reader, t, l)
	if err != nil {
		return err
	}
	if err := WithdrawInterrupts(ctx, reader, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	p, err := reader.ReadPending(ctx, l.thread.Reservation, t.Thread, cp.ID)
	if err != nil {
		return err
	}
	l.state = pregel.LoadState(l.Graph(), cp, true, l.env.Reader.LimitsOf(l.thread.ID))
	l.maxStep = l.state.NextStep() + 1 + l.stepLimit()
	l.pending = progress{commands: newProgress(p).commands}
	r := &l.run.Request
	if r.Input != "" {
		return applyInput(ctx, t, l)
	}
	if err := l.checkDueNodes(); err != nil {
		return err
	}
	changes := r.Update != "" || len(r.Goto) > 0 || !l.state.IsIdle()
	if mustCopy(cp, p) || cp.ID != t.Head.Checkpoint {
		return branchWithCommand(t, l)
	}
	if changes { // else nothing follows from there: the thread stays where it is
		t.ClearTasks = append(t.ClearTasks, cp.ID) // nothing of an earlier visit counts
	}
	if err := PutCommand(t, l, r.Update, r.Goto); err != nil {
		return err
	}
	return PlanNextSuperstep(t, l, true)
}

// branchWithCommand copies the checkpoint, with the command of the call in the copy. The
// checkpoint keeps the record of what came after it.
func branchWithCommand(t *commit.Tx, l *Loop) error {
	command, err := newCommand(t, &l.frame, l.run.Request.Update, l.run.Request.Goto)
	if err != nil {
		return err
	}
	if command != nil {
		l.pending.commands = append(l.pending.commands, *command)
	}
	if err := l.branchCheckpoint(t); err != nil {
		return RefusalError("replay_from", err)
	}
	return PlanNextSuperstep(t, l, true)
}

// findReplayTarget finds the root checkpoint to go back to. For a checkpoint of a
// subgraph it is the root checkpoint under which that was written.
func findReplayTarget(ctx context.Context, reader *query.Reader, t *commit.Tx, l *Loop) (*checkpoint.Checkpoint, error) {
	r := &l.run.Request
	cp, err := reader.FindCheckpoint(ctx, l.thread.Reservation, t.Thread, r.FromNamespace, r.From)
	if err != nil {
		return nil, err
	}
	j := &replay{visited: make(map[string]bool)}
	if cp.Namespace != "" {
		j.target = cp
		if cp, err = reader.ReadCheckpoint(ctx, l.thread.Reservation, t.Thread, "", cp.Parents[""]); err != nil {
			return nil, query.TranslateUnlessLarge(err)
		}
	}
	j.beforeSeq = cp.Seq
	if cp.Source == checkpoint.SourceFork || cp.Source == checkpoint.SourceUpdate {
		if seq, err := reader.FindCheckpointSeq(ctx, t.Thread, cp.Parent); err == nil {
			j.beforeSeq = seq
		}
	}
	l.level.replay, l.level.isOnReplayPath = j, j.target != nil
	return cp, nil
}

// mustCopy reports whether the newest checkpoint must be copied before it is run again.
func mustCopy(cp *checkpoint.Checkpoint, p checkpoint.Pending) bool {
	if cp.Source == checkpoint.SourceLoop || cp.Source == checkpoint.SourceInput {
		return true
	}
	return len(newProgress(p).commands) > 0 || slices.ContainsFunc(p.Interrupts, func(q checkpoint.Interrupt) bool {
		return q.State != checkpoint.InterruptOpen && q.State != checkpoint.InterruptSuperseded || !q.Trail.IsEmpty()
	})
}

// visitFirst marks a namespace as visited and reports whether it is the first
// visit.
func (r *replay) visitFirst(ns string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.visited[ns]
	r.visited[ns] = true
	return first
}

// matchNamespace finds the namespace of then, and the checkpoint, that correspond to a
// namespace of now: the target's, or those of a graph on the way to it. outer
// is the namespace of then that the graph around corresponds to.
func (r *replay) matchNamespace(outer, ns string) (then, id string) {
	fits := func(then string) bool {
		around, _ := splitNamespace(then)
		return then != "" && pregel.NodePath(then) == pregel.NodePath(ns) &&
			(around == outer || around == pregel.NodePath(outer))
	}
	if fits(r.target.Namespace) {
		return r.target.Namespace, r.target.ID
	}
	for then, id := range r.target.Parents {
		if fits(then) {
			return then, id
		}
	}
	return "", ""
}

// splitNamespace takes the last level off a namespace.
func splitNamespace(ns string) (outer, last string) {
	if i := strings.LastIndexByte(ns, '|'); i >= 0 {
		return ns[:i], ns[i+1:]
	}
	return "", ns
}
