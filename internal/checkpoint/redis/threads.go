package redis

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// Apply makes one change in one exchange with the server. An attempt whose
// answer was lost is repeated under its Op, which the server knows again; when
// another change has followed meanwhile, the outcome is unknown, and the error
// wraps ErrUnavailable, never ErrConflict.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := c.Validate(); err != nil {
		return checkpoint.Receipt{}, err
	}
	done, err := s.beginCall(ctx)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	defer done()
	r, err := s.changes.ApplyChange(ctx, c)
	return r, wrapThreadError(c.Thread, script.ToContractError(ctx, err))
}

// Head returns the thread's head.
func (s *Store) Head(ctx context.Context, thread string) (h checkpoint.Head, err error) {
	err = s.readThread(ctx, thread, func() error {
		h, err = s.threads.ReadHead(ctx, thread)
		return err
	})
	return h, err
}

// ViewThread reads what is needed to continue a thread, in one exchange, or in
// two when large values belong to it.
func (s *Store) ViewThread(ctx context.Context, thread, request string) (g checkpoint.ThreadView, err error) {
	err = s.readThread(ctx, thread, func() error {
		g, err = s.threads.ReadView(ctx, thread, request)
		return err
	})
	return g, err
}

// Events returns events with a greater number than after, oldest first.
func (s *Store) Events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	err = s.readThread(ctx, thread, func() error {
		out, err = s.threads.ReadEvents(ctx, thread, after, limit)
		return err
	})
	return out, err
}

// Run returns one run of a thread.
func (s *Store) Run(ctx context.Context, thread, run string) (out checkpoint.Run, err error) {
	err = s.readThread(ctx, thread, func() error {
		out, err = s.threads.ReadRun(ctx, thread, run)
		return err
	})
	return out, err
}

// Runs lists a thread's runs, newest first.
func (s *Store) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) (out []checkpoint.Run, err error) {
	err = s.readThread(ctx, thread, func() error {
		out, err = s.threads.ReadRuns(ctx, thread, before, limit)
		return err
	})
	return out, err
}

// Interrupt returns one interrupt of a thread.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (out checkpoint.Interrupt, err error) {
	err = s.readThread(ctx, thread, func() error {
		out, err = s.threads.ReadInterrupt(ctx, thread, id)
		return err
	})
	return out, err
}

// Request returns a remembered request of a thread.
func (s *Store) Request(ctx context.Context, thread, id string) (out checkpoint.Request, err error) {
	err = s.readThread(ctx, thread, func() error {
		out, err = s.threads.ReadRequest(ctx, thread, id)
		return err
	})
	return out, err
}

// Checkpoint returns one checkpoint of a namespace, the newest for an empty id.
func (s *Store) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return s.CheckpointWithin(ctx, thread, namespace, id, 0)
}

// CheckpointWithin returns one checkpoint that is not large; with a most of 0, any.
func (s *Store) CheckpointWithin(
	ctx context.Context, thread, namespace, id string, most int,
) (cp *checkpoint.Checkpoint, err error) {
	var large *checkpoint.LargeError
	err = s.readThread(ctx, thread, func() error {
		var err error
		cp, err = s.threads.ReadCheckpoint(ctx, thread, namespace, id, most)
		if errors.As(err, &large) {
			return nil
		}
		return err
	})
	if large != nil {
		return nil, large
	}
	return cp, err
}

// Checkpoints lists the checkpoints of a namespace, newest first.
func (s *Store) Checkpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) (out []*checkpoint.Checkpoint, err error) {
	err = s.readThread(ctx, q.Thread, func() error {
		out, err = s.threads.ReadCheckpoints(ctx, q)
		return err
	})
	return out, err
}

// Pending returns the progress after a checkpoint.
func (s *Store) Pending(ctx context.Context, thread, id string) (p checkpoint.Pending, err error) {
	err = s.readThread(ctx, thread, func() error {
		p, err = s.threads.ReadPending(ctx, thread, id)
		return err
	})
	return p, err
}

// Due lists threads that a server should look at.
func (s *Store) Due(ctx context.Context, limit int) (threads []string, next time.Time, err error) {
	err = s.readStore(ctx, func() error {
		threads, next, err = s.index.ListDue(ctx, limit)
		return err
	})
	return threads, next, err
}

// Threads lists heads by update time, newest first.
func (s *Store) Threads(ctx context.Context, q checkpoint.ThreadQuery) (out []checkpoint.Head, err error) {
	err = s.readStore(ctx, func() error {
		out, err = s.index.ListThreads(ctx, q)
		return err
	})
	return out, err
}

// Interrupts lists interrupts over all threads.
func (s *Store) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) (out []checkpoint.Interrupt, err error) {
	err = s.readStore(ctx, func() error {
		out, err = s.index.ListInterrupts(ctx, q)
		return err
	})
	return out, err
}
