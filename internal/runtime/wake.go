package runtime

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// rouse tells other processes what a change that was made here leaves to them:
// the one that drives the thread, what it was asked for; the one to which the
// thread is left, that; when nobody drives it and this one takes up nothing, all
// of them.
func (e *Engine) rouse(h *checkpoint.Head) {
	if e.tuner == nil {
		return
	}
	switch {
	case h.Owner == "" && h.Wish != "" && h.Wish != e.id:
		e.tuner.Wake(h.Wish, h.Thread)
	case h.Owner == e.id:
	case h.Owner != "":
		e.tuner.Wake(h.Owner, h.Thread)
	case !h.Due.IsZero() && !h.Due.After(h.Now.Add(drift)) && (!e.room() || e.bytes.exceeded()): // by our clock it is due
		e.tuner.Wake("", h.Thread)
	}
}

// roused looks at a thread because another process says so.
func (e *Engine) roused(owner, thread string) {
	switch owner {
	case "":
		e.nudge()
	case e.id:
		if s := e.session(thread); s != nil {
			s.glance()
		}
		e.beckoned(thread)
	}
}

// glance takes in what others have changed in the head. It does not wait.
func (s *session) glance() {
	if !s.glancing.CompareAndSwap(false, true) {
		return // the one that waits for its turn will see it
	}
	go contain.Func(func() {
		if s.take(s.calls) != nil {
			return
		}
		defer s.yield()
		s.glancing.Store(false)
		if s.lost {
			return
		}
		if err := s.reload(s.calls); err != nil {
			s.log.Debug("the newest head was not read", zap.Error(err), cause(err))
		}
	}, contain.Log(s.engine.log, "reading the newest head panicked"))()
}
