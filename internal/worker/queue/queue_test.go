package queue_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/worker/queue"
)

type task struct {
	route     string
	order     uint64
	refusedBy *worker
}

func (t *task) Route() queue.Route { return queue.Route{Graph: t.route} }
func (t *task) Order() uint64      { return t.order }
func (t *task) IsRefused() bool    { return t.refusedBy != nil }

type worker struct {
	serves []string
	free   int
}

func (w *worker) CanServe(r queue.Route) bool { return slices.Contains(w.serves, r.Graph) }
func (w *worker) FreeSlots() int              { return w.free }

func (w *worker) RankTask(t *task) (int64, bool) {
	return int64(w.free), w.free > 0 && w.CanServe(t.Route()) && t.refusedBy != w
}

func newQueue(tasks ...*task) *queue.Queue[*task, *worker] {
	q := queue.New[*task, *worker]()
	for _, t := range tasks {
		q.AddTask(t)
	}
	return q
}

func TestTasksOfARouteAreSortedByAge(t *testing.T) {
	first, second, third := &task{"a", 1, nil}, &task{"a", 2, nil}, &task{"a", 3, nil}
	q := newQueue(third, first, &task{"b", 4, nil}, second)
	require.Equal(t, []*task{first, second, third}, q.TasksOf(queue.Route{Graph: "a"}))
	require.Equal(t, 4, q.Len())

	require.True(t, q.RemoveTask(second))
	require.False(t, q.RemoveTask(second))
	require.Equal(t, []*task{first, third}, q.TasksOf(queue.Route{Graph: "a"}))
	require.True(t, q.RemoveTask(first))
	require.True(t, q.RemoveTask(third))
	require.Equal(t, []queue.Route{{Graph: "b"}}, slices.Collect(q.Routes()))
	require.Equal(t, 1, q.Len())
}

func TestAMatchIsTheOldestTaskAndTheBestWorker(t *testing.T) {
	route := queue.Route{Graph: "a"}
	busy, free, other := &worker{[]string{"a"}, 1}, &worker{[]string{"a"}, 2}, &worker{[]string{"b"}, 9}
	workers := slices.Values([]*worker{busy, free, other})
	older, newer := &task{"a", 1, nil}, &task{"a", 2, nil}
	q := newQueue(older, newer)

	got, by, ok := q.TakeMatch(route, workers)
	require.True(t, ok)
	require.Same(t, older, got)
	require.Same(t, free, by)
	require.Equal(t, 1, q.Len())

	_, _, ok = q.TakeMatch(route, slices.Values([]*worker{other}))
	require.False(t, ok, "no worker serves the route")
	by, ok = q.TakeTask(newer, workers)
	require.True(t, ok)
	require.Same(t, free, by)
	_, ok = q.TakeTask(newer, workers)
	require.False(t, ok, "it does not wait any more")
}

func TestARefusedTaskDoesNotHoldUpTheNext(t *testing.T) {
	only := &worker{[]string{"a"}, 1}
	refused, next := &task{"a", 1, only}, &task{"a", 2, nil}
	q := newQueue(refused, next)
	got, _, ok := q.TakeMatch(queue.Route{Graph: "a"}, slices.Values([]*worker{only}))
	require.True(t, ok)
	require.Same(t, next, got)
	_, ok = q.TakeOldest(only)
	require.False(t, ok)
}

func TestAWorkerTakesTheOldestTaskOfAllItsRoutes(t *testing.T) {
	w := &worker{[]string{"a", "b"}, 1}
	oldest := &task{"b", 2, nil}
	q := newQueue(&task{"a", 3, nil}, oldest, &task{"c", 1, nil}, &task{"b", 4, nil})
	got, ok := q.TakeOldest(w)
	require.True(t, ok)
	require.Same(t, oldest, got)
	w.free = 0
	_, ok = q.TakeOldest(w)
	require.False(t, ok)
}
