package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// tx is one change to a thread while it is put together. It is computed from a
// head, and computed again from a newer one when another writer was faster.
type tx struct {
	checkpoint.Change

	now        time.Time
	liveEvents []checkpoint.Event // what followers get: Events with states filled in
	redactions []redaction        // what is stored instead of parts of it
}

// buildFunc puts a change together. It may be called several times and must not
// have effects of its own.
type buildFunc func(t *tx) error

// errNoChange is returned by a build that finds nothing left to do.
var errNoChange = errors.New("no change")

func newTx(head *checkpoint.Head, now time.Time) *tx {
	return new(tx).startFrom(head, now)
}

// startFrom makes an empty change from a head, in place of what t was before.
func (t *tx) startFrom(head *checkpoint.Head, now time.Time) *tx {
	from := *head // it may be the head of t
	*t = tx{now: now}
	t.Thread, t.Expect, t.LogID, t.Head = from.Thread, from.Revision, from.LogID, from
	t.Head.Updated = now
	return t
}

// emitEvent appends a durable event.
func (t *tx) emitEvent(e checkpoint.Event) {
	t.Head.LastEvent++
	e.Seq, e.Time = t.Head.LastEvent, t.now
	if e.Run == "" {
		e.Run = t.Head.Run
	}
	if t.liveEvents == nil {
		t.growEvents(usualEvents)
	}
	t.liveEvents = append(t.liveEvents, e)
}

// growEvents grows the capacity for events: they are large, and soon copied more
// often than emitted.
func (t *tx) growEvents(n int) { t.liveEvents = slices.Grow(t.liveEvents, n) }

// redaction is the stored value of an event that is not to be stored as followers
// see it.
type redaction struct {
	event int
	value payload.JSON
}

// emitRedacted appends a durable event of which the log keeps another value.
func (t *tx) emitRedacted(e checkpoint.Event, kept payload.JSON) {
	t.emitEvent(e)
	if kept != e.Value {
		t.redactions = append(t.redactions, redaction{len(t.liveEvents) - 1, kept})
	}
}

// usualEvents is how many events a superstep of one task tells.
const usualEvents = 5

// nextCheckpointID allots the next checkpoint of the thread.
func (t *tx) nextCheckpointID() (id string, seq uint64) {
	t.Head.Seq++
	return pregel.CheckpointID(t.Thread, t.Head.LogID, t.Head.Seq), t.Head.Seq
}

// trimEvents drops the oldest events of a log that has grown well beyond its limit.
func (t *tx) trimEvents(limit uint64) {
	if kept := t.Head.LastEvent + 1 - max(t.Head.FirstEvent, 1); limit > 0 && kept > limit+limit/4 {
		t.TrimEvents = t.Head.LastEvent + 1 - limit
		t.Head.FirstEvent = t.TrimEvents
	}
}

// buildChange prepares the change for the store. The log keeps events without the
// state they show: it is in the checkpoint already.
func (t *tx) buildChange(op string) *checkpoint.Change {
	t.Op = op
	t.Events = t.liveEvents
	if len(t.redactions) > 0 {
		t.Events = stripStates(t.liveEvents)
		for _, s := range t.redactions {
			t.Events[s.event].Value = s.value
		}
		return &t.Change
	}
	for i := range t.liveEvents {
		if isStateInCheckpoint(&t.liveEvents[i]) && t.liveEvents[i].Value != "" {
			t.Events = stripStates(t.liveEvents)
			break
		}
	}
	return &t.Change
}

// isStateInCheckpoint reports whether an event shows a state that can be read from
// the checkpoint it names.
func isStateInCheckpoint(e *checkpoint.Event) bool {
	return e.Checkpoint != "" && (e.Kind == checkpoint.EventValues || e.Kind == checkpoint.EventTask)
}

func stripStates(events []checkpoint.Event) []checkpoint.Event {
	out := make([]checkpoint.Event, len(events))
	copy(out, events)
	for i := range out {
		if isStateInCheckpoint(&out[i]) {
			out[i].Value = ""
		}
	}
	return out
}

// changeThread makes one change to a thread that this process need not be running.
// It is repeated while others are faster, and made through the live run when
// the thread is driven here, so that the two never race.
func (e *Engine) changeThread(ctx context.Context, thread string, b buildFunc) (checkpoint.Head, error) {
	for {
		head, err := e.store.Head(ctx, thread)
		if err != nil {
			return head, runtime.TranslateThreadError(thread, err)
		}
		head, err = e.changeFrom(ctx, head, b)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return head, err
		}
	}
}

// changeFrom makes one attempt at a change that was decided on a given head;
// ErrConflict says that it must be decided anew. Through a live run the build
// may see a newer head.
func (e *Engine) changeFrom(ctx context.Context, head checkpoint.Head, b buildFunc) (checkpoint.Head, error) {
	if s := e.findSession(head.Thread); s != nil {
		next, err := s.commitForCaller(ctx, b)
		if !errors.Is(err, errLeaseLost) {
			return next, err
		}
	}
	return e.tryChange(ctx, head, b)
}

// retryOnConflict repeats an attempt while the thread changes under it: with a conflict,
// or by taking away what the attempt was about to read. try fills in the head on which
// it decides.
func retryOnConflict[T any](ctx context.Context, e *Engine, try func(head *checkpoint.Head) (T, error)) (T, error) {
	for {
		var head checkpoint.Head
		out, err := try(&head)
		if !errors.Is(err, checkpoint.ErrConflict) && !e.isOutdated(ctx, &head, err) {
			return out, err
		}
	}
}

// isOutdated reports whether a record is missing because the thread is no longer
// as it was seen.
func (e *Engine) isOutdated(ctx context.Context, seen *checkpoint.Head, err error) bool {
	gone := errors.Is(err, checkpoint.ErrCheckpointNotFound) || errors.Is(err, checkpoint.ErrRunNotFound) ||
		errors.Is(err, checkpoint.ErrTrimmed) || errors.Is(err, checkpoint.ErrThreadNotFound)
	if seen.Revision == 0 || !gone {
		return false
	}
	now, err := e.store.Head(ctx, seen.Thread)
	if err != nil {
		return errors.Is(err, checkpoint.ErrThreadNotFound)
	}
	return now.Revision != seen.Revision || now.LogID != seen.LogID
}

// retryWhenSettled waits until a run that begins or ends here has done so, and
// returns ErrConflict: the caller must decide again.
func (e *Engine) retryWhenSettled(ctx context.Context, thread string) error {
	if s := e.findSession(thread); s != nil {
		if err := s.waitFirstCommit(ctx); err != nil {
			return err
		}
	}
	return checkpoint.ErrConflict
}

// tryChange makes one change from a given head.
func (e *Engine) tryChange(ctx context.Context, head checkpoint.Head, b buildFunc) (checkpoint.Head, error) {
	t := newTx(&head, e.now())
	if err := b(t); err != nil {
		if errors.Is(err, errNoChange) {
			return head, nil
		}
		return head, err
	}
	ctx, cancel := e.withStoreTimeout(ctx)
	defer cancel()
	next, err := e.applyChange(ctx, t, e.mayRetry)
	if err == nil {
		e.feed.PublishEvents(t.Thread, t.liveEvents)
	}
	return next, err
}

// withStoreTimeout bounds how long a client's change waits for a store that does not
// bound it by itself.
func (e *Engine) withStoreTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.isStoreTimeBounded {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, e.opts.StoreTimeout, errStoreSilent)
}

// errStoreSilent says that the store took longer than clients wait for it.
var errStoreSilent = errors.New("the store does not answer")

// mayRetry says how often a call of a client is repeated to the store.
func (e *Engine) mayRetry(attempt int) bool { return attempt < e.opts.StoreAttempts }

// applyChange sends a change to the store and repeats it, under the same op, while
// the store does not answer and more allows it.
func (e *Engine) applyChange(ctx context.Context, t *tx, more func(attempt int) bool) (checkpoint.Head, error) {
	t.trimEvents(e.opts.EventLimit)
	t.scheduleBy(e.pruneTime(&t.Head))
	t.delayQuarantined()
	c := t.buildChange(e.newOpID())
	started := time.Now()
	receipt, err := e.store.Apply(ctx, c)
	unanswered, unknown := false, errors.Is(err, checkpoint.ErrOutcomeUnknown)
	for attempt := 1; errors.Is(err, checkpoint.ErrUnavailable) && more(attempt); attempt++ {
		if sleepContext(ctx, backoffDelay(attempt)) != nil {
			break
		}
		unanswered = true
		receipt, err = e.store.Apply(ctx, c)
		unknown = unknown || errors.Is(err, checkpoint.ErrOutcomeUnknown)
	}
	e.observer.CommitEnded(time.Since(started), err)
	if unanswered && errors.Is(err, checkpoint.ErrConflict) {
		// Applied before the change of another writer, or never: that is unknown.
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, errInterveningChange)
	}
	if err != nil && errors.Is(context.Cause(ctx), errStoreSilent) { // not the caller's deadline
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, errStoreSilent)
	}
	if unknown && errors.Is(err, checkpoint.ErrUnavailable) { // a later refusal says nothing of the first attempt
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, err)
	}
	if errors.Is(err, checkpoint.ErrUnavailable) {
		e.feed.InvalidateTopic(t.Thread)
		e.markMaybeLeased(t.Thread)
	}
	if err != nil {
		return checkpoint.Head{}, runtime.TranslateStoreError(err)
	}
	e.noteStoreAccepted()
	e.observeInterrupts(t)
	if t.Head.Faults == 0 && e.reportedQuarantined.Load() > 0 {
		e.quarantine.removeThread(t.Thread)
	}
	if (t.Head.State != checkpoint.ThreadBusy || c.Delete) && e.unservedRuns.countTasks() > 0 {
		e.unservedRuns.removeRun(t.Thread)
	}
	if len(receipt.Runs) == len(t.Runs) {
		for i := range t.Runs {
			t.Runs[i].Revision = receipt.Runs[i]
		}
	}
	head := t.Head
	head.Revision, head.Now = receipt.Revision, receipt.Now
	if head.Owner == "" {
		head.LeaseExpires = time.Time{}
	} else {
		head.LeaseExpires = receipt.LeaseExpires
	}
	if len(c.Interrupts) > 0 {
		e.feed.WakeInterruptFollowers()
	}
	e.notifyServers(&head)
	return head, nil
}

// errInterveningChange says that it is unknown whether a change was made.
var errInterveningChange = errors.New("another change came between the attempts")

// observeInterrupts tells the observer of the interrupts in a change.
func (e *Engine) observeInterrupts(t *tx) {
	for i := range t.liveEvents {
		switch t.liveEvents[i].Kind {
		case checkpoint.EventInterrupt:
			for _, q := range t.liveEvents[i].Interrupts {
				e.observer.InterruptRaised(t.Head.Graph, q.Reason)
			}
		case checkpoint.EventResolved:
			for _, q := range t.liveEvents[i].Interrupts {
				e.observer.InterruptResolved(t.Head.Graph, string(q.State))
			}
		default: // not about interrupts
		}
	}
}

// newOpID names one attempt to change something, unique among all replicas.
func (e *Engine) newOpID() string {
	var memory [64]byte
	name := append(append(memory[:0], e.id...), '-')
	return string(strconv.AppendUint(name, e.opCount.Add(1), 36))
}

// backoffDelay is how long to wait before the n-th repetition of a store call.
func backoffDelay(n int) time.Duration {
	return min(10*time.Millisecond<<min(n, 8), time.Second)
}

// sleepContext waits, or returns why ctx ended.
func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tooLargeFailure is the failure of a run whose change the store will never take, nil
// when err is about something else.
func tooLargeFailure(err error) *checkpoint.Failure {
	size, ok := errors.AsType[*checkpoint.SizeError](err)
	if !ok {
		return nil
	}
	return &checkpoint.Failure{
		Reason: runtime.FailedLimit, Message: size.Error(), Details: runtime.LimitDetails(size.Limit, int64(size.Max), int64(size.Actual)),
	}
}
