package superstep

import (
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Recovery is what a server knows of tasks that workers may run for the server
// before it, and what it leaves to the next one.
type Recovery struct {
	takenUpAt   time.Time // when the run was taken up; zero = no worker can have a task of it
	remoteTasks []string  // the tasks that workers may run, as in checkpoint.Head

	mu             sync.Mutex
	leftTasks      []string
	requestedTasks map[string]struct{} // that were requested here, and the root tasks that contain them
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

// noteRequest notes that a task is requested here, and the root task that contains it, ""
// for a root task: whether a worker still runs it is known from then on.
func (r *Recovery) noteRequest(task, top string) {
	if len(r.remoteTasks) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requestedTasks == nil {
		r.requestedTasks = make(map[string]struct{}, 1)
	}
	r.requestedTasks[task] = struct{}{}
	if top != "" {
		r.requestedTasks[top] = struct{}{}
	}
}

// maxNamedTasks bounds how many tasks are left to the next server by their names.
const maxNamedTasks = 1024

// listLeft lists the tasks that workers may run, for the next server. Tasks that the
// server before has left, and that were not requested here, are still left to it.
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
			left = r.appendUnrequested(left, unfinished)
		} else if !r.isRequested(task) && !slices.Contains(left, task) {
			left = append(left, task)
		}
	}
	if len(left) > maxNamedTasks {
		return []string{checkpoint.AnyTask}
	}
	return left
}

// appendUnrequested adds the tasks that workers may run, of those that were not requested
// here. mu is held.
func (r *Recovery) appendUnrequested(left []string, tasks []*pregel.Task) []string {
	for _, t := range tasks {
		switch {
		case r.isRequested(t.ID):
		case t.Node.Kind == graph.KindRemote:
			left = append(left, t.ID)
		case t.Node.Kind == graph.KindGraph:
			left = append(left, t.ID+checkpoint.Inside)
		}
	}
	return left
}

func (r *Recovery) isRequested(task string) bool {
	_, ok := r.requestedTasks[task]
	return ok
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

// listUnfinished lists the tasks of the superstep that was taken up here and that are
// still to be run, none when the loop has come further.
func (fr *frame) listUnfinished() []*pregel.Task {
	if !fr.maybeHandedOut {
		return nil
	}
	w := &superstep{frame: fr}
	for _, t := range fr.tasks {
		w.planTask(t)
	}
	return w.toRun
}
