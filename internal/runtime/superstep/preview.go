package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Preview is a superstep of a stored state as readers see it. Nothing of it is run.
type Preview struct{ frame frame }

// NewPreview shows the superstep that follows a state, of which p is known: its tasks
// are those that were planned and those that calls have added.
func NewPreview(s *pregel.State, p checkpoint.Pending) *Preview {
	v := &Preview{frame: frame{state: s, pending: newProgress(p), maybeBegun: true}}
	fr := &v.frame
	if ahead, err := fr.applyCommands(s); err == nil { // a command that no longer fits shows when the run goes on
		fr.state = ahead
	}
	if tasks, err := fr.state.PlanTasks(); err == nil {
		fr.tasks = tasks
	}
	return v
}

// NewPastPreview shows a superstep that is over: its tasks are those of the checkpoint.
func NewPastPreview(s *pregel.State, p checkpoint.Pending) *Preview {
	return &Preview{frame: frame{state: s, pending: newProgress(p)}}
}

// State returns the state with the updates of calls.
func (p *Preview) State() *pregel.State { return p.frame.state }

// Tasks lists the tasks of the superstep.
func (p *Preview) Tasks() []*pregel.Task { return p.frame.tasks }

// PartialValues returns the values with the writes of the finished tasks.
func (p *Preview) PartialValues() payload.JSON { return p.partialState().Values() }

// PartialOutput returns the output keys of those values.
func (p *Preview) PartialOutput() payload.JSON { return p.partialState().Output() }

func (p *Preview) partialState() *pregel.State {
	s := p.frame.planSuperstep()
	s.loadPreview(&p.frame.pending)
	return s.partialState()
}

// FindRecord returns the stored record of a task.
func (p *Preview) FindRecord(task string) (checkpoint.Task, bool) {
	r, known := p.frame.pending.tasks[task]
	return r, known
}

// InterruptsOf lists the interrupts of a task.
func (p *Preview) InterruptsOf(task string) []checkpoint.Interrupt {
	return p.frame.pending.interrupts[task]
}

// HasHandler reports whether an error handler has taken over for a task.
func (p *Preview) HasHandler(t *pregel.Task) bool {
	return handlerOf(t, p.frame.pending.tasks[t.ID]) != nil
}

// ListTasksWithHandlers lists the tasks of the superstep, each followed by the error
// handler that has taken over for it.
func (p *Preview) ListTasksWithHandlers() []*pregel.Task {
	fr := &p.frame
	all := make([]*pregel.Task, 0, len(fr.tasks))
	for _, t := range fr.state.SortForDisplay(fr.tasks) {
		all = append(all, t)
		if h := handlerOf(t, fr.pending.tasks[t.ID]); h != nil {
			all = append(all, h)
		}
	}
	return all
}

// ListDueTasks lists the tasks of a superstep: the planned tasks, and those that calls
// have added since. The state of the preview has those updates then.
func (p *Preview) ListDueTasks(planned []checkpoint.NextTask) []checkpoint.NextTask {
	fr := &p.frame
	if len(fr.pending.commands) == 0 && len(planned) < 2 {
		return planned
	}
	s, err := fr.applyCommands(fr.state)
	if err != nil {
		return planned // the graph has changed, and has no place for them any more
	}
	fr.state = s
	tasks, err := s.PlanTasks()
	if err != nil || len(tasks) < len(planned) {
		return planned
	}
	return pregel.NextTasks(s.SortForDisplay(tasks))
}
