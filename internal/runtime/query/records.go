package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Run returns a run of a thread; with an empty id the newest. The errors are
// *Error: THREAD_NOT_FOUND, RUN_NOT_FOUND, and those of the store.
func (r *Reader) Run(ctx context.Context, memory *runtime.CallMemory, thread, run string) (checkpoint.Run, error) {
	found, err := r.findRun(ctx, thread, run)
	if err == nil {
		err = r.fillOutput(ctx, memory, &found, 0)
	}
	return found, err
}

// findRun returns a run. It leaves out an output that the store keeps only in the
// state of a checkpoint. The errors are those of Run.
func (r *Reader) findRun(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	if run == "" {
		head, err := r.store.Head(ctx, thread)
		if err != nil {
			return checkpoint.Run{}, runtime.TranslateThreadError(thread, err)
		}
		run = head.Run
		if run == "" {
			return checkpoint.Run{}, describeNoRun(thread, head.CountWaiting())
		}
	}
	found, err := r.store.Run(ctx, thread, run)
	switch {
	case errors.Is(err, checkpoint.ErrRunNotFound):
		if _, err := r.Thread(ctx, thread); err != nil { // it may be the thread that is not there
			return found, err
		}
		return found, runtime.Errorf(runtime.ReasonRunNotFound, "thread %q has no run %q", tenant.ClientName(thread), run).
			With("threadId", tenant.ClientName(thread)).With("runId", run)
	case err != nil:
		return found, runtime.TranslateThreadError(thread, err)
	}
	return found, nil
}

// describeNoRun says that a call that names no run finds none, although so many wait to begin.
func describeNoRun(thread string, waiting int) error {
	name := tenant.ClientName(thread)
	text := fmt.Sprintf("thread %q has no run that has begun", name)
	if waiting > 0 {
		text = fmt.Sprintf("no run of thread %q has begun: name one of the %d that are queued", name, waiting)
	}
	return runtime.Errorf(runtime.ReasonRunNotFound, "%s", text).With("threadId", name).With("runId", "")
}

// StoredRun returns the record of a run as it is stored. The errors are those of the
// store, as it gives them.
func (r *Reader) StoredRun(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return r.store.Run(ctx, thread, run)
}

// Runs lists a thread's runs with an Order smaller than before (0 = all), newest
// first. It returns at most limit runs, and fewer when they hold more than maxBytes
// with their outputs (0 = no limit), but at least one run. more reports whether
// others follow. The errors are *Error: THREAD_NOT_FOUND, those of memory, and those
// of the store.
func (r *Reader) Runs(
	ctx context.Context, memory *runtime.CallMemory, thread string, before uint64, limit, maxBytes int,
) (runs []checkpoint.Run, more bool, err error) {
	if _, err := r.Thread(ctx, thread); err != nil {
		return nil, false, err
	}
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	reservation := r.AnswerReservation(memory, &own, maxBytes)
	runs, err = listReserved(ctx, r, reservation, runtime.ReadWaitTimeout, (*checkpoint.Run).Size, func() ([]checkpoint.Run, error) {
		return r.store.Runs(ctx, thread, before, limit+1)
	})
	if err != nil {
		return nil, false, err
	}
	more = checkpoint.IsPart(runs, limit+1, (*checkpoint.Run).Size)
	runs = runs[:min(limit, len(runs))]
	held := 0
	for i := range runs {
		if err := r.fillOutput(ctx, memory, &runs[i], maxBytes); err != nil {
			return nil, false, err
		}
		if held += runs[i].Size(); maxBytes > 0 && held > maxBytes && i > 0 {
			return runs[:i:i], true, nil
		}
	}
	return runs, more, nil
}

// WaitRun waits until a run stops, and returns it. A run has stopped when it has ended
// or waits for answers. An empty id names the newest run. The errors are those of Run,
// and the cause of ctx when ctx ends first.
func (r *Reader) WaitRun(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	head, err := r.Thread(ctx, thread)
	if err != nil {
		return checkpoint.Run{}, err
	}
	if run == "" {
		run = head.Run
	}
	f := r.opts.Follow(runtime.FollowRequest{Thread: thread, After: head.LastEvent, UntilStop: true})
	defer f.Close()
	for {
		found, stopped, err := r.readStoppedRun(ctx, thread, run)
		if err == nil && stopped {
			err = r.fillOutput(ctx, nil, &found, 0)
		}
		if err != nil || stopped {
			return found, err
		}
		if err := r.waitForRunState(ctx, f, thread); err != nil {
			return found, err
		}
	}
}

// waitForRunState waits for an event after which a run of the thread may have stopped.
// It also returns when events are lost, because the caller reads the run anew.
func (r *Reader) waitForRunState(ctx context.Context, f *feed.Follower, thread string) error {
	for {
		events, err := f.Next(ctx)
		if runtime.IsCursorError(err) { // continue from the end of the log
			head, err := r.Thread(ctx, thread)
			if err == nil {
				f.SkipTo(head.LastEvent)
			}
			return err
		}
		if err != nil {
			return err
		}
		for i := range events {
			if k := events[i].Kind; k == checkpoint.EventRunState || k == runtime.EventDeleted {
				return nil
			}
		}
	}
}

// readStoppedRun reads a run and reports whether it has ended or waits for a
// client. A run that has been answered continues by itself.
func (r *Reader) readStoppedRun(ctx context.Context, thread, run string) (checkpoint.Run, bool, error) {
	found, err := r.findRun(ctx, thread, run)
	if err != nil || found.State != checkpoint.RunInterrupted {
		return found, err == nil && runtime.IsStopped(found.State), err
	}
	head, err := r.Thread(ctx, thread)
	if err != nil {
		return found, false, err
	}
	// A thread in another state by now has continued since the run was read.
	rests := head.State == checkpoint.ThreadInterrupted && !head.MayGoOn()
	return found, head.Run != found.ID || rests, nil
}

// Thread returns the head of a thread. The errors are *Error: THREAD_NOT_FOUND, and
// those of the store.
func (r *Reader) Thread(ctx context.Context, thread string) (checkpoint.Head, error) {
	head, err := r.store.Head(ctx, thread)
	if err != nil {
		return head, runtime.TranslateThreadError(thread, err)
	}
	return head, nil
}

// Threads lists threads by update time, newest first. The errors are *Error: those of
// memory, and those of the store.
func (r *Reader) Threads(ctx context.Context, memory *runtime.CallMemory, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	return listReserved(ctx, r, r.AnswerReservation(memory, &own, 0), runtime.ReadWaitTimeout, (*checkpoint.Head).Size, func() ([]checkpoint.Head, error) {
		return r.store.Threads(ctx, q)
	})
}

// SkipThreads passes over the first n threads of a query, and returns the place of the last, zero
// when there are fewer. The errors are *Error: those of the store.
func (r *Reader) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (checkpoint.ThreadPosition, error) {
	at, err := r.store.SkipThreads(ctx, q, n)
	if err != nil {
		return at, runtime.TranslateStoreError(err)
	}
	return at, nil
}

// CountThreads returns how many threads a query selects, or atMost if it selects more. The errors
// are *Error: those of the store.
func (r *Reader) CountThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (int, error) {
	n, err := r.store.CountSelectedThreads(ctx, q, atMost)
	if err != nil {
		return 0, runtime.TranslateStoreError(err)
	}
	return n, nil
}

// Interrupts lists interrupts over all threads. The errors are those of Threads.
func (r *Reader) Interrupts(ctx context.Context, memory *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return r.ListInterrupts(ctx, memory, runtime.ReadWaitTimeout, q)
}

// LatestInterruptChange returns a number that every later change of an interrupt exceeds. The
// errors are *Error: those of the store.
func (r *Reader) LatestInterruptChange(ctx context.Context) (uint64, error) {
	n, err := r.store.LatestChange(ctx)
	if err != nil {
		return 0, runtime.TranslateStoreError(err)
	}
	return n, nil
}

// CountInterrupts returns how many open interrupts of a tenant have each of some tags. The errors
// are *Error: those of the store.
func (r *Reader) CountInterrupts(ctx context.Context, owner string, tags []string) ([]int, error) {
	counts, err := r.store.CountTags(ctx, owner, tags)
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	return counts, nil
}

// OpenInterruptIDs returns the ids of at most that many open interrupts of a thread, oldest
// first. It needs no reservation of memory, because it holds only the ids: it describes a change
// that is already made, and must not be refused. The errors are *Error: those of the store.
func (r *Reader) OpenInterruptIDs(ctx context.Context, thread string, most int) ([]string, error) {
	q := checkpoint.InterruptQuery{
		Thread: thread, Limit: most, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	}
	var ids []string
	for {
		open, err := r.store.Interrupts(ctx, q)
		if err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		for i := range open {
			ids = append(ids, open[i].ID)
			q.After = checkpoint.InterruptPosition{Created: open[i].Created, Thread: open[i].Thread, ID: open[i].ID}
		}
		part := checkpoint.IsPart(open, q.Limit, (*checkpoint.Interrupt).Size)
		if q.Limit = most - len(ids); q.Limit <= 0 || !part {
			return ids, nil
		}
	}
}

// OpenInterrupts returns at most that many open interrupts of a thread, the oldest first. whole says
// that they are all of those: large ones are not. The errors are those of Interrupts; a call does
// not wait for memory for long.
func (r *Reader) OpenInterrupts(
	ctx context.Context, memory *runtime.CallMemory, thread string, most int,
) (open []checkpoint.Interrupt, whole bool, err error) {
	q := checkpoint.InterruptQuery{Thread: thread, Limit: most, States: []checkpoint.InterruptState{checkpoint.InterruptOpen}}
	open, err = r.ListInterrupts(ctx, memory, runtime.PartWaitTimeout, q)
	return open, len(open) == most || !checkpoint.IsPart(open, most, (*checkpoint.Interrupt).Size), err
}

// ListInterrupts lists interrupts as Interrupts does, and waits for memory for no longer
// than timeout.
func (r *Reader) ListInterrupts(
	ctx context.Context, memory *runtime.CallMemory, timeout time.Duration, q checkpoint.InterruptQuery,
) ([]checkpoint.Interrupt, error) {
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	return listReserved(ctx, r, r.AnswerReservation(memory, &own, 0), timeout, (*checkpoint.Interrupt).Size, func() ([]checkpoint.Interrupt, error) {
		return r.store.Interrupts(ctx, q)
	})
}

// EachInterrupt calls visit for every interrupt of a query. It holds a single page of
// them at a time. The errors are *Error: those of the store.
func (r *Reader) EachInterrupt(ctx context.Context, q checkpoint.InterruptQuery, visit func(*checkpoint.Interrupt)) error {
	if q.Limit == 0 {
		q.Limit = interruptPageSize
	}
	for {
		list, err := r.store.Interrupts(ctx, q)
		if err != nil {
			return runtime.TranslateStoreError(err)
		}
		for i := range list {
			visit(&list[i])
		}
		if len(list) == 0 || !checkpoint.IsPart(list, q.Limit, (*checkpoint.Interrupt).Size) {
			return nil
		}
		last := &list[len(list)-1]
		q.After = checkpoint.InterruptPosition{Created: last.Created, Thread: last.Thread, ID: last.ID}
	}
}

// Interrupt returns one interrupt. The errors are *Error: THREAD_NOT_FOUND,
// INTERRUPT_NOT_FOUND, and those of the store.
func (r *Reader) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	q, err := r.store.Interrupt(ctx, thread, id)
	if errors.Is(err, checkpoint.ErrInterruptNotFound) {
		if _, err := r.Thread(ctx, thread); err != nil {
			return q, err
		}
		return q, runtime.Errorf(runtime.ReasonInterruptNotFound, "thread %q has no question %q", tenant.ClientName(thread), id).
			With("threadId", tenant.ClientName(thread)).With("interruptId", id)
	}
	if err != nil {
		return q, runtime.TranslateThreadError(thread, err)
	}
	return q, nil
}

// StoredInterrupt returns the record of an interrupt as it is stored. The errors are
// those of the store, as it gives them.
func (r *Reader) StoredInterrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return r.store.Interrupt(ctx, thread, id)
}

// FindRequest returns the remembered request of an id, nil when the id is new. digest is
// that of the present request. The errors are *Error: REQUEST_ID_CONFLICT when the id
// was used for a request with another digest, and those of the store.
func (r *Reader) FindRequest(ctx context.Context, thread, id, digest string) (*checkpoint.Request, error) {
	old, err := r.store.Request(ctx, thread, id)
	switch {
	case errors.Is(err, checkpoint.ErrRequestNotFound), errors.Is(err, checkpoint.ErrThreadNotFound):
		return nil, nil
	case err != nil:
		return nil, runtime.TranslateStoreError(err)
	case old.Digest != digest:
		return nil, runtime.Errorf(runtime.ReasonRequestIDConflict, "request id %q was used for another request", id).With("requestId", id)
	}
	return &old, nil
}

// ListWaitingInterrupts lists the interrupts of a thread that are waiting. The errors are
// those of EachInterrupt.
func (r *Reader) ListWaitingInterrupts(ctx context.Context, thread string) ([]checkpoint.Interrupt, error) {
	var waiting []checkpoint.Interrupt
	err := r.EachWaitingInterrupt(ctx, thread, func(q *checkpoint.Interrupt) { waiting = append(waiting, *q) })
	return waiting, err
}

// EachWaitingInterrupt calls visit for every interrupt of a thread that is waiting. The errors
// are those of EachInterrupt.
func (r *Reader) EachWaitingInterrupt(ctx context.Context, thread string, visit func(*checkpoint.Interrupt)) error {
	return r.EachInterrupt(ctx, checkpoint.InterruptQuery{Thread: thread, States: checkpoint.WaitingStates()}, visit)
}

// ListOpenIDs lists the ids of the open interrupts of a thread. The errors are those of
// EachInterrupt.
func (r *Reader) ListOpenIDs(ctx context.Context, thread string) (ids []string, err error) {
	err = r.EachWaitingInterrupt(ctx, thread, func(q *checkpoint.Interrupt) {
		if q.State == checkpoint.InterruptOpen {
			ids = append(ids, q.ID)
		}
	})
	return ids, err
}

// CanResume reports whether a thread waits for answers and has enough of them to
// continue.
func CanResume(h *checkpoint.Head) bool {
	return h.State == checkpoint.ThreadInterrupted && h.HasEnoughAnswers()
}

// interruptPageSize is the number of interrupts of a thread in one read.
const interruptPageSize = 10_000

// EventPageSize is the number of events in one read of the store.
const EventPageSize = 256
