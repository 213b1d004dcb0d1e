package superstep

import (
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// frame is one graph of a run and where it stands. The tasks of a superstep read it, and
// changes are made from it. Its loop moves it on between two supersteps.
type frame struct {
	env         *Env
	thread      *Thread // nil = the graph is only looked at
	run         *checkpoint.Run
	level       level
	maxStep     int      // the last superstep that may run
	breakBefore []string // breakpoints
	breakAfter  []string

	state   *pregel.State
	tasks   []*pregel.Task
	pending progress
	// maybeBegun says that this superstep may have been begun before, by an
	// earlier attempt or before a pause.
	maybeBegun bool
	// maybeHandedOut says that the server before may have handed out the tasks of this
	// superstep.
	maybeHandedOut  bool
	mustReportState bool      // it goes on here after a pause, and has not said so
	stepMemos       stepMemos // memos recorded in this superstep
	heldBytes       int64     // bytes that are counted of it
	digests         valueDigests
}

// level is where a graph stands among the graphs of a run.
type level struct {
	isRoot           bool
	keepsCheckpoints bool              // its checkpoints are kept
	parentTask       string            // the parent's task, "" at the root
	rootTask         string            // the task of the root that it is inside of, "" at the root
	parents          map[string]string // ancestor namespace → checkpoint
	maybeRerun       bool              // the parent's task may have been run before
	replay           *replay           // nil = the run goes forward in time
	isOnReplayPath   bool              // the replay continues in a subgraph of this graph
	replayNamespace  string            // the namespace in which the graph was then
	// requiredCapabilities are those that the workers of one server must have, to continue
	// the graph.
	requiredCapabilities []checkpoint.Capability
	resetParentTimeout   func() // resets the idle timeout of the parent's task; nil at the root
	// isStoppable says that the run may stop between two supersteps of this subgraph, when
	// it is cancelled or goes on elsewhere: the subgraph is kept, and so are the graphs
	// around it, up to the root. A graph that code has called goes on until it can answer
	// the code.
	isStoppable bool
	isOnlyTask  bool // its task is alone in the superstep, as the tasks around it are
	// losesWorkOnStop says that something around it is lost when the run ends here before
	// a task has begun.
	losesWorkOnStop bool
}

// nextFrame returns the frame of the graph at another state.
func (fr *frame) nextFrame(state *pregel.State, tasks []*pregel.Task) *frame {
	return &frame{
		env: fr.env, thread: fr.thread, run: fr.run, state: state, tasks: tasks, level: fr.level,
		maxStep: fr.maxStep, breakBefore: fr.breakBefore, breakAfter: fr.breakAfter,
	}
}

// Graph returns the graph that is driven.
func (fr *frame) Graph() *graph.Graph { return fr.state.Graph() }

// decideEnd returns how a graph in this state ends, nil = its tasks are to be run. ran
// lists the tasks of the last superstep, p is the progress of the next superstep.
func (fr *frame) decideEnd(s *pregel.State, tasks, ran []*pregel.Task, p *progress) *End {
	if hit := s.HitBreakpoints(fr.breakAfter, ran); len(hit) > 0 && !p.hasPassedBreakpoint(s, "after") {
		return fr.breakpointEnd(s, p, "after", hit)
	}
	if v := fr.withdrawnBreakpointEnd(s, p); v != nil {
		return v
	}
	if s.NextStep() > fr.maxStep {
		return failedEnd(&checkpoint.Failure{
			Reason:  runtime.FailedStepLimit,
			Message: fmt.Sprintf("the graph did not end within %d supersteps; raise step_limit or check its loops", fr.stepLimit()),
			Details: map[string]string{"limit": fmt.Sprint(fr.stepLimit())},
		})
	}
	if len(tasks) == 0 {
		return &End{State: checkpoint.RunSucceeded}
	}
	if hit := s.HitBreakpoints(fr.breakBefore, tasks); len(hit) > 0 && len(p.tasks) == 0 && !p.hasPassedBreakpoint(s, "before") {
		return fr.breakpointEnd(s, p, "before", hit)
	}
	return nil
}

// hasPassedBreakpoint reports whether the run was resumed at a breakpoint.
func (p *progress) hasPassedBreakpoint(s *pregel.State, when string) bool {
	q := p.findBreakpoint(s, when)
	return q != nil && q.State == checkpoint.InterruptConsumed
}

// findBreakpoint returns the breakpoint at which the graph has stopped in a state, nil for
// none.
func (p *progress) findBreakpoint(s *pregel.State, when string) *checkpoint.Interrupt {
	id, all := pregel.BreakpointID(s.Checkpoint().ID, when), p.interrupts[""]
	if i := slices.IndexFunc(all, func(q checkpoint.Interrupt) bool { return q.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// withdrawnBreakpointEnd returns the end of a graph at a breakpoint after its last nodes
// that was cancelled with its run, nil for none. Who goes on with the thread has not passed
// it. A breakpoint before nodes is hit again by itself.
func (fr *frame) withdrawnBreakpointEnd(s *pregel.State, p *progress) *End {
	q := p.findBreakpoint(s, "after")
	if q == nil || q.State != checkpoint.InterruptCancelled ||
		!slices.Contains(fr.breakAfter, q.Node) && !slices.Contains(fr.breakAfter, graph.AllNodes) {
		return nil
	}
	again := *q
	again.Run, again.State = fr.run.ID, checkpoint.InterruptOpen
	return &End{State: checkpoint.RunInterrupted, openInterrupts: []string{q.ID}, breakpoint: &again}
}

// breakpointEnd returns the end of a graph at a static breakpoint: an interrupt that no
// node has asked, so that it is listed and Resume can address it.
func (fr *frame) breakpointEnd(s *pregel.State, p *progress, when string, nodes []string) *End {
	cp := s.Checkpoint()
	id := pregel.BreakpointID(cp.ID, when)
	names := make([]payload.JSON, len(nodes))
	for i, n := range nodes {
		names[i] = payload.Quote(n)
	}
	q := checkpoint.Interrupt{
		ID: id, Thread: fr.thread.ID, Run: fr.run.ID, Graph: fr.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: nodes[0],
		Reason: checkpoint.ReasonBreakpoint, Message: "paused " + when + " " + nodes[0],
		Value: payload.Object([]payload.Field{
			{Key: "when", Value: payload.Quote(when)}, {Key: "nodes", Value: payload.Array(names)},
		}),
		State: checkpoint.InterruptOpen,
	}
	if before := p.findBreakpoint(s, when); before != nil { // cancelled with its run
		q.Trail = before.Trail
	}
	return &End{State: checkpoint.RunInterrupted, openInterrupts: []string{id}, breakpoint: &q}
}

func (fr *frame) stepLimit() int {
	if fr.run.Request.StepLimit > 0 {
		return fr.run.Request.StepLimit
	}
	if n := fr.Graph().Spec.StepLimit; n > 0 {
		return n
	}
	return fr.env.StepLimit
}

// hasBreakpoints reports whether the graph has breakpoints, which going on must pass.
func (fr *frame) hasBreakpoints() bool { return len(fr.breakBefore) > 0 || len(fr.breakAfter) > 0 }

// passBreakpoints marks the breakpoints of a state from which the graph goes on as passed,
// if someone has passed them: by a resume, by dropping what is open, by editing the state,
// or by going back to it. A graph whose run was cancelled there, or has not come to stop
// yet, stops.
func (fr *frame) passBreakpoints() {
	if !fr.hasBreakpoints() {
		return
	}
	isPassed := false
	switch fr.state.Checkpoint().Source {
	case checkpoint.SourceUpdate, checkpoint.SourceFork:
		isPassed = true
	case checkpoint.SourceInput, checkpoint.SourceLoop:
	}
	for _, when := range []string{"before", "after"} {
		if q := fr.pending.findBreakpoint(fr.state, when); q != nil {
			isPassed = isPassed || q.State == checkpoint.InterruptConsumed || q.State == checkpoint.InterruptSuperseded
		}
	}
	if isPassed {
		fr.state = fr.state.MarkBreakpointsPassed()
	}
}

// touchParent resets the idle timeout of the parent task.
func (l *level) touchParent() {
	if l.resetParentTimeout != nil {
		l.resetParentTimeout()
	}
}

// mustStay reports whether a run that ends before a task of the loop has begun loses
// something: values that are not stored, the time that the task has left, or the
// progress of a graph that keeps no checkpoints.
func (fr *frame) mustStay(n *graph.Node) bool {
	timed := n != nil && (n.Timeout > 0 || n.IdleTimeout > 0) || fr.Graph().Spec.StepTimeout > 0
	return timed || fr.level.losesWorkOnStop || fr.level.replay != nil || !fr.level.keepsCheckpoints || fr.Graph().HasUntracked()
}
