package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// faultyStore is the store as one process sees it. It can fail at one call, or fail
// for good: the process is dead then, as after kill -9.
type faultyStore struct {
	checkpoint.Store

	failAt    atomic.Int64 // number of the call that fails, 0 = none
	mode      faultMode
	callCount atomic.Int64
	isDead    atomic.Bool
	died      chan struct{} // closed with shut
}

type faultMode string

// How the k-th call fails.
const (
	faultRefused             faultMode = "refused"               // and the next one is answered
	faultUnanswered          faultMode = "applied, reply lost"   // and the next one is answered
	faultHanging             faultMode = "hangs"                 // until the caller gives up
	faultKilled              faultMode = "killed before"         // the process dies before the call
	faultKilledLate          faultMode = "killed after applying" // the process dies after the call
	faultOvertaken           faultMode = "overtaken"             // another writer changes the thread just before
	faultUnansweredOvertaken faultMode = "applied, reply lost, overtaken"
)

var faultModes = []faultMode{faultRefused, faultUnanswered, faultHanging, faultKilled, faultKilledLate, faultOvertaken, faultUnansweredOvertaken}

var errFault = fmt.Errorf("%w: gate", checkpoint.ErrUnavailable)

func newFaultyStore(s checkpoint.Store, at int64, m faultMode) *faultyStore {
	g := &faultyStore{Store: s, mode: m, died: make(chan struct{})}
	g.failAt.Store(at)
	return g
}

func (f *faultyStore) killProcess() {
	if f.isDead.CompareAndSwap(false, true) {
		close(f.died)
	}
}

// beginCall says whether a call may be made, and whether its answer gets lost.
func (f *faultyStore) beginCall(ctx context.Context) (lost bool, err error) {
	n := f.callCount.Add(1)
	if f.isDead.Load() {
		return false, errFault
	}
	if n != f.failAt.Load() {
		return false, nil
	}
	switch f.mode {
	case faultRefused:
		return false, errFault
	case faultUnanswered, faultUnansweredOvertaken:
		return true, nil
	case faultOvertaken:
		return false, nil
	case faultHanging:
		<-ctx.Done()
		return false, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
	case faultKilled:
		f.killProcess()
		return false, errFault
	default:
		defer f.killProcess()
		return true, nil
	}
}

func callWithFault[T any](ctx context.Context, g *faultyStore, do func() (T, error)) (T, error) {
	var none T
	lost, err := g.beginCall(ctx)
	if err != nil {
		return none, err
	}
	v, err := do()
	if lost {
		return none, errFault
	}
	return v, err
}

func (f *faultyStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	return callWithFault(ctx, f, func() (checkpoint.Head, error) { return f.Store.Head(ctx, thread) })
}

func (f *faultyStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	return callWithFault(ctx, f, func() (checkpoint.Receipt, error) {
		hit := f.callCount.Load() == f.failAt.Load()
		if hit && f.mode == faultOvertaken {
			f.overtakeThread(ctx, c.Thread)
		}
		r, err := f.Store.Apply(ctx, c)
		if hit && f.mode == faultUnansweredOvertaken {
			f.overtakeThread(ctx, c.Thread)
		}
		return r, err
	})
}

// overtakeThread changes a thread in a way that does not matter.
func (f *faultyStore) overtakeThread(ctx context.Context, thread string) {
	head, err := f.Store.Head(ctx, thread)
	if err != nil {
		return // there is none yet, or no more
	}
	_, err = f.Store.Apply(ctx, &checkpoint.Change{
		Thread: thread, Expect: head.Revision, LogID: head.LogID, Op: "overtake", Head: head,
	})
	if err != nil {
		panic(err)
	}
}

func (f *faultyStore) Checkpoint(ctx context.Context, thread, ns, id string) (*checkpoint.Checkpoint, error) {
	return callWithFault(ctx, f, func() (*checkpoint.Checkpoint, error) { return f.Store.Checkpoint(ctx, thread, ns, id) })
}

func (f *faultyStore) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return callWithFault(ctx, f, func() (checkpoint.Pending, error) { return f.Store.Pending(ctx, thread, id) })
}

func (f *faultyStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return callWithFault(ctx, f, func() (checkpoint.Run, error) { return f.Store.Run(ctx, thread, run) })
}

func (f *faultyStore) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return callWithFault(ctx, f, func() (checkpoint.Interrupt, error) { return f.Store.Interrupt(ctx, thread, id) })
}

func (f *faultyStore) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	return callWithFault(ctx, f, func() (checkpoint.Request, error) { return f.Store.Request(ctx, thread, id) })
}

func (f *faultyStore) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return callWithFault(ctx, f, func() ([]checkpoint.Interrupt, error) { return f.Store.Interrupts(ctx, q) })
}

// Due fails when the engine is dead. Calls of Due and Events are not counted: their
// number depends on time, not on the work.
func (f *faultyStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	if f.isDead.Load() {
		return nil, time.Time{}, errFault
	}
	return f.Store.Due(ctx, limit)
}

func (f *faultyStore) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	if f.isDead.Load() {
		return nil, errFault
	}
	return f.Store.Events(ctx, thread, after, limit)
}
