package engine

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// notifyServers tells other servers what a change leaves to them: the owner of the
// thread, the preferred owner or, when the thread is free and this server has no
// capacity, all.
func (e *Engine) notifyServers(h *checkpoint.Head) {
	if e.subscription == nil {
		return
	}
	switch {
	case h.Owner == "" && h.PreferredOwner != "" && h.PreferredOwner != e.id:
		e.subscription.WakeServers(h.PreferredOwner, h.Thread)
	case h.Owner == e.id:
	case h.Owner != "":
		e.subscription.WakeServers(h.Owner, h.Thread)
	case !h.Due.IsZero() && !h.Due.After(h.Now.Add(commit.MaxClockDrift)) && (!e.capacity.HasFreeSlot() || e.capacity.IsExceeded()): // by our clock it is due
		e.subscription.WakeServers("", h.Thread)
	}
}

// handleSignal takes in what another process tells. It is called by the store.
func (e *Engine) handleSignal(s checkpoint.Signal) {
	if s.Kind != checkpoint.SignalWake {
		e.feed.HandleSignal(s)
		return
	}
	contain.Func(func() { e.handleWake(s.Owner, s.Thread) }, contain.LogPanic(e.log, "a message of another server panicked"))()
}

// handleWake reads a thread because another server asks for it.
func (e *Engine) handleWake(owner, thread string) {
	switch owner {
	case "":
		e.wakeScheduler()
	case e.id:
		if s := e.live.findSession(thread); s != nil {
			s.refreshHead()
		}
		e.acceptHandOff(thread)
	}
}

// refreshHead reads the newest head of a thread in the background. It does not
// wait.
func (s *session) refreshHead() {
	if !s.isRefreshing.CompareAndSwap(false, true) {
		return // the goroutine that waits for commitLock
	}
	go contain.Func(func() {
		if s.lockCommits(s.storeCtx) != nil {
			return
		}
		defer s.unlockCommits()
		s.isRefreshing.Store(false)
		if s.isLost {
			return
		}
		if err := s.reloadHead(s.storeCtx); err != nil {
			s.log.Debug("the newest head was not read", zap.Error(err), runtime.CauseField(err))
		}
	}, contain.LogPanic(s.engine.log, "reading the newest head panicked"))()
}
