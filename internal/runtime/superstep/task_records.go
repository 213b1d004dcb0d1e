package superstep

import (
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// consumeAnswers marks the answers that the finished tasks have used. Those of stored tasks
// were marked when the tasks were stored.
func (s *superstep) consumeAnswers(t *commit.Tx) {
	for i := range s.unstored {
		s.consumeTaskAnswers(t, &s.unstored[i])
	}
}

// consumeTaskAnswers marks the answers that a finished task has used, and the
// differences that it has accepted.
func (s *superstep) consumeTaskAnswers(t *commit.Tx, o *outcome) {
	if o.failure != nil || o.isAborted {
		return
	}
	asked := s.frame.pending.interrupts[o.task.ID]
	for k := range asked {
		differs := o.acceptedDifferences(asked[k].ID)
		news := asked[k].State == checkpoint.InterruptAnswered || isAnswered(&asked[k]) && differs != nil
		if !news || t.ChangesInterrupt(asked[k].ID) {
			continue
		}
		used := asked[k]
		if used.State == checkpoint.InterruptAnswered {
			used.State = checkpoint.InterruptConsumed
		}
		if differs != nil {
			used.Accepted = differs
		}
		used.Updated = t.Now
		t.Interrupts = append(t.Interrupts, used)
		if differs != nil {
			t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: []checkpoint.Interrupt{used}})
		}
	}
}

// putTaskRecords puts the ended tasks that are not stored yet into a change, so that
// they need not run again.
func (s *superstep) putTaskRecords(t *commit.Tx) error {
	fr := s.frame
	for i := range s.unstored {
		o := &s.unstored[i]
		if o.isAborted {
			continue
		}
		if err := fr.writeTo(t).putOpenReplacements(o); err != nil {
			return err
		}
		o.putSuperseded(t)
		s.consumeTaskAnswers(t, o)
		fr.writeTo(t).putNewInterrupts(o)
		t.Tasks = append(t.Tasks, s.newTaskRecord(o))
	}
	for _, list := range [][]outcome{s.cached, s.stored} {
		for i := range list {
			if s.causedMergeFailure(&list[i]) {
				t.Tasks = append(t.Tasks, s.newTaskRecord(&list[i]))
			}
		}
	}
	return nil
}

// putReturned records, when the run is handed over, the results of nodes whose
// conditional edges are still to be decided. The next server decides them, and the nodes
// don't run again. A value that is not to be stored can't be kept so.
func (s *superstep) putReturned(t *commit.Tx, v End) {
	fr := s.frame
	if v.State != checkpoint.RunRunning || fr.Graph().HasUntracked() {
		return
	}
	for _, o := range slices.Concat(s.stored, s.unstored) {
		if o.returned == nil || o.task.Node.Kind == graph.KindStart {
			continue
		}
		t.Tasks = append(t.Tasks, checkpoint.Task{
			ID: o.task.ID, Namespace: fr.state.Namespace(), Checkpoint: fr.state.Checkpoint().ID,
			Node: o.task.Node.Name, State: checkpoint.TaskReturned, Attempt: o.attempt,
			Update: o.returned.Update, Writes: o.returned.Writes, Goto: o.returned.Goto,
		})
	}
}

// putCutOff records why tasks were cut off when the superstep is over for now.
// They are run again when the thread goes on. No error handler takes over: the
// node itself has not failed.
func (s *superstep) putCutOff(t *commit.Tx, v End) {
	fr := s.frame
	if v.State == checkpoint.RunRunning || v.Failure == nil {
		return
	}
	why := &checkpoint.Failure{Reason: v.Failure.Reason, Message: v.Failure.Message}
	if v.State == checkpoint.RunFailed {
		why = &checkpoint.Failure{Reason: runtime.FailedSibling, Message: "cut off because another task of the superstep failed"}
	}
	for _, list := range [][]outcome{s.stored, s.unstored} {
		for i := range list {
			o := &list[i]
			if !o.isAborted || o.isSubgraphStopped || o.task.Node.Kind == graph.KindStart {
				continue
			}
			t.Tasks = append(t.Tasks, checkpoint.Task{
				ID: o.task.ID, Namespace: fr.state.Namespace(), Checkpoint: fr.state.Checkpoint().ID,
				Node: o.task.Node.Name, Attempt: o.attempt, State: checkpoint.TaskFailed, Failure: why,
			})
			e := fr.newTaskEvent(o.task, checkpoint.PhaseCancelled, fr.state.NextStep())
			e.Attempt, e.Failure = o.attempt, why
			t.EmitEvent(e)
		}
	}
}

// setMergeFailure notes that the results of the superstep could not be put together.
func (s *superstep) setMergeFailure(err error, f *checkpoint.Failure) {
	s.mergeFailure = f
	if update, ok := errors.AsType[*pregel.UpdateError](err); ok {
		s.mergeChannel = update.Channel
	}
	var nodes []string
	for _, o := range s.endedOutcomes() {
		if s.causedMergeFailure(&o) {
			nodes = append(nodes, o.task.Node.Name)
		}
	}
	slices.Sort(nodes)
	f.Node = strings.Join(slices.Compact(nodes), ", ")
}

// causedMergeFailure reports whether a task has a part in that. Its result is worth
// nothing then: the task must run again, or the superstep could never end.
func (s *superstep) causedMergeFailure(o *outcome) bool {
	return s.mergeFailure != nil && o.isFinished() && (s.mergeChannel == "" || slices.ContainsFunc(o.writes,
		func(x checkpoint.Write) bool { return x.Channel == s.mergeChannel }))
}

func (s *superstep) newTaskRecord(o *outcome) checkpoint.Task {
	fr := s.frame
	r := checkpoint.Task{
		ID: o.task.ID, Namespace: fr.state.Namespace(), Checkpoint: fr.state.Checkpoint().ID,
		Node: o.task.Node.Name, Attempt: o.attempt,
	}
	r.Failure = fr.pending.tasks[o.task.ID].Failure // of an earlier attempt
	switch {
	case s.causedMergeFailure(o):
		unfit := *s.mergeFailure
		unfit.Node = "" // of no node alone, so no error handler takes over
		r.State, r.Failure = checkpoint.TaskFailed, &unfit
	case o.failure != nil:
		r.State, r.Failure = checkpoint.TaskFailed, o.failure
	case len(o.openInterrupts) > 0:
		r.State, r.Waiting = checkpoint.TaskWaiting, o.openInterrupts
	default:
		r.State, r.Writes = checkpoint.TaskDone, fr.state.DurableWrites(o.writes)
	}
	return r
}

// putNewInterrupts adds the new interrupts of a task to a change.
func (cw changeWriter) putNewInterrupts(o *outcome) {
	fr := cw.frame
	asks := o.newInterrupts()
	if len(asks) == 0 {
		return
	}
	for i := range asks {
		asks[i].Created, asks[i].Updated = cw.Now, cw.Now
		cw.ScheduleBy(asks[i].DueTime())
	}
	cw.Interrupts = append(cw.Interrupts, asks...)
	cw.Head.Open += len(asks)
	cw.EmitEvent(checkpoint.Event{
		Kind: checkpoint.EventInterrupt, Namespace: fr.state.Namespace(), Step: fr.state.NextStep(),
		Node: o.task.Node.Name, Task: o.task.ID, Attempt: o.attempt,
		Checkpoint: fr.state.Checkpoint().ID, Interrupts: asks,
	})
}

// putOpenReplacements puts into a change the replacement of the open interrupts of a
// task that asks something else. An answer that has come meanwhile is kept: the task
// runs again, and the answer is compared.
func (cw changeWriter) putOpenReplacements(o *outcome) error {
	fr := cw.frame
	var old []checkpoint.Interrupt
	for i := range o.openReplacements {
		r := &o.openReplacements[i]
		q, err := fr.env.Store.Interrupt(fr.thread.StoreCtx, fr.thread.ID, r.current.ID)
		if err != nil {
			return runtime.TranslateStoreError(err)
		}
		from, to := r.replacement.ID, r.current.ID
		if r.isReplaced = q.State == checkpoint.InterruptOpen; r.isReplaced {
			from, to = to, from
			q.State, q.Updated = checkpoint.InterruptSuperseded, cw.Now
			old = append(old, q)
		}
		if at := slices.Index(o.openInterrupts, from); at >= 0 {
			o.openInterrupts[at] = to
		}
	}
	if len(old) == 0 {
		return nil
	}
	cw.Interrupts = append(cw.Interrupts, old...)
	cw.Head.Open -= len(old)
	cw.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: old})
	return nil
}

// newInterrupts returns the interrupts that a task adds.
func (o *outcome) newInterrupts() []checkpoint.Interrupt {
	asks := slices.Clone(o.interrupts)
	for i := range o.openReplacements {
		if r := &o.openReplacements[i]; r.isReplaced {
			asks = append(asks, r.replacement)
		}
	}
	return asks
}
