package redis

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Head returns the thread's head. It returns checkpoint.ErrThreadNotFound when there is
// no such thread.
func (r *Reader) Head(ctx context.Context, thread string) (h checkpoint.Head, err error) {
	err = r.readThread(ctx, thread, func() error {
		h, err = r.threads.ReadHead(ctx, thread)
		return err
	})
	return h, err
}

// ViewThread reads the records that a server needs to continue a thread, in a single
// exchange, or in two when the thread has large values. It returns
// checkpoint.ErrThreadNotFound when there is no such thread.
func (r *Reader) ViewThread(ctx context.Context, thread, request string) (g *checkpoint.ThreadView, err error) {
	err = r.readThread(ctx, thread, func() error {
		g, err = r.threads.ReadView(ctx, thread, request)
		return err
	})
	return g, err
}

// Events returns events with a greater number than after, oldest first. It returns
// checkpoint.ErrThreadNotFound when there is no such thread, and checkpoint.ErrTrimmed
// when events after that number are gone.
func (r *Reader) Events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	err = r.readThread(ctx, thread, func() error {
		out, err = r.threads.ReadEvents(ctx, thread, after, limit)
		return err
	})
	return out, err
}

// Run returns a run of a thread. It returns checkpoint.ErrRunNotFound when there is no
// such run.
func (r *Reader) Run(ctx context.Context, thread, run string) (out checkpoint.Run, err error) {
	err = r.readThread(ctx, thread, func() error {
		out, err = r.threads.ReadRun(ctx, thread, run)
		return err
	})
	return out, err
}

// Runs lists a thread's runs, newest first.
func (r *Reader) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) (out []checkpoint.Run, err error) {
	err = r.readThread(ctx, thread, func() error {
		out, err = r.threads.ReadRuns(ctx, thread, before, limit)
		return err
	})
	return out, err
}

// Interrupt returns an interrupt of a thread. It returns checkpoint.ErrInterruptNotFound
// when there is no such interrupt.
func (r *Reader) Interrupt(ctx context.Context, thread, id string) (out checkpoint.Interrupt, err error) {
	err = r.readThread(ctx, thread, func() error {
		out, err = r.threads.ReadInterrupt(ctx, thread, id)
		return err
	})
	return out, err
}

// Request returns a remembered request of a thread. It returns
// checkpoint.ErrRequestNotFound when the id was not used.
func (r *Reader) Request(ctx context.Context, thread, id string) (out checkpoint.Request, err error) {
	err = r.readThread(ctx, thread, func() error {
		out, err = r.threads.ReadRequest(ctx, thread, id)
		return err
	})
	return out, err
}

// Checkpoint returns a checkpoint of a namespace, the newest for an empty id. It returns
// checkpoint.ErrCheckpointNotFound when there is none.
func (r *Reader) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return r.CheckpointWithin(ctx, thread, namespace, id, 0)
}

// CheckpointWithin returns a checkpoint of at most that many bytes, 0 = of any size. It
// returns *checkpoint.LargeError for a larger checkpoint, and
// checkpoint.ErrCheckpointNotFound when there is none.
func (r *Reader) CheckpointWithin(
	ctx context.Context, thread, namespace, id string, most int,
) (cp *checkpoint.Checkpoint, err error) {
	var large *checkpoint.LargeError
	err = r.readThread(ctx, thread, func() error {
		var err error
		cp, err = r.threads.ReadCheckpoint(ctx, thread, namespace, id, most)
		if errors.As(err, &large) {
			return nil // readThread would return it as an error of the store
		}
		return err
	})
	if large != nil {
		return nil, large
	}
	return cp, err
}

// Checkpoints lists the checkpoints of a namespace, newest first.
func (r *Reader) Checkpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) (out []*checkpoint.Checkpoint, err error) {
	err = r.readThread(ctx, q.Thread, func() error {
		out, err = r.threads.ReadCheckpoints(ctx, q)
		return err
	})
	return out, err
}

// Pending returns the progress after a checkpoint.
func (r *Reader) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return r.PendingWithin(ctx, thread, id, 0)
}

// PendingWithin returns the progress after a checkpoint that is not large; with a most of
// 0, any.
func (r *Reader) PendingWithin(ctx context.Context, thread, id string, most int) (p checkpoint.Pending, err error) {
	var large *checkpoint.LargeError
	err = r.readThread(ctx, thread, func() error {
		var err error
		p, err = r.threads.ReadPending(ctx, thread, id, most)
		if errors.As(err, &large) {
			return nil // readThread would return it as an error of the store
		}
		return err
	})
	if large != nil {
		return checkpoint.Pending{}, large
	}
	return p, err
}

// Due lists threads that a server should look at.
func (r *Reader) Due(ctx context.Context, limit int) (threads []string, next time.Time, err error) {
	err = r.readStore(ctx, func() error {
		threads, next, err = r.index.ListDue(ctx, limit)
		return err
	})
	return threads, next, err
}

// Threads lists heads by update time, newest first.
func (r *Reader) Threads(ctx context.Context, q checkpoint.ThreadQuery) (out []checkpoint.Head, err error) {
	err = r.readStore(ctx, func() error {
		out, err = r.index.ListThreads(ctx, q)
		return err
	})
	return out, err
}

// SkipThreads returns the place of the last of the first n threads that a query selects, zero when
// there are fewer.
func (r *Reader) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (at checkpoint.ThreadPosition, err error) {
	err = r.readStore(ctx, func() error {
		at, err = r.index.SkipThreads(ctx, q, n)
		return err
	})
	return at, err
}

// CountSelectedThreads returns how many threads a query selects, or atMost if it selects more.
func (r *Reader) CountSelectedThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (n int, err error) {
	err = r.readStore(ctx, func() error {
		n, err = r.index.CountSelectedThreads(ctx, q, atMost)
		return err
	})
	return n, err
}

// Interrupts lists interrupts over all threads.
func (r *Reader) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) (out []checkpoint.Interrupt, err error) {
	err = r.readStore(ctx, func() error {
		out, err = r.index.ListInterrupts(ctx, q)
		return err
	})
	return out, err
}

// CountThreads returns how many threads a tenant has, or atMost if it has more.
func (r *Reader) CountThreads(ctx context.Context, owner string, atMost int) (n int, err error) {
	err = r.readStore(ctx, func() error {
		n, err = r.index.CountThreads(ctx, owner, atMost)
		return err
	})
	return n, err
}

// CountOpenInterrupts returns how many interrupts of a tenant are open, or atMost if more
// are.
func (r *Reader) CountOpenInterrupts(ctx context.Context, owner string, atMost int) (n int, err error) {
	err = r.readStore(ctx, func() error {
		n, err = r.index.CountOpenInterrupts(ctx, owner, atMost)
		return err
	})
	return n, err
}

// CountTags returns how many open interrupts of a tenant have each of some tags.
func (r *Reader) CountTags(ctx context.Context, owner string, tags []string) (counts []int, err error) {
	err = r.readStore(ctx, func() error {
		counts, err = r.index.CountTags(ctx, owner, tags)
		return err
	})
	return counts, err
}

// LatestChange returns a number that every later change of an interrupt exceeds.
func (r *Reader) LatestChange(ctx context.Context) (n uint64, err error) {
	err = r.readStore(ctx, func() error {
		n, err = r.index.LatestChange(ctx)
		return err
	})
	return n, err
}
