package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// runs holds the runs of a thread by id and by Order. The slice holds pointers
// to records that are replaced, never changed.
type runs struct {
	byID    map[string]*checkpoint.Run
	inOrder []*checkpoint.Run
}

func (r *runs) putRuns(list []checkpoint.Run) (revisions []uint64) {
	for i := range list {
		run := list[i]
		run.Revision = 1
		if old := r.byID[run.ID]; old != nil {
			run.Revision = old.Revision + 1
			at, _ := r.findPosition(old)
			r.inOrder = slices.Delete(r.inOrder, at, at+1)
		}
		if r.byID == nil {
			r.byID = map[string]*checkpoint.Run{}
		}
		r.byID[run.ID] = &run
		at, _ := r.findPosition(&run)
		r.inOrder = slices.Insert(r.inOrder, at, &run)
		revisions = append(revisions, run.Revision)
	}
	return revisions
}

func (r *runs) findPosition(run *checkpoint.Run) (int, bool) {
	return slices.BinarySearchFunc(r.inOrder, run, func(a, b *checkpoint.Run) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), strings.Compare(a.ID, b.ID))
	})
}

// Head returns the thread's head. It returns checkpoint.ErrThreadNotFound when there is
// no such thread.
func (s *Store) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.Head{}, err
	}
	t := s.lockThread(thread)
	if t == nil {
		return checkpoint.Head{}, checkpoint.ErrThreadNotFound
	}
	defer t.mu.Unlock()
	return t.readHead(s), nil
}

// readHead returns a copy of the head with the present time. The caller holds mu.
func (t *thread) readHead(s *Store) checkpoint.Head {
	h := t.head
	h.Queue, h.Later = slices.Clone(h.Queue), slices.Clone(h.Later)
	h.Now = s.currentTime()
	return h
}

// Run returns a run of a thread. It returns checkpoint.ErrRunNotFound when there is no
// such run.
func (s *Store) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.Run{}, err
	}
	if t := s.lockThread(thread); t != nil {
		defer t.mu.Unlock()
		if r := t.runs.byID[run]; r != nil {
			return *r, nil
		}
	}
	return checkpoint.Run{}, checkpoint.ErrRunNotFound
}

// Runs lists a thread's runs, newest first.
func (s *Store) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) ([]checkpoint.Run, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	t := s.lockThread(thread)
	if t == nil {
		return nil, nil
	}
	defer t.mu.Unlock()
	var out []checkpoint.Run
	portion := checkpoint.Portion{Limit: limit}
	for _, r := range slices.Backward(t.runs.inOrder) {
		if before > 0 && r.Order >= before {
			continue
		}
		if portion.Full() {
			break
		}
		portion.Take(r.Size())
		out = append(out, *r)
	}
	return out, nil
}

// Interrupt returns an interrupt of a thread. It returns checkpoint.ErrInterruptNotFound
// when there is no such interrupt.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.Interrupt{}, err
	}
	if t := s.lockThread(thread); t != nil {
		defer t.mu.Unlock()
		if q := t.interrupts[id]; q != nil {
			return *q.record.Load(), nil
		}
	}
	return checkpoint.Interrupt{}, checkpoint.ErrInterruptNotFound
}

// Request returns a remembered request of a thread. It returns
// checkpoint.ErrRequestNotFound when the id was not used.
func (s *Store) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.Request{}, err
	}
	if t := s.lockThread(thread); t != nil {
		defer t.mu.Unlock()
		if r, ok := t.requests[id]; ok {
			return r, nil
		}
	}
	return checkpoint.Request{}, checkpoint.ErrRequestNotFound
}
