package superstep

import (
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Recovery holds the tasks that workers may run for the server before this server, and
// those that this server leaves to the next.
type Recovery struct {
	takenUpAt   time.Time // when the run was taken up; zero = no worker can have a task of it
	remoteTasks []string  // the tasks that workers may run, as in checkpoint.Head

	mu            sync.Mutex
	leftTasks     []string
	resolvedTasks map[string]struct{} // of which it is known here who runs them
}

// NoteTakeOver notes that the run was not given back by the server that drove it, or
// was given back while workers ran some of its tasks.
func (r *Recovery) NoteTakeOver(head *checkpoint.Head) {
	if r.remoteTasks = RemoteTasksOf(head); len(r.remoteTasks) > 0 {
		r.takenUpAt = time.Now()
	}
}

// RemoteTasksOf lists the tasks that workers may run for the server that drove a run
// before. A server that died has named none.
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
	r.addInside(top)
}

// addInside records that workers may run tasks inside a root task, "" for none. mu is
// held.
func (r *Recovery) addInside(top string) {
	if inside := top + checkpoint.Inside; top != "" && !slices.Contains(r.leftTasks, inside) {
		r.leftTasks = append(r.leftTasks, inside)
	}
}

// noteResolved notes that this server knows who runs a task.
func (r *Recovery) noteResolved(task string) {
	if len(r.remoteTasks) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resolvedTasks == nil {
		r.resolvedTasks = make(map[string]struct{}, 1)
	}
	r.resolvedTasks[task] = struct{}{}
}

// noteUnresolved notes that the request of a task has ended before it was known who runs
// the task. top is the root task that contains it, "" for a root task.
func (r *Recovery) noteUnresolved(top string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addInside(top)
}

// maxNamedTasks bounds how many tasks are left to the next server by their names.
const maxNamedTasks = 1024

// listLeft lists the tasks that workers may run, for the next server. Tasks that the
// server before has left, and that are not resolved here, are still left to it.
// unfinished are the tasks of the superstep that was taken up, none when the run has come
// further.
func (r *Recovery) listLeft(unfinished []*pregel.Task) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Clone(r.leftTasks)
	if len(unfinished) == 0 {
		return left
	}
	for _, task := range r.remoteTasks {
		if task == checkpoint.AnyTask {
			left = r.appendUnresolved(left, unfinished)
		} else if !r.isResolved(task) && !slices.Contains(left, task) {
			left = append(left, task)
		}
	}
	if len(left) > maxNamedTasks {
		return []string{checkpoint.AnyTask}
	}
	return left
}

// appendUnresolved adds the tasks that workers may run, of those that are not resolved
// here, when the server before has named none. AnyTask stands for them: a task that is
// named was handed out. mu is held.
func (r *Recovery) appendUnresolved(left []string, tasks []*pregel.Task) []string {
	for _, t := range tasks {
		switch {
		case t.Node.Kind == graph.KindGraph: // not all of its tasks may have been requested
			if inside := t.ID + checkpoint.Inside; !slices.Contains(left, inside) {
				left = append(left, inside)
			}
		case t.Node.Kind == graph.KindRemote && !r.isResolved(t.ID):
			return append(left, checkpoint.AnyTask)
		}
	}
	return left
}

func (r *Recovery) isResolved(task string) bool {
	_, ok := r.resolvedTasks[task]
	return ok
}

// wasHandedOut reports whether the server before has stored that a worker may have a
// task.
func (r *Recovery) wasHandedOut(task string) bool { return slices.Contains(r.remoteTasks, task) }
