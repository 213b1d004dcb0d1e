package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Loop drives the root graph of a run for the owner of the thread.
type Loop struct {
	graphLoop

	// inlineEnd is how the run ends in the change that begins it or takes it up, nil
	// when it goes on.
	inlineEnd *End
}

// NewRootLoop makes the loop of a run's root graph around a state.
func NewRootLoop(env *Env, thread *Thread, run *checkpoint.Run, state *pregel.State) *Loop {
	l := &Loop{graphLoop: graphLoop{frame: frame{
		env: env, thread: thread, run: run, state: state, level: level{isRoot: true, keepsCheckpoints: true},
	}}}
	l.setBreakpoints()
	return l
}

// Run returns the record of the run. It belongs to the loop while that runs.
func (l *Loop) Run() *checkpoint.Run { return l.run }

// CommitFailure fails the run.
func (l *Loop) CommitFailure(f *checkpoint.Failure) End { return l.commitEnd(*failedEnd(f)) }

// InlineEnd returns the end of the run in the change that begins it or takes it up, nil
// when it goes on.
func (l *Loop) InlineEnd() *End { return l.inlineEnd }

// PutInlineEnd puts this end into that change. Errors: those of RunEnd.PutCancelledEnd
// and of WithdrawInterrupts.
func (l *Loop) PutInlineEnd(t *commit.Tx) error { return l.writeTo(t).putRunEnd(l.state, l.inlineEnd) }

// MeasureUncounted returns how many bytes the loop holds. None of them is counted after
// that.
func (l *Loop) MeasureUncounted() int64 {
	l.setHeldBytes(0)
	return l.measureBytes()
}

// SetCounted notes how many bytes its owner counts of the loop already.
func (l *Loop) SetCounted(n int64) { l.heldBytes = n }

// MarkHandedOut notes that the server before may have handed out tasks of the superstep.
func (l *Loop) MarkHandedOut() { l.maybeHandedOut = true }

// LoadProgress loads the records of the superstep at which the run stopped.
func (l *Loop) LoadProgress(p checkpoint.Pending) { l.pending, l.maybeBegun = newProgress(p), true }

// LoadAnswers shows the superstep the answers that are about to be stored.
func (l *Loop) LoadAnswers(answered []checkpoint.Interrupt) { l.pending.setAnswers(answered) }

// MaxStep returns the last superstep that may run.
func (l *Loop) MaxStep() int { return l.maxStep }

// SetMaxStep bounds the run as the server before has done.
func (l *Loop) SetMaxStep(step int) { l.maxStep = step }

// RenewStepLimit grants the run its step limit from here on.
func (l *Loop) RenewStepLimit() { l.maxStep = l.state.NextStep() + 1 + l.stepLimit() }

// ApplySettings changes the settings of the rest of the run.
func (l *Loop) ApplySettings(s *runtime.RunSettings) {
	s.ApplyTo(&l.run.Request)
	l.setBreakpoints()
	if !l.thread.HasReportedResults {
		l.RenewStepLimit()
	}
}

// setBreakpoints sets the breakpoints of the run's request. Where the request has none,
// it sets those of the graph.
func (l *Loop) setBreakpoints() {
	l.breakBefore, l.breakAfter = l.Graph().InterruptBefore, l.Graph().InterruptAfter
	if given := l.run.Request.InterruptBefore; len(given) > 0 {
		l.breakBefore = given
	}
	if given := l.run.Request.InterruptAfter; len(given) > 0 {
		l.breakAfter = given
	}
}

// NextRemoteTasks lists the capabilities that the tasks that are about to run need of
// workers. It is false when the loop ends before them, or when a task needs no worker.
func (l *Loop) NextRemoteTasks() ([]checkpoint.Capability, bool) {
	if l.decideEnd(l.state, l.tasks, nil, &l.pending) != nil {
		return nil, false
	}
	s := &superstep{frame: &l.frame}
	for _, t := range l.tasks {
		s.planTask(t)
	}
	needs := make([]checkpoint.Capability, 0, len(s.toRun))
	for _, t := range s.toRun {
		need, remote := placement.CapabilityFor(l.Graph(), t.Node)
		if !remote {
			return nil, false
		}
		needs = append(needs, need)
	}
	return needs, true
}
