package engine

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// countQuarantined returns how many threads are quarantined and reports a change to
// the observer.
func (e *Engine) countQuarantined() int {
	n := e.quarantine.PruneStale(e.uptime())
	if e.reportedQuarantined.Swap(int64(n)) != int64(n) {
		e.observer.ThreadsPoisoned(n)
	}
	return n
}

// quarantineThread leaves a thread alone for a while because it could not be taken.
// Other threads go on.
func (e *Engine) quarantineThread(ctx context.Context, thread string, why error) {
	head, known := checkpoint.Head{}, false
	caught := contain.Call(func() {
		h, err := e.store.Head(ctx, thread)
		head, known = h, err == nil
	})
	x := e.quarantine.AddFailure(thread, head.Faults, e.uptime())
	e.countQuarantined()
	fields := append(faultFields(why), zap.String("thread", thread), zap.String("run", head.Run),
		zap.Int("failures", x.Count), zap.Duration("pause", scheduler.PauseAfter(x.Count)))
	e.log.Error("thread not taken up; it is put off", fields...)
	if caught == nil && known {
		var err error
		if caught = contain.Call(func() { err = e.storeQuarantine(ctx, &head, x) }); err != nil && ctx.Err() == nil {
			e.log.Warn("putting a thread off was not stored", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
		}
	}
	if caught != nil {
		e.log.Error("the engine panicked while it put a thread off", append(caught.Fields(), zap.String("thread", thread))...)
	}
}

func faultFields(why error) []zap.Field {
	if p, ok := errors.AsType[*contain.PanicError](why); ok {
		return p.Fields()
	}
	return []zap.Field{zap.Error(why), runtime.CauseField(why)}
}

// storeQuarantine records the quarantine in the head of a thread. A lease without a
// session is returned.
func (e *Engine) storeQuarantine(ctx context.Context, head *checkpoint.Head, x scheduler.QuarantineEntry) error {
	if head.Leased() && head.Owner != e.id {
		return nil
	}
	_, err := e.changeFrom(ctx, *head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.Head.Faults, t.Head.RetryAt = x.Count, t.Now.Add(scheduler.PauseAfter(x.Count))
		if t.Lease == 0 {
			t.Head.RemoteTasks, t.Head.Owner = superstep.RemoteTasksOf(&t.Head), ""
		}
		t.ScheduleBy(t.Head.RetryAt)
		return nil
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil // the thread is no longer as it was
	}
	return err
}
