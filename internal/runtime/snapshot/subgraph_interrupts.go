package snapshot

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// subgraphInterrupts are the interrupts of the subgraphs of the shown tasks.
type subgraphInterrupts struct {
	shownCheckpoints []*checkpoint.Checkpoint          // whose tasks are shown
	namespaces       map[string]bool                   // the namespaces of these tasks
	byNamespace      map[string][]checkpoint.Interrupt // by namespace, nil = not read yet
	interruptBytes   int                               // that byNamespace holds
}

// setShown sets the checkpoints whose tasks are shown next. Only interrupts of the
// subgraphs of these tasks are kept.
func (s *subgraphInterrupts) setShown(list []*checkpoint.Checkpoint) {
	*s = subgraphInterrupts{shownCheckpoints: list}
}

// interruptsBelow lists the latest interrupts of a task's subgraph and of the
// subgraphs inside it.
func (b *builder) interruptsBelow(ctx context.Context, space string) ([]checkpoint.Interrupt, error) {
	if b.byNamespace == nil {
		if err := b.readInterrupts(ctx); err != nil {
			return nil, err
		}
	}
	var out []checkpoint.Interrupt
	for _, ns := range slices.Sorted(maps.Keys(b.byNamespace)) {
		if ns == space || strings.HasPrefix(ns, space+"|") {
			out = append(out, b.byNamespace[ns]...)
		}
	}
	return out, nil
}

func (b *builder) readInterrupts(ctx context.Context) error {
	b.byNamespace, b.namespaces = make(map[string][]checkpoint.Interrupt), make(map[string]bool)
	for _, cp := range b.shownCheckpoints {
		for _, next := range cp.Next {
			b.namespaces[pregel.JoinNamespace(cp.Namespace, next.Node+":"+next.ID)] = true
		}
	}
	var full error
	err := b.reader.EachInterrupt(ctx, checkpoint.InterruptQuery{Thread: b.head.Thread}, func(q *checkpoint.Interrupt) {
		if full != nil || q.Namespace == "" || q.Task == "" || !b.isShown(q.Namespace) {
			return
		}
		if b.keepInterrupt(q); b.maxBytes > 0 && b.interruptBytes > b.maxBytes {
			full = errTooManyResults
			clear(b.byNamespace)
		}
	})
	if err = cmp.Or(err, full); err != nil {
		b.byNamespace = nil
	}
	return err
}

// isShown reports whether a namespace is that of a task that is shown, or lies in
// it.
func (s *subgraphInterrupts) isShown(ns string) bool {
	for at := range len(ns) {
		if ns[at] == '|' && s.namespaces[ns[:at]] {
			return true
		}
	}
	return s.namespaces[ns]
}

// keepInterrupt keeps an interrupt and drops those of an older checkpoint of its
// namespace.
func (s *subgraphInterrupts) keepInterrupt(q *checkpoint.Interrupt) {
	list := s.byNamespace[q.Namespace]
	if len(list) > 0 && list[0].Checkpoint != q.Checkpoint {
		for i := range list {
			s.interruptBytes -= list[i].Size()
		}
		list = nil
	}
	s.byNamespace[q.Namespace] = append(list, *q)
	s.interruptBytes += q.Size()
}

// persistentInterrupts lists the latest interrupts of a persistent subgraph, and of the
// subgraphs inside it, that were asked while the graph around it stood at a checkpoint.
func (b *builder) persistentInterrupts(ctx context.Context, space, around, at string) ([]checkpoint.Interrupt, error) {
	latest := make(map[string][]checkpoint.Interrupt) // by namespace
	var failed error
	err := b.reader.EachInterrupt(ctx, checkpoint.InterruptQuery{Thread: b.head.Thread}, func(q *checkpoint.Interrupt) {
		inside := q.Namespace == space || strings.HasPrefix(q.Namespace, space+"|")
		if failed != nil || q.Task == "" || !inside {
			return
		}
		cp, err := b.store.Checkpoint(ctx, b.head.Thread, q.Namespace, q.Checkpoint)
		switch {
		case errors.Is(err, checkpoint.ErrCheckpointNotFound):
			return
		case err != nil:
			failed = runtime.TranslateStoreError(err)
			return
		case cp.Parents[around] != at:
			return
		}
		if list := latest[q.Namespace]; len(list) > 0 && list[0].Checkpoint != q.Checkpoint {
			latest[q.Namespace] = nil
		}
		latest[q.Namespace] = append(latest[q.Namespace], *q)
	})
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	var out []checkpoint.Interrupt
	for _, ns := range slices.Sorted(maps.Keys(latest)) {
		out = append(out, latest[ns]...)
	}
	return out, nil
}
