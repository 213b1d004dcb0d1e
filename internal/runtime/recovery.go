package runtime

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// recovery is what a server knows of tasks that workers may run for the server
// before it, and what it leaves to the next one.
type recovery struct {
	at   time.Time // when the run was taken up; zero = no worker can have a task of it
	lent []string  // the tasks that workers may run, as in checkpoint.Head

	mu   sync.Mutex
	left []string
}

// recover notes that the run was not given back by the server that drove it, or
// was given back while workers ran some of its tasks.
func (r *recovery) recover(head *checkpoint.Head) {
	if r.lent = lentBy(head); len(r.lent) > 0 {
		r.at = time.Now()
	}
}

// lentBy lists the tasks that workers may run for the server that drove a run
// before. A server that died has told nothing.
func lentBy(head *checkpoint.Head) []string {
	if head.Owner != "" {
		return []string{checkpoint.AnyTask}
	}
	return head.Lent
}

// leave notes a task that a worker still runs when the run ends here, and the task
// of the root that it is inside of, "" for one of the root.
func (r *recovery) leave(task, top string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, task)
	if inside := top + checkpoint.Inside; top != "" && !slices.Contains(r.left, inside) {
		r.left = append(r.left, inside)
	}
}

// leaves lists these tasks, for the next server. Those of graphs that have not gone
// on here are still left to it.
func (r *recovery) leaves(inherited bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Clone(r.left)
	for _, task := range r.lent {
		if inherited && strings.HasSuffix(task, checkpoint.Inside) && !slices.Contains(left, task) {
			left = append(left, task)
		}
	}
	return left
}

// handedOut reports whether the server before has told that a worker may have a
// task.
func (r *recovery) handedOut(task string) bool { return slices.Contains(r.lent, task) }

// recovered is when the run was taken up, if a task of the loop's superstep may
// have been handed out before; else zero.
func (l *loop) recovered(task string) time.Time {
	r := &l.session.recovery
	switch {
	case !l.inherited:
		return time.Time{}
	case !l.level.root: // with the task that runs the graph, those of the graph are lent
		return r.at
	case slices.Contains(r.lent, checkpoint.AnyTask), slices.Contains(r.lent, task):
		return r.at
	}
	return time.Time{}
}

// recoveredInside reports whether tasks of a graph that a task of the loop's
// superstep runs, or calls, may have been handed out before.
func (l *loop) recoveredInside(task string) bool {
	return !l.recovered(task).IsZero() ||
		l.inherited && slices.Contains(l.session.recovery.lent, task+checkpoint.Inside)
}
