package runtime

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// questions are those that the subgraphs of the tasks that are shown have asked.
type questions struct {
	tasks  []*checkpoint.Checkpoint          // whose tasks are shown
	of     *loop                             // in which they are under way, nil = in none
	spaces map[string]bool                   // the namespaces of these tasks
	byName map[string][]checkpoint.Interrupt // by namespace, nil = not read yet
	bytes  int                               // that byName holds
}

// show says whose tasks are shown next, so that of all questions of the thread
// only those of their subgraphs are kept.
func (a *questions) show(list []*checkpoint.Checkpoint, of *loop) {
	*a = questions{tasks: list, of: of}
}

// below lists what the subgraph of a task asked last, and the subgraphs in it.
func (r *reader) below(space string) ([]checkpoint.Interrupt, error) {
	if r.byName == nil {
		if err := r.readAsked(); err != nil {
			return nil, err
		}
	}
	var out []checkpoint.Interrupt
	for _, ns := range slices.Sorted(maps.Keys(r.byName)) {
		if ns == space || strings.HasPrefix(ns, space+"|") {
			out = append(out, r.byName[ns]...)
		}
	}
	return out, nil
}

func (r *reader) readAsked() error {
	r.byName, r.spaces = make(map[string][]checkpoint.Interrupt), make(map[string]bool)
	for _, cp := range r.tasks {
		for _, next := range cp.Next {
			r.spaces[pregel.JoinNamespace(cp.Namespace, next.Node+":"+next.ID)] = true
		}
	}
	var full error
	err := r.engine.eachInterrupt(r.ctx, checkpoint.InterruptQuery{Thread: r.head.Thread}, func(q *checkpoint.Interrupt) {
		if full != nil || q.Namespace == "" || q.Task == "" || !r.isShown(q.Namespace) {
			return
		}
		if r.keep(q); r.room > 0 && r.bytes > r.room {
			full = errManyResults
			clear(r.byName)
		}
	})
	if err = cmp.Or(err, full); err != nil {
		r.byName = nil
	}
	return err
}

// isShown reports whether a namespace is that of a task that is shown, or lies in
// it.
func (a *questions) isShown(ns string) bool {
	for at := range len(ns) {
		if ns[at] == '|' && a.spaces[ns[:at]] {
			return true
		}
	}
	return a.spaces[ns]
}

// keep keeps a question, in place of those that were asked before at an older
// checkpoint of its namespace.
func (a *questions) keep(q *checkpoint.Interrupt) {
	list := a.byName[q.Namespace]
	if len(list) > 0 && list[0].Checkpoint != q.Checkpoint {
		for i := range list {
			a.bytes -= list[i].Size()
		}
		list = nil
	}
	a.byName[q.Namespace] = append(list, *q)
	a.bytes += q.Size()
}
