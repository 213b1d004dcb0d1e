package scheduler

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// countQuarantined returns the number of quarantined threads, and reports a change
// to the observer.
func (s *Scheduler) countQuarantined() int {
	n := s.quarantine.pruneStale(s.opts.Uptime())
	if s.reportedQuarantined.Swap(int64(n)) != int64(n) {
		s.opts.Observer.ThreadsPoisoned(n)
	}
	return n
}

// QuarantineThread quarantines a thread that could not be processed. Other
// threads continue.
func (s *Scheduler) QuarantineThread(ctx context.Context, thread string, why error) {
	head, known := checkpoint.Head{}, false
	caught := contain.Call(func() {
		h, err := s.opts.Store.Head(ctx, thread)
		head, known = h, err == nil
	})
	failures := s.quarantine.addFailure(thread, head.Faults, s.opts.Uptime())
	s.countQuarantined()
	pause := pauseAfter(failures)
	fields := append(faultFields(why), zap.String("thread", thread), zap.String("run", head.Run),
		zap.Int("failures", failures), zap.Duration("pause", pause))
	s.log.Error("thread not taken up; it is put off", fields...)
	if caught == nil && known {
		var err error
		if caught = contain.Call(func() { err = s.processor.StoreQuarantine(ctx, &head, failures, pause) }); err != nil && ctx.Err() == nil {
			s.log.Warn("putting a thread off was not stored", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
		}
	}
	if caught != nil {
		s.log.Error("the engine panicked while it put a thread off", append(caught.Fields(), zap.String("thread", thread))...)
	}
}

func faultFields(why error) []zap.Field {
	if p, ok := errors.AsType[*contain.PanicError](why); ok {
		return p.Fields()
	}
	return []zap.Field{zap.Error(why), runtime.CauseField(why)}
}
