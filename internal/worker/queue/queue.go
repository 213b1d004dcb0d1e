package queue

import (
	"iter"
	"maps"
	"slices"
	"sort"
	"sync/atomic"
)

// Task is a task that waits for a worker.
type Task interface {
	comparable
	Route() Route
	Order() uint64 // by age: the oldest task has the lowest
	// IsRefused reports whether a worker does not take the task for now, though
	// it serves its route.
	IsRefused() bool
}

// Worker is a worker that may take tasks.
type Worker[T any] interface {
	CanServe(r Route) bool
	FreeSlots() int
	// RankTask reports whether the worker can take a task now, and its rank. The
	// worker with the highest rank gets the task.
	RankTask(task T) (rank int64, ok bool)
}

// Queue holds tasks by route, the oldest first. It is guarded by a lock of its
// owner, save for Len.
type Queue[T Task, W Worker[T]] struct {
	byRoute map[Route][]T
	count   atomic.Int64
}

// New makes an empty queue.
func New[T Task, W Worker[T]]() *Queue[T, W] { return &Queue[T, W]{byRoute: make(map[Route][]T)} }

// Len returns the number of waiting tasks. It is safe for concurrent use.
func (q *Queue[T, W]) Len() int { return int(q.count.Load()) }

// Routes lists the routes of all waiting tasks.
func (q *Queue[T, W]) Routes() iter.Seq[Route] { return maps.Keys(q.byRoute) }

// TasksOf lists the tasks of a route, the oldest first. The list is not to be
// changed, and valid until the queue changes.
func (q *Queue[T, W]) TasksOf(r Route) []T { return q.byRoute[r] }

// AddTask adds a task by its age.
func (q *Queue[T, W]) AddTask(task T) {
	tasks := q.byRoute[task.Route()]
	at := sort.Search(len(tasks), func(i int) bool { return tasks[i].Order() > task.Order() })
	q.byRoute[task.Route()] = slices.Insert(tasks, at, task)
	q.count.Add(1)
}

// RemoveTask removes a task. It reports false if the task is not in the queue.
func (q *Queue[T, W]) RemoveTask(task T) bool {
	r := task.Route()
	tasks := q.byRoute[r]
	at := slices.Index(tasks, task)
	if at < 0 {
		return false
	}
	q.count.Add(-1)
	if len(tasks) == 1 {
		delete(q.byRoute, r)
	} else {
		q.byRoute[r] = slices.Delete(tasks, at, at+1)
	}
	return true
}

// TakeMatch removes the oldest task of a route that a worker takes now, and names
// that worker.
func (q *Queue[T, W]) TakeMatch(r Route, workers iter.Seq[W]) (task T, best W, ok bool) {
	tasks := q.byRoute[r]
	if len(tasks) == 0 || !hasFreeWorker[T](r, workers) {
		return task, best, false
	}
	for _, t := range tasks {
		if w, found := findWorker(t, workers); found {
			q.RemoveTask(t)
			return t, w, true
		}
		if !t.IsRefused() { // no worker has a free slot for the route
			break
		}
	}
	return task, best, false
}

// TakeTask removes a task that waits if a worker takes it now, and names that
// worker.
func (q *Queue[T, W]) TakeTask(task T, workers iter.Seq[W]) (best W, ok bool) {
	if !slices.Contains(q.byRoute[task.Route()], task) {
		return best, false
	}
	if best, ok = findWorker(task, workers); ok {
		q.RemoveTask(task)
	}
	return best, ok
}

// TakeOldest removes the oldest of the tasks that a worker takes now.
func (q *Queue[T, W]) TakeOldest(worker W) (oldest T, ok bool) {
	if worker.FreeSlots() <= 0 {
		return oldest, false
	}
	for r, tasks := range q.byRoute {
		if !worker.CanServe(r) {
			continue
		}
		for _, t := range tasks {
			if _, takes := worker.RankTask(t); !takes {
				continue
			}
			if !ok || t.Order() < oldest.Order() {
				oldest, ok = t, true
			}
			break
		}
	}
	if ok {
		q.RemoveTask(oldest)
	}
	return oldest, ok
}

// findWorker chooses the worker for a task, if any takes it now.
func findWorker[T any, W Worker[T]](task T, workers iter.Seq[W]) (best W, ok bool) {
	var highest int64
	for w := range workers {
		if rank, takes := w.RankTask(task); takes && (!ok || rank > highest) {
			best, highest, ok = w, rank, true
		}
	}
	return best, ok
}

// hasFreeWorker reports whether a worker serves a route and has a free slot.
func hasFreeWorker[T any, W Worker[T]](r Route, workers iter.Seq[W]) bool {
	for w := range workers {
		if w.FreeSlots() > 0 && w.CanServe(r) {
			return true
		}
	}
	return false
}
