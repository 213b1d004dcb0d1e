package runtime

import (
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// recovery is what a server knows of tasks that workers may run for the server
// before it, and what it leaves to the next one.
type recovery struct {
	at   time.Time // when the run was taken up; zero = no worker can have a task of it
	lent []string  // the tasks that workers may run; AnyTask for all

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

// leave notes a task that a worker still runs when the run ends here.
func (r *recovery) leave(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, task)
}

// leaves lists these tasks, for the next server.
func (r *recovery) leaves() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.left)
}

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
