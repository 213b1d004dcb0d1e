// Package commit makes one conditional change to one thread: it builds a change, sends
// it, repeats it under the same op, and reports an unknown outcome. StoreClient reads
// the store for the other packages.
package commit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Options are the collaborators and limits of a Committer.
type Options struct {
	Store         checkpoint.Store
	Owner         string        // name of this server's incarnation, unique among all
	Attempts      int           // tries of a client's change that is not answered
	Timeout       time.Duration // time for which a client's change waits for the store
	IsTimeBounded bool          // the store bounds the time of a change itself
	EventLimit    uint64        // events kept per thread, 0 = all
	Now           func() time.Time
	Observer      runtime.Observer
	Tracer        Tracer // nil = nothing is traced
	// PruneTime returns the time at which a thread is to be pruned; zero =
	// never.
	PruneTime func(head *checkpoint.Head) time.Time
	// Unknown is called when the store has not answered a change to a thread. Committed
	// and Published are called after the store has accepted a change.
	Unknown   func(thread string)
	Committed func(t *Tx, head checkpoint.Head)
	// Published hands on the events of a change that no live run has made.
	Published func(thread string, events []checkpoint.Event)
}

// Committer makes changes to threads.
type Committer struct {
	opts    Options
	opCount atomic.Uint64
}

// NewCommitter makes a committer.
func NewCommitter(opts Options) *Committer { return &Committer{opts: opts} }

// RetryOnConflict repeats an attempt while other writers change the thread: after a
// conflict, and after a record that the attempt was about to read was removed. try fills
// in the head on which it decides. Errors: those of try.
func RetryOnConflict[T any](ctx context.Context, c *Committer, try func(head *checkpoint.Head) (T, error)) (T, error) {
	for {
		var head checkpoint.Head
		out, err := try(&head)
		if !errors.Is(err, checkpoint.ErrConflict) && !c.IsOutdated(ctx, &head, err) {
			return out, err
		}
	}
}

// IsOutdated reports whether a record is missing because the thread has changed since it
// was read.
func (c *Committer) IsOutdated(ctx context.Context, seen *checkpoint.Head, err error) bool {
	gone := errors.Is(err, checkpoint.ErrCheckpointNotFound) || errors.Is(err, checkpoint.ErrRunNotFound) ||
		errors.Is(err, checkpoint.ErrTrimmed) || errors.Is(err, checkpoint.ErrThreadNotFound)
	if seen.Revision == 0 || !gone {
		return false
	}
	now, err := c.opts.Store.Head(ctx, seen.Thread)
	if err != nil {
		return errors.Is(err, checkpoint.ErrThreadNotFound)
	}
	return now.Revision != seen.Revision || now.LogID != seen.LogID
}

// TryChange makes one change from a given head. Errors: those of b but ErrNoChange, and
// those of ApplyChange.
func (c *Committer) TryChange(ctx context.Context, head checkpoint.Head, b Build) (checkpoint.Head, error) {
	t := NewTx(&head, c.opts.Now())
	if err := b(t); err != nil {
		if errors.Is(err, ErrNoChange) {
			return head, nil
		}
		return head, err
	}
	ctx, cancel := c.WithStoreTimeout(ctx)
	defer cancel()
	next, err := c.ApplyChange(ctx, t, c.MayRetry)
	if err == nil {
		c.opts.Published(t.Thread, t.LiveEvents)
	}
	return next, err
}

// WithStoreTimeout bounds the time of a client's change, for a store that does not
// bound it.
func (c *Committer) WithStoreTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opts.IsTimeBounded {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.opts.Timeout, errStoreSilent)
}

// errStoreSilent means that the store took longer than clients wait for it.
var errStoreSilent = errors.New("the store does not answer")

// MayRetry reports whether a client's call to the store may be repeated after
// so many attempts.
func (c *Committer) MayRetry(attempt int) bool { return attempt < c.opts.Attempts }

// ApplyChange sends a change to the store and repeats it, under the same op, while the
// store does not answer and more allows it. Errors: those of
// runtime.TranslateStoreError.
func (c *Committer) ApplyChange(ctx context.Context, t *Tx, more func(attempt int) bool) (checkpoint.Head, error) {
	t.reportRest()
	t.trimEvents(c.opts.EventLimit)
	t.ScheduleBy(c.opts.PruneTime(&t.Head))
	t.delayQuarantined()
	receipt, err := c.sendChange(ctx, t.buildChange(c.NewOpID()), more)
	if errors.Is(err, checkpoint.ErrUnavailable) {
		c.opts.Unknown(t.Thread)
	}
	if err != nil {
		return checkpoint.Head{}, runtime.TranslateStoreError(err)
	}
	c.observeInterrupts(t)
	if c.opts.Tracer != nil {
		c.opts.Tracer.TraceChange(ctx, t)
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
	c.opts.Committed(t, head)
	return head, nil
}

// sendChange sends a change. The error says whether the outcome is unknown.
func (c *Committer) sendChange(
	ctx context.Context, change *checkpoint.Change, more func(attempt int) bool,
) (checkpoint.Receipt, error) {
	started := time.Now()
	receipt, err := c.opts.Store.Apply(ctx, change)
	unanswered, unknown := false, errors.Is(err, checkpoint.ErrOutcomeUnknown)
	for attempt := 1; errors.Is(err, checkpoint.ErrUnavailable) && more(attempt); attempt++ {
		if storeRetries().Wait(ctx, attempt) != nil {
			break
		}
		unanswered = true
		receipt, err = c.opts.Store.Apply(ctx, change)
		unknown = unknown || errors.Is(err, checkpoint.ErrOutcomeUnknown)
	}
	c.opts.Observer.CommitEnded(time.Since(started), err)
	if unanswered && errors.Is(err, checkpoint.ErrConflict) {
		// Applied before the change of another writer, or never: that is unknown.
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, errInterveningChange)
	}
	if err != nil && errors.Is(context.Cause(ctx), errStoreSilent) { // not the caller's deadline
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, errStoreSilent)
	}
	if unknown && errors.Is(err, checkpoint.ErrUnavailable) { // the first attempt may have succeeded in spite of a later refusal
		err = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, err)
	}
	return receipt, err
}

// errInterveningChange means that it is unknown whether a change was made.
var errInterveningChange = errors.New("another change came between the attempts")

// observeInterrupts reports the interrupts of a change to the observer.
func (c *Committer) observeInterrupts(t *Tx) {
	for i := range t.LiveEvents {
		switch t.LiveEvents[i].Kind {
		case checkpoint.EventInterrupt:
			for _, q := range t.LiveEvents[i].Interrupts {
				c.opts.Observer.InterruptRaised(t.Head.Graph, q.Reason)
			}
		case checkpoint.EventResolved:
			for j := range t.LiveEvents[i].Interrupts {
				q := &t.LiveEvents[i].Interrupts[j]
				c.opts.Observer.InterruptResolved(t.Head.Graph, string(q.ClientState()))
				if outcome := q.ResolvedOutcome(); outcome != "" {
					c.opts.Observer.InterruptEnded(t.Head.Graph, string(outcome), t.Now.Sub(q.Created))
				}
			}
		default: // not about interrupts
		}
	}
}

// NewOpID returns the id of one attempt to make a change, unique among all
// replicas.
func (c *Committer) NewOpID() string {
	var memory [64]byte
	name := append(append(memory[:0], c.opts.Owner...), '-')
	return string(strconv.AppendUint(name, c.opCount.Add(1), 36))
}
