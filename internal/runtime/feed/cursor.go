package feed

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// A store may lose its newest changes: a Redis that crashed, or a replica that
// lagged and became the master. Threads then have an earlier state, and numbers of
// events are used again. A reader that has seen lost events must get an error.

// lostEventError returns the error of a follower whose newest event is not in the
// log.
func (f *Follower) lostEventError(ctx context.Context) error {
	f.topic.resetPublished()
	head, err := f.feed.opts.Store.Head(ctx, f.thread)
	if err != nil {
		return runtime.TranslateThreadError(f.thread, err)
	}
	f.feed.opts.Logger.Warn("the store has lost events that a follower has seen",
		zap.String("thread", f.thread), zap.Uint64("seen", f.after), zap.Uint64("newest", head.LastEvent))
	if err := runtime.CheckCursorRange(f.after, &head); err != nil {
		return err
	}
	return runtime.CursorError(runtime.ReasonCursorLost, &head, "event %d was lost by the store, and the log has gone on without it", f.after)
}

// resetPublished forgets the published batches, because they may not be in the
// store.
func (t *Topic) resetPublished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isDeleted {
		t.resetPublishedLocked()
	}
}

// resetPublishedLocked does the work of resetPublished. The caller holds mu.
func (t *Topic) resetPublishedLocked() {
	t.dropBatches(len(t.ring))
	t.lastSeq, t.storeOnlyUpTo = 0, 0
	t.generation++
	for f := range t.followers {
		f.wakeReader()
	}
}

// isPublished reports whether a batch that begins with a published number is the
// published batch. It returns true for numbers that the ring no longer has:
// readers of later events notice a difference. The caller holds mu.
func (t *Topic) isPublished(events []checkpoint.Event) bool {
	if newest := &events[len(events)-1]; newest.Seq == t.lastSeq {
		return runtime.EventMark(newest) == t.lastMark
	}
	if len(t.ring) > 0 && events[0].Seq <= t.storeOnlyUpTo {
		return true
	}
	for _, b := range slices.Backward(t.ring) {
		for i := range b.events {
			if e := &b.events[i]; !e.Ephemeral && e.Seq == events[0].Seq {
				return runtime.EventMark(e) == runtime.EventMark(&events[0])
			}
		}
	}
	return false
}
