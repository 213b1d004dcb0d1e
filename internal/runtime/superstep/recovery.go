package superstep

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Recovery is what a server knows of tasks that workers may run for the server
// before it, and what it leaves to the next one.
type Recovery struct {
	takenUpAt   time.Time // when the run was taken up; zero = no worker can have a task of it
	remoteTasks []string  // the tasks that workers may run, as in checkpoint.Head

	mu        sync.Mutex
	leftTasks []string
}

// NoteTakeOver notes that the run was not given back by the server that drove it, or
// was given back while workers ran some of its tasks.
func (r *Recovery) NoteTakeOver(head *checkpoint.Head) {
	if r.remoteTasks = RemoteTasksOf(head); len(r.remoteTasks) > 0 {
		r.takenUpAt = time.Now()
	}
}

// RemoteTasksOf lists the tasks that workers may run for the server that drove a run
// before. A server that died has told nothing.
func RemoteTasksOf(head *checkpoint.Head) []string {
	if head.Owner != "" {
		return []string{checkpoint.AnyTask}
	}
	return head.RemoteTasks
}

// addLeft records a task that a worker still runs when the run ends here, and the
// root task that contains it, "" for a root task.
func (r *Recovery) addLeft(task, top string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftTasks = append(r.leftTasks, task)
	if inside := top + checkpoint.Inside; top != "" && !slices.Contains(r.leftTasks, inside) {
		r.leftTasks = append(r.leftTasks, inside)
	}
}

// listLeft lists these tasks, for the next server. Those of graphs that have not gone
// on here are still left to it.
func (r *Recovery) listLeft(inherited bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Clone(r.leftTasks)
	for _, task := range r.remoteTasks {
		if inherited && strings.HasSuffix(task, checkpoint.Inside) && !slices.Contains(left, task) {
			left = append(left, task)
		}
	}
	return left
}

// wasHandedOut reports whether the server before has told that a worker may have a
// task.
func (r *Recovery) wasHandedOut(task string) bool { return slices.Contains(r.remoteTasks, task) }

// recoveredAt returns when the run was taken up, if a task of the loop's superstep may
// have been handed out before; else zero.
func (fr *frame) recoveredAt(task string) time.Time {
	r := &fr.thread.Recovery
	switch {
	case !fr.maybeHandedOut:
		return time.Time{}
	case !fr.level.isRoot: // with the task that runs the graph, those of the graph are lent
		return r.takenUpAt
	case slices.Contains(r.remoteTasks, checkpoint.AnyTask), slices.Contains(r.remoteTasks, task):
		return r.takenUpAt
	}
	return time.Time{}
}

// isRecoveredInside reports whether tasks of a graph that a task of the loop's
// superstep runs, or calls, may have been handed out before.
func (fr *frame) isRecoveredInside(task string) bool {
	return !fr.recoveredAt(task).IsZero() ||
		fr.maybeHandedOut && slices.Contains(fr.thread.Recovery.remoteTasks, task+checkpoint.Inside)
}
