package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// subgraphInterrupts are the interrupts of the subgraphs of the shown tasks.
type subgraphInterrupts struct {
	shownCheckpoints []*checkpoint.Checkpoint          // whose tasks are shown
	shownIn          *superstep.Preview                // in which they are under way, nil = in none
	namespaces       map[string]bool                   // the namespaces of these tasks
	byNamespace      map[string][]checkpoint.Interrupt // by namespace, nil = not read yet
	interruptBytes   int                               // that byNamespace holds
}

// setShown sets whose tasks are shown next; only the interrupts of their subgraphs
// are kept.
func (a *subgraphInterrupts) setShown(list []*checkpoint.Checkpoint, of *superstep.Preview) {
	*a = subgraphInterrupts{shownCheckpoints: list, shownIn: of}
}

// interruptsBelow lists the latest interrupts of a task's subgraph and of the
// subgraphs inside it.
func (r *snapshotReader) interruptsBelow(space string) ([]checkpoint.Interrupt, error) {
	if r.byNamespace == nil {
		if err := r.readInterrupts(); err != nil {
			return nil, err
		}
	}
	var out []checkpoint.Interrupt
	for _, ns := range slices.Sorted(maps.Keys(r.byNamespace)) {
		if ns == space || strings.HasPrefix(ns, space+"|") {
			out = append(out, r.byNamespace[ns]...)
		}
	}
	return out, nil
}

func (r *snapshotReader) readInterrupts() error {
	r.byNamespace, r.namespaces = make(map[string][]checkpoint.Interrupt), make(map[string]bool)
	for _, cp := range r.shownCheckpoints {
		for _, next := range cp.Next {
			r.namespaces[pregel.JoinNamespace(cp.Namespace, next.Node+":"+next.ID)] = true
		}
	}
	var full error
	err := r.engine.reader.EachInterrupt(r.ctx, checkpoint.InterruptQuery{Thread: r.head.Thread}, func(q *checkpoint.Interrupt) {
		if full != nil || q.Namespace == "" || q.Task == "" || !r.isShown(q.Namespace) {
			return
		}
		if r.keepInterrupt(q); r.maxBytes > 0 && r.interruptBytes > r.maxBytes {
			full = errTooManyResults
			clear(r.byNamespace)
		}
	})
	if err = cmp.Or(err, full); err != nil {
		r.byNamespace = nil
	}
	return err
}

// isShown reports whether a namespace is that of a task that is shown, or lies in
// it.
func (a *subgraphInterrupts) isShown(ns string) bool {
	for at := range len(ns) {
		if ns[at] == '|' && a.namespaces[ns[:at]] {
			return true
		}
	}
	return a.namespaces[ns]
}

// keepInterrupt keeps an interrupt and drops those of an older checkpoint of its
// namespace.
func (a *subgraphInterrupts) keepInterrupt(q *checkpoint.Interrupt) {
	list := a.byNamespace[q.Namespace]
	if len(list) > 0 && list[0].Checkpoint != q.Checkpoint {
		for i := range list {
			a.interruptBytes -= list[i].Size()
		}
		list = nil
	}
	a.byNamespace[q.Namespace] = append(list, *q)
	a.interruptBytes += q.Size()
}
