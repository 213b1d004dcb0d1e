package superstep

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
)

// trackRemoteTask tracks a task that needs a worker until done is called.
func (fx *effects) trackRemoteTask(t *runtime.Task) (done func()) {
	l := fx.loop
	if !l.env.TracksTasks {
		return func() {}
	}
	need, _ := placement.CapabilityFor(t.Graph, t.Node)
	t.AlsoNeeds = l.level.requiredCapabilities
	t.Stranded, t.WorkerWait, done = l.thread.Tasks.TrackTask(append(slices.Clip(t.AlsoNeeds), need), l.mustStay(t.Node))
	return done
}

// mustStay reports whether a run that ends before a task of the loop has begun loses
// something: values that are not stored, the time that the task has left, or what a
// graph that keeps no checkpoints has done.
func (l *Loop) mustStay(n *graph.Node) bool {
	timed := n != nil && (n.Timeout > 0 || n.IdleTimeout > 0) || l.Graph().Spec.StepTimeout > 0
	return timed || l.level.losesWorkOnStop || l.level.replay != nil || !l.level.keepsCheckpoints || l.Graph().HasUntracked()
}

// NextRemoteTasks lists what workers must serve for the tasks that are about to run.
// It is false when the loop ends before them, or when one needs no worker.
func (l *Loop) NextRemoteTasks() ([]checkpoint.Capability, bool) {
	if l.decideEnd(l.state, l.tasks, nil, &l.pending) != nil {
		return nil, false
	}
	w := &superstep{loop: l}
	for _, t := range l.tasks {
		w.planTask(t)
	}
	needs := make([]checkpoint.Capability, 0, len(w.toRun))
	for _, t := range w.toRun {
		need, remote := placement.CapabilityFor(l.Graph(), t.Node)
		if !remote {
			return nil, false
		}
		needs = append(needs, need)
	}
	return needs, true
}
