package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// tx is one change to a thread while it is put together. It is computed from
// a head, and computed again from a newer one when somebody was faster.
type tx struct {
	checkpoint.Change

	now  time.Time
	live []checkpoint.Event // what followers get: Events with states filled in
	kept []secret           // what is stored instead of parts of it
}

// build puts a change together. It may be called several times and must not
// have effects of its own.
type build func(t *tx) error

// errNoChange is returned by a build that finds nothing left to do.
var errNoChange = errors.New("no change")

func newTx(head checkpoint.Head, now time.Time) *tx {
	return new(tx).begin(head, now)
}

// begin makes an empty change from a head, in place of what t was before.
func (t *tx) begin(head checkpoint.Head, now time.Time) *tx {
	*t = tx{now: now}
	t.Thread, t.Expect, t.LogID, t.Head = head.Thread, head.Revision, head.LogID, head
	t.Head.Updated = now
	return t
}

// emit appends a durable event.
func (t *tx) emit(e checkpoint.Event) {
	t.Head.LastEvent++
	e.Seq, e.Time = t.Head.LastEvent, t.now
	if e.Run == "" {
		e.Run = t.Head.Run
	}
	if t.live == nil {
		t.expect(usualEvents)
	}
	t.live = append(t.live, e)
}

// expect makes room for so many events: they are large, and soon copied more
// often than told.
func (t *tx) expect(n int) { t.live = slices.Grow(t.live, n) }

// secret is the value that the log keeps of an event, in place of one that is
// not to be stored.
type secret struct {
	event int
	value payload.JSON
}

// emitSecret appends a durable event of which the log keeps another value.
func (t *tx) emitSecret(e checkpoint.Event, kept payload.JSON) {
	t.emit(e)
	if kept != e.Value {
		t.kept = append(t.kept, secret{len(t.live) - 1, kept})
	}
}

// usualEvents is how many events a superstep of one task tells.
const usualEvents = 5

// number allots the next checkpoint of the thread.
func (t *tx) number() (id string, seq uint64) {
	t.Head.Seq++
	return pregel.CheckpointID(t.Thread, t.Head.LogID, t.Head.Seq), t.Head.Seq
}

// trim drops the oldest events of a log that has grown well beyond its limit.
func (t *tx) trim(limit uint64) {
	if kept := t.Head.LastEvent + 1 - max(t.Head.FirstEvent, 1); limit > 0 && kept > limit+limit/4 {
		t.TrimEvents = t.Head.LastEvent + 1 - limit
		t.Head.FirstEvent = t.TrimEvents
	}
}

// seal prepares the change for the store. The log keeps events without the
// state they show: it is in the checkpoint already.
func (t *tx) seal(op string) *checkpoint.Change {
	t.Op = op
	t.Events = t.live
	if len(t.kept) > 0 {
		t.Events = withoutStates(t.live)
		for _, s := range t.kept {
			t.Events[s.event].Value = s.value
		}
		return &t.Change
	}
	for i := range t.live {
		if inCheckpoint(&t.live[i]) && t.live[i].Value != "" {
			t.Events = withoutStates(t.live)
			break
		}
	}
	return &t.Change
}

// inCheckpoint reports whether an event shows a state that can be read from
// the checkpoint it names.
func inCheckpoint(e *checkpoint.Event) bool {
	return e.Checkpoint != "" && (e.Kind == checkpoint.EventValues || e.Kind == checkpoint.EventTask)
}

func withoutStates(events []checkpoint.Event) []checkpoint.Event {
	out := make([]checkpoint.Event, len(events))
	copy(out, events)
	for i := range out {
		if inCheckpoint(&out[i]) {
			out[i].Value = ""
		}
	}
	return out
}

// change makes one change to a thread that this process need not be running.
// It is repeated while others are faster, and made through the live run when
// the thread is driven here, so that the two never race.
func (e *Engine) change(ctx context.Context, thread string, b build) (checkpoint.Head, error) {
	for {
		head, err := e.store.Head(ctx, thread)
		if err != nil {
			return head, threadError(thread, err)
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
func (e *Engine) changeFrom(ctx context.Context, head checkpoint.Head, b build) (checkpoint.Head, error) {
	if s := e.session(head.Thread); s != nil {
		next, err := s.amend(ctx, b)
		if !errors.Is(err, errLeaseLost) {
			return next, err
		}
	}
	return e.tryChange(ctx, head, b)
}

// decide repeats an attempt while the thread changes under it: with a conflict,
// or by taking away what the attempt was about to read. try notes the head it
// decided on.
func decide[T any](ctx context.Context, e *Engine, try func(seen *checkpoint.Head) (T, error)) (T, error) {
	for {
		var seen checkpoint.Head
		out, err := try(&seen)
		if !errors.Is(err, checkpoint.ErrConflict) && !e.outdated(ctx, &seen, err) {
			return out, err
		}
	}
}

// outdated reports whether a record is missing because the thread is no longer
// as it was seen.
func (e *Engine) outdated(ctx context.Context, seen *checkpoint.Head, err error) bool {
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

// settling waits until a run that begins or ends here has done so, and says
// that the caller must decide anew.
func (e *Engine) settling(ctx context.Context, thread string) error {
	if s := e.session(thread); s != nil {
		if err := s.settled(ctx); err != nil {
			return err
		}
	}
	return checkpoint.ErrConflict
}

// tryChange makes one change from a given head.
func (e *Engine) tryChange(ctx context.Context, head checkpoint.Head, b build) (checkpoint.Head, error) {
	t := newTx(head, e.now())
	if err := b(t); err != nil {
		if errors.Is(err, errNoChange) {
			return head, nil
		}
		return head, err
	}
	ctx, cancel := e.patience(ctx)
	defer cancel()
	next, err := e.apply(ctx, t, e.persist)
	if err == nil {
		if topic := e.hub.find(t.Thread); topic != nil {
			topic.publish(t.live)
		}
	}
	return next, err
}

// patience bounds how long a client's change waits for a store that does not
// bound it by itself.
func (e *Engine) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.paced {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, e.opts.StoreTimeout, errSilent)
}

// errSilent says that the store took longer than clients wait for it.
var errSilent = errors.New("the store does not answer")

// persist says how often a call of a client is repeated to the store.
func (e *Engine) persist(attempt int) bool { return attempt < e.opts.StoreAttempts }

// apply sends a change to the store and repeats it, under the same op, while
// the store does not answer and more allows it.
func (e *Engine) apply(ctx context.Context, t *tx, more func(attempt int) bool) (checkpoint.Head, error) {
	t.trim(e.opts.EventLimit)
	t.due(e.pruneAt(&t.Head))
	t.waitOut()
	c := t.seal(e.op())
	started := time.Now()
	receipt, err := e.store.Apply(ctx, c)
	unanswered, unknown := false, errors.Is(err, checkpoint.ErrOutcomeUnknown)
	for attempt := 1; errors.Is(err, checkpoint.ErrUnavailable) && more(attempt); attempt++ {
		if pause(ctx, backoff(attempt)) != nil {
			break
		}
		unanswered = true
		receipt, err = e.store.Apply(ctx, c)
		unknown = unknown || errors.Is(err, checkpoint.ErrOutcomeUnknown)
	}
	e.observer.CommitEnded(time.Since(started), err)
	if unanswered && errors.Is(err, checkpoint.ErrConflict) {
		// Applied before somebody else's change, or never: nobody can tell.
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, errUnknown)
	}
	if err != nil && errors.Is(context.Cause(ctx), errSilent) { // not the caller's deadline
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, errSilent)
	}
	if unknown && errors.Is(err, checkpoint.ErrUnavailable) { // a later refusal says nothing of the first attempt
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, err)
	}
	if errors.Is(err, checkpoint.ErrUnavailable) {
		e.hub.doubt(t.Thread)
		e.adrift(t.Thread)
	}
	if err != nil {
		return checkpoint.Head{}, storeError(err)
	}
	e.accepted()
	e.count(t)
	if t.Head.Faults == 0 && e.poisoned.Load() > 0 {
		e.faults.forget(t.Thread)
	}
	if (t.Head.State != checkpoint.ThreadBusy || c.Delete) && e.unserved.count() > 0 {
		e.unserved.remove(t.Thread)
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
		e.inbox.ring()
	}
	e.rouse(&head)
	return head, nil
}

// errUnknown says that nobody knows whether a change was made.
var errUnknown = errors.New("another change came between the attempts")

// count tells the observer of the questions in a change.
func (e *Engine) count(t *tx) {
	for i := range t.live {
		switch t.live[i].Kind {
		case checkpoint.EventInterrupt:
			for _, q := range t.live[i].Interrupts {
				e.observer.InterruptRaised(t.Head.Graph, q.Reason)
			}
		case checkpoint.EventResolved:
			for _, q := range t.live[i].Interrupts {
				e.observer.InterruptResolved(t.Head.Graph, string(q.State))
			}
		default: // not about questions
		}
	}
}

// op names one attempt to change something, unique among all replicas.
func (e *Engine) op() string {
	var room [64]byte
	name := append(append(room[:0], e.id...), '-')
	return string(strconv.AppendUint(name, e.ops.Add(1), 36))
}

// backoff is how long to wait before the n-th repetition of a store call.
func backoff(n int) time.Duration {
	return min(10*time.Millisecond<<min(n, 8), time.Second)
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TranslateStoreError is storeError for other packages that use a store.
func TranslateStoreError(err error) error { return storeError(err) }

// storeError puts what a store answered into the words of a client.
func storeError(err error) error {
	if refused := StoreRefusal(err); refused != nil {
		return refused
	}
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrConflict):
		return err
	case errors.Is(err, checkpoint.ErrTrimmed):
		return Errorf(ReasonCursorTrimmed, "events after this cursor are gone; ask for a snapshot first").Because(err)
	case errors.Is(err, checkpoint.ErrInvalid):
		return Errorf(ReasonInternal, "the engine made a change that contradicts the thread; nothing was stored").Because(err)
	case errors.Is(err, checkpoint.ErrCheckpointNotFound), errors.Is(err, checkpoint.ErrRunNotFound):
		return Errorf(ReasonCheckpointCorrupt, "a record that the thread refers to is missing").Because(err)
	case errors.Is(err, checkpoint.ErrCorrupt):
		return Errorf(ReasonCheckpointCorrupt, "a stored record of the thread can't be read").Because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, checkpoint.ErrOutcomeUnknown):
		return outcomeUnknown(err)
	default:
		return Errorf(ReasonStoreUnavailable, "the store does not answer: call again, a change with the same request id").Because(err)
	}
}

func threadNotFound(thread string) *Error {
	return Errorf(ReasonThreadNotFound, "no thread %q", thread).With("threadId", thread)
}

func threadError(thread string, err error) error {
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return threadNotFound(thread)
	}
	return storeError(err)
}
