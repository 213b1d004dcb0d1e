package engine

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// removeLocalThread removes a thread and stops what is going on for it in this
// process. A live run commits all the time: when any revision will do, the
// removal takes its turn among the commits.
func (e *Engine) removeLocalThread(ctx context.Context, head checkpoint.Head, anyRevision bool) error {
	s := e.live.findSession(head.Thread)
	if s == nil {
		return e.removeThread(ctx, head)
	}
	if err := s.lockCommits(ctx); err != nil {
		return err
	}
	defer s.unlockCommits()
	if anyRevision && !s.isLost {
		head.Revision = s.head.Revision
	}
	err := e.removeThread(ctx, head)
	switch {
	case err == nil:
		s.loseLease()
	case errors.Is(err, checkpoint.ErrConflict) && !s.isLost:
		if again := s.reloadHead(ctx); again != nil && !errors.Is(again, superstep.ErrLeaseLost) {
			return again
		}
	}
	return err
}

// RemoveThread deletes a thread that is at the revision of head.
func (e *Engine) removeThread(ctx context.Context, head checkpoint.Head) error {
	ctx, cancel := e.committer.WithStoreTimeout(ctx)
	defer cancel()
	_, err := e.store.Apply(ctx, &checkpoint.Change{
		Thread: head.Thread, Expect: head.Revision, LogID: head.LogID, Op: e.committer.NewOpID(), Delete: true,
	})
	if err == nil {
		e.feed.EndTopic(head.Thread)
	}
	return runtime.TranslateStoreError(err)
}
