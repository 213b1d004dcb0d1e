package views

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// Bounds of the records of a thread with a view. A call on a thread that has more reads the store.
const (
	maxRecords = 64
	maxBytes   = 64 << 10
)

// view is a thread as the changes since its creation left it. One of a thread at rest does not change.
type view struct {
	head       checkpoint.Head
	run        *checkpoint.Run
	checkpoint *checkpoint.Checkpoint
	pending    checkpoint.Pending
	interrupts []checkpoint.Interrupt // all, by Created and ID
	requests   map[string]*checkpoint.Request
	bytes      int
}

// isAtRest reports whether a call may go on with the thread: no run works on it.
func (v *view) isAtRest() bool { return v.head.Owner == "" && v.head.State != checkpoint.ThreadBusy }

// snapshotFor returns the view as a store returns it to a call with a request.
func (v *view) snapshotFor(request string) *checkpoint.ThreadView {
	s := &checkpoint.ThreadView{Head: v.head, Run: v.run, Checkpoint: v.checkpoint, Interrupts: &v.interrupts}
	if v.checkpoint != nil {
		s.Pending = &v.pending
	}
	if request != "" {
		s.Requests = map[string]*checkpoint.Request{request: v.requests[request]}
	}
	return s
}

// applyChange returns the view after a change, nil when the change does not say all of it. The
// view before the creation of a thread is nil. A view on which a run works is in no other hands,
// and becomes the one after the change.
func (v *view) applyChange(t *commit.Tx, head *checkpoint.Head) *view {
	switch {
	case t.Expect == 0 && !t.IsCopy:
		v = new(view)
	case v == nil || v.head.Revision != t.Expect || v.head.LogID != t.LogID || t.DropAfter != nil || t.IsCopy:
		return nil
	}
	old, next := *v, v
	if v.isAtRest() {
		next = new(view)
	}
	*next = view{head: *head, run: old.run, checkpoint: old.checkpoint, interrupts: old.interrupts, requests: old.requests}
	if !next.putRun(t.Runs) || !next.putInterrupts(t.Interrupts) || !next.putCheckpoint(t.Checkpoints) || !next.putProgress(&old, t) {
		return nil
	}
	next.putRequest(t.Request)
	next.bytes = next.countBytes()
	if len(next.interrupts)+len(next.pending.Tasks)+len(next.pending.Memos)+len(next.requests) > maxRecords || next.bytes > maxBytes {
		return nil
	}
	return next
}

// putRun puts the run of the head, and reports whether it is known.
func (v *view) putRun(runs []checkpoint.Run) bool {
	for i := range runs {
		if runs[i].ID == v.head.Run {
			run := runs[i]
			v.run = &run
		}
	}
	if v.head.Run == "" {
		v.run = nil
		return true
	}
	return v.run != nil && v.run.ID == v.head.Run
}

// putInterrupts puts changed interrupts. It reports false for those with secret parts, which are kept
// nowhere but in the store.
func (v *view) putInterrupts(changed []checkpoint.Interrupt) bool {
	if len(changed) == 0 {
		return true
	}
	v.interrupts = slices.Clone(v.interrupts)
	for i := range changed {
		q := changed[i]
		if q.HidesParts() {
			return false
		}
		q.Revision = 1
		if at := v.findInterrupt(q.ID); at >= 0 {
			q.Revision = v.interrupts[at].Revision + 1
			v.interrupts[at] = q
		} else {
			v.interrupts = append(v.interrupts, q)
		}
	}
	slices.SortStableFunc(v.interrupts, func(a, b checkpoint.Interrupt) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return true
}

// putCheckpoint puts the checkpoint of the head, and reports whether it is known.
func (v *view) putCheckpoint(made []*checkpoint.Checkpoint) bool {
	for _, cp := range made {
		if cp.Namespace == "" && cp.ID == v.head.Checkpoint {
			v.checkpoint = cp
		}
	}
	if v.head.Checkpoint == "" {
		v.checkpoint = nil
		return true
	}
	return v.checkpoint != nil && v.checkpoint.ID == v.head.Checkpoint
}

// putProgress puts the progress after the checkpoint of the head. It reports false for tasks that
// are changed one by one.
func (v *view) putProgress(old *view, t *commit.Tx) bool {
	id := v.head.Checkpoint
	if old.head.Checkpoint == id && !slices.Contains(t.ClearTasks, id) {
		if len(t.Tasks)+len(t.Memos) > 0 && len(old.pending.Tasks)+len(old.pending.Memos) > 0 {
			return false
		}
		v.pending.Tasks, v.pending.Memos = old.pending.Tasks, old.pending.Memos
	}
	for i := range t.Tasks {
		if t.Tasks[i].Checkpoint == id {
			v.pending.Tasks = append(v.pending.Tasks, t.Tasks[i])
		}
	}
	for i := range t.Memos {
		if t.Memos[i].Checkpoint == id {
			v.pending.Memos = append(v.pending.Memos, t.Memos[i])
		}
	}
	sortProgress(&v.pending)
	v.pending.Interrupts = v.selectAsked(old, t)
	return true
}

// selectAsked returns the interrupts that were asked after the checkpoint of the head, in the order
// in which they were.
func (v *view) selectAsked(old *view, t *commit.Tx) []checkpoint.Interrupt {
	var asked []string
	if old.head.Checkpoint == v.head.Checkpoint {
		for i := range old.pending.Interrupts { // what clears the tasks leaves them
			asked = append(asked, old.pending.Interrupts[i].ID)
		}
	}
	for i := range t.Interrupts {
		if q := &t.Interrupts[i]; q.Checkpoint == v.head.Checkpoint && !slices.Contains(asked, q.ID) {
			asked = append(asked, q.ID)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if slices.EqualFunc(v.interrupts, asked, func(q checkpoint.Interrupt, id string) bool { return q.ID == id }) {
		return v.interrupts
	}
	list := make([]checkpoint.Interrupt, 0, len(asked))
	for _, id := range asked {
		list = append(list, v.interrupts[v.findInterrupt(id)])
	}
	return list
}

// findInterrupt returns the place of an interrupt, -1 when there is none with the id.
func (v *view) findInterrupt(id string) int {
	return slices.IndexFunc(v.interrupts, func(known checkpoint.Interrupt) bool { return known.ID == id })
}

// sortProgress orders tasks and memos as checkpoint.Pending has them.
func sortProgress(p *checkpoint.Pending) {
	slices.SortFunc(p.Tasks, func(a, b checkpoint.Task) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(p.Memos, func(a, b checkpoint.Memo) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), strings.Compare(a.Scope, b.Scope), strings.Compare(a.Key, b.Key), cmp.Compare(a.Index, b.Index))
	})
}

func (v *view) putRequest(r *checkpoint.Request) {
	if r == nil {
		return
	}
	requests := make(map[string]*checkpoint.Request, len(v.requests)+1)
	maps.Copy(requests, v.requests)
	requests[r.ID] = r
	v.requests = requests
}

// requestBytes is about how many bytes a request takes.
const requestBytes = 256

func (v *view) countBytes() int {
	progress := v.pending
	progress.Interrupts = nil // they are among the others
	n := v.head.Size() + progress.Size() + requestBytes*len(v.requests)
	if v.run != nil {
		n += v.run.Size()
	}
	if v.checkpoint != nil {
		n += v.checkpoint.Size()
	}
	for i := range v.interrupts {
		n += v.interrupts[i].Size()
	}
	return n
}
