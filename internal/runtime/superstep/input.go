package superstep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// enterInput adds an input to a change: its checkpoint and, where no code decides
// the edges, the superstep of the start node. Pending tasks are dropped.
func (l *graphLoop) enterInput(t *commit.Tx, input payload.JSON) error {
	writes, err := l.state.InputWrites(input)
	if err != nil {
		return err
	}
	pending, err := l.state.PlanTasks()
	if err != nil {
		pending = nil // a Send to a node that is gone can't be carried out anyway
	}
	done := make([]pregel.TaskWrites, 0, len(pending)+1)
	done = append(done, pregel.TaskWrites{Writes: writes})
	for _, p := range pending {
		done = append(done, pregel.TaskWrites{Task: p})
	}
	state, err := l.state.ApplyStep(done, l.writeTo(t).newCheckpointInfo(checkpoint.SourceInput))
	if err != nil {
		return err
	}
	tasks, err := state.PlanTasks()
	if err != nil {
		return err
	}
	if old := l.state.Checkpoint().ID; old != "" {
		l.writeTo(t).clearSuperstep(old)
	}
	next := l.nextFrame(state, tasks)
	next.writeTo(t).putStateAndCheckpoint(state, tasks, true)
	t.Actor = "" // from here on the graph acts
	next.runStartInline(t)
	l.state, l.tasks, l.maybeBegun, l.pending = next.state, next.tasks, false, progress{}
	return nil
}

// runStartInline runs the start node's superstep in the same change, unless code
// must decide its edges or the decision fails: then the loop runs it.
func (fr *frame) runStartInline(t *commit.Tx) {
	if len(fr.tasks) != 1 || fr.tasks[0].Node.Kind != graph.KindStart || len(pregel.CodeBranches(fr.tasks[0].Node)) > 0 {
		return
	}
	task := fr.tasks[0]
	writes, err := fr.state.CompleteTask(task, fr.startResult(), nil)
	if err != nil {
		return
	}
	if len(fr.state.Reductions([]pregel.TaskWrites{{Task: task, Writes: writes}})) > 0 {
		return
	}
	before := *t
	s := &superstep{frame: fr, outcomes: outcomes{unstored: []outcome{{task: task, writes: writes}}}}
	next, tasks, err := s.applySuperstep(t)
	if err != nil {
		*t = before
		return
	}
	fr.state, fr.tasks = next, tasks
}

// startResult returns the result of the start node: the input, and the nodes that the
// call triggers along with it.
func (fr *frame) startResult() pregel.Result {
	r := pregel.Result{Update: fr.state.StartInput()}
	if fr.level.isRoot && fr.run.Request.Input != "" {
		r.Goto = fr.run.Request.Goto
	}
	return r
}

func emptyInputError(g *graph.Graph) *runtime.Error {
	names := make([]string, len(g.InputKeys))
	for i, c := range g.InputKeys {
		names[i] = g.Channels[c].Name
	}
	takes := strings.Join(names, ", ")
	return runtime.Errorf(runtime.ReasonInvalidField, "the thread is new, so a run of graph %s needs an input; it takes %s", tenant.ClientName(g.Name), takes).
		WithViolation("input", "must be set; its keys are %s", takes)
}

// applyCommands applies the updates and gotos that came with calls, and wait beside
// the tasks of the superstep, in the order in which they came.
func (fr *frame) applyCommands(s *pregel.State) (*pregel.State, error) {
	for _, c := range fr.pending.commands {
		next, err := s.InjectUnlimited(c.Writes)
		if err != nil {
			return nil, err
		}
		s = next
	}
	return s, nil
}

// commandID returns the id of the record of a call's writes; ids sort by the last event
// before the call.
func commandID(event uint64, run string) string {
	return fmt.Sprintf("%s%020d-%s", commandPrefix, event, run)
}

// IsCommandOf reports whether a record holds the writes of a call of a run.
func IsCommandOf(record *checkpoint.Task, run string) bool {
	return strings.HasPrefix(record.ID, commandPrefix) && strings.HasSuffix(record.ID, "-"+run)
}

// checkDueNodes refuses to go on with a version of the graph that does not run every
// node that is due. Otherwise the effects and questions of the node, and its results in
// a superstep that is not over, would be lost silently. A run with gotos says
// where it goes on.
func (fr *frame) checkDueNodes() error {
	cp, g := fr.state.Checkpoint(), fr.Graph()
	if cp.Version == g.Version || fr.level.isRoot && len(fr.run.Request.Goto) > 0 {
		return nil
	}
	tasks, err := fr.state.PlanTasks()
	if err != nil {
		return RefusalError("graph_version", err)
	}
	for _, due := range cp.Next {
		if slices.ContainsFunc(tasks, func(t *pregel.Task) bool { return t.Node.Name == due.Node }) {
			continue
		}
		lacks := "does not run"
		if _, ok := g.Node(due.Node); !ok {
			lacks = "has no"
		}
		return runtime.Errorf(runtime.ReasonNodeNotFound, "version %q of graph %q %s node %q, at which the thread stands; "+
			"give an input, which begins at START, or a version that runs the node", g.Version, tenant.ClientName(g.Name), lacks, due.Node).
			With("node", due.Node).With("graph", tenant.ClientName(g.Name))
	}
	return nil
}
