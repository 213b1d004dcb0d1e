package runtime

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A store may lose its newest changes: Redis that crashed, or a replica that
// lagged and became the master. Threads then stand where they stood a while
// ago, whole, and numbers of events are given out again. Whoever has seen what
// was lost must hear of it.

// Mark tells an event from another one that has its number. It is never 0.
func Mark(e *checkpoint.Event) uint32 {
	const spread = 0x9e3779b97f4a7c15
	return max(1, uint32((uint64(e.Time.UnixNano())*spread)>>32))
}

// InLog checks that the log reaches from the event after a cursor to the event
// at it. The errors are CURSOR_AHEAD and CURSOR_TRIMMED.
func InLog(after uint64, head *checkpoint.Head) error {
	switch {
	case after > head.LastEvent:
		return cursorError(ReasonCursorAhead, head, "event %d does not exist, or no more", after)
	case after < before(head.FirstEvent):
		return cursorError(ReasonCursorTrimmed, head, "events after %d are gone", after)
	}
	return nil
}

// elsewhere reports whether an error says that a cursor is not in the log.
func elsewhere(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && slices.Contains([]string{ReasonCursorTrimmed, ReasonCursorAhead, ReasonCursorLost}, refused.Reason)
}

func cursorError(reason string, head *checkpoint.Head, format string, after uint64) error {
	return Errorf(reason, format+"; begin with snapshot_first", after).
		With("oldestSequence", strconv.FormatUint(head.FirstEvent, 10)).
		With("headSequence", strconv.FormatUint(head.LastEvent, 10))
}

// setBack says that the newest event that was seen is not in the log.
func (f *Follower) setBack(ctx context.Context) error {
	f.topic.forget()
	head, err := f.engine.store.Head(ctx, f.thread)
	if err != nil {
		return threadError(f.thread, err)
	}
	f.engine.log.Warn("the store has lost events that a follower has seen",
		zap.String("thread", f.thread), zap.Uint64("seen", f.after), zap.Uint64("newest", head.LastEvent))
	if err := InLog(f.after, &head); err != nil {
		return err
	}
	return cursorError(ReasonCursorLost, &head, "event %d was lost by the store, and the log has gone on without it", f.after)
}

// forget takes back what was published: it may not be in the store.
func (t *topic) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.reset()
	}
}

// reset is forget for who holds mu.
func (t *topic) reset() {
	t.drop(len(t.ring))
	t.last, t.floor = 0, 0
	t.doubts++
	for f := range t.followers {
		f.signal()
	}
}

// known reports whether a batch that begins with a number that was published
// is what was published. It is assumed of what the ring no longer has: whoever
// is told of later events will see. The caller holds mu.
func (t *topic) known(events []checkpoint.Event) bool {
	if newest := &events[len(events)-1]; newest.Seq == t.last {
		return Mark(newest) == t.mark
	}
	if len(t.ring) > 0 && events[0].Seq <= t.floor {
		return true
	}
	for _, batch := range slices.Backward(t.ring) {
		for i := range batch {
			if e := &batch[i]; !e.Ephemeral && e.Seq == events[0].Seq {
				return Mark(e) == Mark(&events[0])
			}
		}
	}
	return false
}

// wentBack reports whether the head that the store has is from before the one
// that the session made with the same lease: its newest changes are lost. What
// the live run holds in memory does not continue such a thread.
func (s *session) wentBack(now *checkpoint.Head) bool {
	if now.Revision >= s.head.Revision && now.Checkpoint == s.head.Checkpoint && now.LastEvent >= s.head.LastEvent {
		return false
	}
	s.log.Warn("the store has lost changes of a thread that runs here; the run goes on from what is left",
		zap.Uint64("revision", s.head.Revision), zap.Uint64("stored", now.Revision))
	return true
}
