package runtime

import (
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// enter puts an input into a graph: the input's checkpoint and, where its
// edges need no code to decide, the superstep of the start node, in one change.
// Tasks that were still pending are given up.
func (l *loop) enter(t *tx, input payload.JSON) error {
	writes, err := l.state.Input(input)
	if err != nil {
		return err
	}
	pending, err := l.state.Plan()
	if err != nil {
		pending = nil // a Send to a node that is gone can't be carried out anyway
	}
	done := make([]pregel.Done, 0, len(pending)+1)
	done = append(done, pregel.Done{Writes: writes})
	for _, p := range pending {
		done = append(done, pregel.Done{Task: p})
	}
	state, err := l.state.Apply(done, l.stamp(t, checkpoint.SourceInput))
	if err != nil {
		return err
	}
	tasks, err := state.Plan()
	if err != nil {
		return err
	}
	if old := l.state.Checkpoint().ID; old != "" {
		l.usedUp(t, old)
	}
	next := l.ahead(state, tasks)
	next.put(t, state, tasks)
	next.passStart(t)
	l.state, l.tasks, l.revisit, l.pending = next.state, next.tasks, false, progress{}
	return nil
}

// passStart runs the start node's superstep in the same change, unless code
// must decide its edges or the decision fails: then the loop runs it.
func (l *loop) passStart(t *tx) {
	if len(l.tasks) != 1 || l.tasks[0].Node.Kind != graph.KindStart || len(pregel.Routers(l.tasks[0].Node)) > 0 {
		return
	}
	task := l.tasks[0]
	writes, err := l.state.Complete(task, l.startResult(), nil)
	if err != nil {
		return
	}
	if len(l.state.Reductions([]pregel.Done{{Task: task, Writes: writes}})) > 0 {
		return
	}
	before := *t
	w := &work{loop: l, fresh: []outcome{{task: task, writes: writes}}}
	next, tasks, err := l.apply(t, w)
	if err != nil {
		*t = before
		return
	}
	l.state, l.tasks = next, tasks
}

// startResult is what the start node makes of an input, and of the nodes that
// the call wants to be triggered along with it.
func (l *loop) startResult() pregel.Result {
	r := pregel.Result{Update: l.state.StartInput()}
	if l.level.root && l.run.Request.Input != "" {
		r.Goto = l.run.Request.Goto
	}
	return r
}

func emptyInput(g *graph.Graph) *Error {
	names := make([]string, len(g.Input))
	for i, c := range g.Input {
		names[i] = g.Channels[c].Name
	}
	takes := strings.Join(names, ", ")
	return Errorf(ReasonInvalidField, "the thread is new, so a run of graph %s needs an input; it takes %s", g.Name, takes).
		InField("input", "must be set; its keys are %s", takes)
}

// inject applies the updates and gotos that came with calls, and wait beside
// the tasks of the superstep, in the order in which they came.
func (l *loop) inject(s *pregel.State) (*pregel.State, error) {
	for _, c := range l.pending.commands {
		next, err := s.Recall(c.Writes)
		if err != nil {
			return nil, err
		}
		s = next
	}
	return s, nil
}

// usedUp puts into a change that a superstep is over. What calls have updated
// stays: it is part of the state that people saw, and of what a replay repeats.
func (l *loop) usedUp(t *tx, superseded string) {
	t.ClearTasks = append(t.ClearTasks, superseded)
	t.Tasks = append(t.Tasks, l.pending.commands...)
}

// commandPrefix begins the ids of task records that hold the writes of a call.
const commandPrefix = "!command-"

// commandID names what a call of a run wrote; ids sort by the last event before
// the call.
func commandID(event uint64, run string) string {
	return fmt.Sprintf("%s%020d-%s", commandPrefix, event, run)
}

// commandOf reports whether a record holds what a call of a run wrote.
func commandOf(record *checkpoint.Task, run string) bool {
	return strings.HasPrefix(record.ID, commandPrefix) && strings.HasSuffix(record.ID, "-"+run)
}
