package ownership

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Changer changes threads that may be held here.
type Changer struct {
	threads   *Table
	store     Store
	committer *commit.Committer
	feed      *feed.Feed
	removed   func(thread string)
}

// NewChanger makes a changer. removed is called when a thread was removed.
func NewChanger(threads *Table, store Store, committer *commit.Committer, events *feed.Feed, removed func(thread string)) *Changer {
	return &Changer{threads: threads, store: store, committer: committer, feed: events, removed: removed}
}

// ChangeThread makes one change to a thread that this process need not drive. It repeats
// it while other writers are faster, and makes it through the live run when the thread
// is driven here, so that the two never race. Errors: those of
// runtime.TranslateThreadError, and those of b.
func (c *Changer) ChangeThread(ctx context.Context, thread string, b commit.Build) (checkpoint.Head, error) {
	for {
		head, err := c.store.Head(ctx, thread)
		if err != nil {
			return head, runtime.TranslateThreadError(thread, err)
		}
		head, err = c.ChangeFrom(ctx, head, b)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return head, err
		}
	}
}

// ChangeFrom makes one attempt at a change that was decided on a given head. Through a
// live run the build may see a newer head. Errors: checkpoint.ErrConflict when the
// caller must decide again, and those of Committer.TryChange.
func (c *Changer) ChangeFrom(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error) {
	if s := c.threads.findSession(head.Thread); s != nil {
		next, err := s.commits.commitForCaller(ctx, b)
		if !errors.Is(err, superstep.ErrLeaseLost) {
			return next, err
		}
	}
	return c.committer.TryChange(ctx, head, b)
}

// ChangeFree makes one attempt at a change that was decided on a given head, of a thread
// without a live run here. Errors: checkpoint.ErrConflict when the caller must decide
// again, and those of Committer.TryChange.
func (c *Changer) ChangeFree(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error) {
	if c.threads.IsLive(head.Thread) {
		return head, c.WaitUntilSettled(ctx, head.Thread)
	}
	return c.committer.TryChange(ctx, head, b)
}

// WaitUntilSettled waits until a run that begins or ends here has done so, and returns
// checkpoint.ErrConflict: the caller must decide again. Other errors: the cause of ctx.
func (c *Changer) WaitUntilSettled(ctx context.Context, thread string) error {
	if s := c.threads.findSession(thread); s != nil {
		if err := s.commits.waitFirstCommit(ctx); err != nil {
			return err
		}
	}
	return checkpoint.ErrConflict
}

// RemoveHeldThread removes a thread and stops its run in this process. A live run
// commits all the time: when any revision will do, the removal takes its turn among the
// commits. Errors: the cause of ctx, and those of RemoveThread.
func (c *Changer) RemoveHeldThread(ctx context.Context, head checkpoint.Head, anyRevision bool) error {
	s := c.threads.findSession(head.Thread)
	if s == nil {
		return c.RemoveThread(ctx, head)
	}
	if err := s.commits.lockCommits(ctx); err != nil {
		return err
	}
	defer s.commits.unlockCommits()
	if anyRevision && !s.lease.isLost {
		head.Revision = s.commits.head.Revision
	}
	err := c.RemoveThread(ctx, head)
	switch {
	case err == nil:
		s.lease.loseLease()
	case errors.Is(err, checkpoint.ErrConflict) && !s.lease.isLost:
		if again := s.commits.reloadHead(ctx); again != nil && !errors.Is(again, superstep.ErrLeaseLost) {
			return again
		}
	}
	return err
}

// RemoveThread deletes a thread that is at the revision of head. Errors:
// checkpoint.ErrConflict at another revision, and those of runtime.TranslateStoreError.
func (c *Changer) RemoveThread(ctx context.Context, head checkpoint.Head) error {
	ctx, cancel := c.committer.WithStoreTimeout(ctx)
	defer cancel()
	_, err := c.store.Apply(ctx, &checkpoint.Change{
		Thread: head.Thread, Expect: head.Revision, LogID: head.LogID, Op: c.committer.NewOpID(), Delete: true,
	})
	if err == nil {
		c.feed.EndTopic(head.Thread)
		c.removed(head.Thread)
	}
	return runtime.TranslateStoreError(err)
}
