package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// history holds the checkpoints of a thread, in order of Seq per namespace.
type history struct {
	root   []*checkpoint.Checkpoint
	nested map[string][]*checkpoint.Checkpoint
}

// progress is the records of the superstep after a checkpoint.
type progress struct {
	tasks map[string]checkpoint.Task
	memos map[memoKey]checkpoint.Memo
}

// memoKey is where in a task a memo belongs.
type memoKey struct {
	task, scope, key string
	index            int
}

func (h *history) addCheckpoints(cps []*checkpoint.Checkpoint) {
	for _, cp := range cps {
		if cp.Namespace == "" {
			h.root = append(h.root, cp)
			continue
		}
		if h.nested == nil {
			h.nested = map[string][]*checkpoint.Checkpoint{}
		}
		h.nested[cp.Namespace] = append(h.nested[cp.Namespace], cp)
	}
}

// dropAfter removes and returns the checkpoints with a greater Seq.
func (h *history) dropAfter(after uint64) []*checkpoint.Checkpoint {
	i := countUpTo(h.root, after)
	dropped := slices.Clone(h.root[i:])
	h.root = slices.Delete(h.root, i, len(h.root))
	for ns, list := range h.nested {
		i := countUpTo(list, after)
		dropped = append(dropped, list[i:]...)
		if list = slices.Delete(list, i, len(list)); len(list) == 0 {
			delete(h.nested, ns)
			continue
		}
		h.nested[ns] = list
	}
	return dropped
}

// dropPruned removes and returns the checkpoints that DropBefore names. The
// values go with the last checkpoint that shows them.
func (h *history) dropPruned(c *checkpoint.Change) []*checkpoint.Checkpoint {
	gone, left := c.SelectPruned(slices.Concat(h.root, slices.Concat(slices.Collect(maps.Values(h.nested))...)))
	if len(gone) == 0 {
		return nil
	}
	*h = history{}
	h.addCheckpoints(left)
	return gone
}

func (h *history) checkpointsOf(ns string) []*checkpoint.Checkpoint {
	if ns == "" {
		return h.root
	}
	return h.nested[ns]
}

// countUpTo returns how many of the checkpoints have a Seq of at most seq.
func countUpTo(list []*checkpoint.Checkpoint, seq uint64) int {
	i, found := slices.BinarySearchFunc(list, seq, func(cp *checkpoint.Checkpoint, seq uint64) int {
		return cmp.Compare(cp.Seq, seq)
	})
	if found {
		i++
	}
	return i
}

var _ checkpoint.BoundedReader = (*Store)(nil)

// CheckpointWithin returns a checkpoint of at most that many bytes. It returns
// *checkpoint.LargeError for a larger checkpoint, and checkpoint.ErrCheckpointNotFound
// when there is none.
func (s *Store) CheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	cp, err := s.Checkpoint(ctx, thread, namespace, id)
	if err != nil {
		return nil, err
	}
	if size := cp.Size(); size > most {
		return nil, &checkpoint.LargeError{Bytes: size, Seq: cp.Seq}
	}
	return cp, nil
}

// PendingWithin returns the progress after a checkpoint that is not large.
func (s *Store) PendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	p, err := s.Pending(ctx, thread, id)
	if err != nil {
		return checkpoint.Pending{}, err
	}
	if size := p.Size(); size > most {
		return checkpoint.Pending{}, &checkpoint.LargeError{Bytes: size}
	}
	return p, nil
}

// Checkpoint returns a checkpoint of a namespace, the newest for an empty id. It returns
// checkpoint.ErrCheckpointNotFound when there is none.
func (s *Store) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	t := s.lockThread(thread)
	if t == nil {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	defer t.mu.Unlock()
	list := t.history.checkpointsOf(namespace)
	if id == "" && len(list) > 0 {
		return list[len(list)-1], nil
	}
	i, found := slices.BinarySearchFunc(list, id, func(cp *checkpoint.Checkpoint, id string) int {
		return strings.Compare(cp.ID, id)
	})
	if !found {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	return list[i], nil
}

// Checkpoints lists the checkpoints of a namespace, newest first.
func (s *Store) Checkpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) ([]*checkpoint.Checkpoint, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	t := s.lockThread(q.Thread)
	if t == nil {
		return nil, nil
	}
	defer t.mu.Unlock()
	list := t.history.checkpointsOf(q.Namespace)
	switch {
	case q.AllNamespaces:
		list = t.history.allCheckpoints()
	case q.AnyTask:
		list = t.history.checkpointsAtPath(checkpoint.NodePath(q.Namespace))
	}
	end := len(list)
	if q.Before > 0 {
		end = countUpTo(list, q.Before-1)
	}
	if q.Limit <= 0 {
		out := slices.Clone(list[:end])
		slices.Reverse(out)
		return out, nil
	}
	out := make([]*checkpoint.Checkpoint, 0, min(q.Limit, end))
	portion := checkpoint.Portion{Limit: q.Limit}
	for _, cp := range slices.Backward(list[:end]) {
		if portion.Full() {
			break
		}
		portion.Take(cp.Size())
		out = append(out, cp)
	}
	return out, nil
}

// allCheckpoints collects the checkpoints of all namespaces.
func (h *history) allCheckpoints() []*checkpoint.Checkpoint {
	out := slices.Concat(h.root, slices.Concat(slices.Collect(maps.Values(h.nested))...))
	slices.SortFunc(out, func(a, b *checkpoint.Checkpoint) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// checkpointsAtPath collects the namespaces that have the given node names.
func (h *history) checkpointsAtPath(nodes string) []*checkpoint.Checkpoint {
	if nodes == "" {
		return h.root
	}
	var out []*checkpoint.Checkpoint
	for ns, list := range h.nested {
		if checkpoint.NodePath(ns) == nodes {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b *checkpoint.Checkpoint) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Pending returns the progress after a checkpoint.
func (s *Store) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.Pending{}, err
	}
	t := s.lockThread(thread)
	if t == nil {
		return checkpoint.Pending{}, nil
	}
	defer t.mu.Unlock()
	var p checkpoint.Pending
	if pr := t.progress[id]; pr != nil {
		p.Tasks = slices.SortedFunc(maps.Values(pr.tasks), func(a, b checkpoint.Task) int {
			return strings.Compare(a.ID, b.ID)
		})
		p.Memos = slices.SortedFunc(maps.Values(pr.memos), compareMemos)
	}
	for _, q := range t.interruptsByCheckpoint[id] {
		p.Interrupts = append(p.Interrupts, *q.record.Load())
	}
	return p, nil
}

func (t *thread) addProgress(c *checkpoint.Change) {
	for i := range c.Tasks {
		pr := t.progressAfter(c.Tasks[i].Checkpoint)
		pr.putTask(&c.Tasks[i])
	}
	for i := range c.Memos {
		pr := t.progressAfter(c.Memos[i].Checkpoint)
		pr.putMemo(&c.Memos[i])
	}
}

func (t *thread) progressAfter(id string) *progress {
	if t.progress == nil {
		t.progress = map[string]*progress{}
	}
	pr := t.progress[id]
	if pr == nil {
		pr = &progress{}
		t.progress[id] = pr
	}
	return pr
}

func (p *progress) putTask(task *checkpoint.Task) {
	if p.tasks == nil {
		p.tasks = map[string]checkpoint.Task{}
	}
	p.tasks[task.ID] = *task
}

// putMemo keeps the first memo of a place.
func (p *progress) putMemo(m *checkpoint.Memo) {
	if p.memos == nil {
		p.memos = map[memoKey]checkpoint.Memo{}
	}
	at := memoKey{m.Task, m.Scope, m.Key, m.Index}
	if _, ok := p.memos[at]; !ok {
		p.memos[at] = *m
	}
}

func compareMemos(a, b checkpoint.Memo) int {
	return cmp.Or(
		strings.Compare(a.Task, b.Task),
		strings.Compare(a.Scope, b.Scope),
		strings.Compare(a.Key, b.Key),
		cmp.Compare(a.Index, b.Index),
	)
}
