package engine

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// joinMembership registers this server in the membership of the store, if the store
// has one.
func (e *Engine) joinMembership(store checkpoint.Store) {
	if e.opts.Workers == nil {
		return
	}
	p := placement.New(e.opts.Workers, e.unserved)
	if membership, ok := store.(checkpoint.Membership); ok {
		p.Register(membership, e.id)
	}
	e.peers = p
	e.opts.Workers.SetPeers(e.peers)
}

// findOtherServer names the server on which a loop has the workers for what it is
// about to do, when it can do nothing of it here; "" = it can, or no server can.
func (e *Engine) findOtherServer(thread string, l *superstep.Loop) string {
	if e.peers == nil || len(e.peers.OtherMembers()) == 0 {
		return ""
	}
	tasks, ok := l.NextRemoteTasks()
	if !ok {
		return ""
	}
	needs := make([][]checkpoint.Capability, len(tasks))
	for i, need := range tasks {
		if e.peers.CoversHere(need) {
			return ""
		}
		needs[i] = tasks[i : i+1]
	}
	return e.peers.ChooseServer(thread, needs)
}

// putHandOff hands a thread off to a server in a change. If that server does not
// take it, any server may after the time of a lease.
func (e *Engine) putHandOff(t *commit.Tx, server string) {
	t.Lease = 0
	t.Head.Owner, t.Head.PreferredOwner, t.Head.PreferredUntil = "", server, t.Now.Add(e.opts.LeaseTTL)
	t.Head.Handoffs++
	t.Head.Due = t.Now.Add(e.opts.ScanInterval) // it is notified, and its scan finds the thread otherwise
}

// claimOrHandOff claims the lease for a loop that is about to begin, or hands the
// thread off to the server with its workers and returns that server. A loop that
// has ended already ends in the same change.
func (e *Engine) claimOrHandOff(s *session, t *commit.Tx, l *superstep.Loop) (to string, err error) {
	t.Head.Handoffs = 0
	if l.InlineEnd() != nil {
		s.claimLease(t)
		return "", l.PutInlineEnd(t)
	}
	if to = e.findOtherServer(t.Thread, l); to != "" {
		e.putHandOff(t, to)
		return to, nil
	}
	s.claimLease(t)
	return "", nil
}

// driveOrRelease drives the loop after its first change, unless the thread was left to
// another server or the loop has ended with it.
func (s *session) driveOrRelease(head *checkpoint.Head, l *superstep.Loop, to string) {
	switch {
	case l.InlineEnd() != nil:
		s.endInlineRun(head, l)
		return
	case to == "":
		s.startDriving(head, l)
		return
	}
	s.log.Debug("run left to a server with workers", zap.String("server", to))
	s.releaseThread(nil)
}

// acceptHandOff takes a thread that was handed off to this server, even if this
// server is still releasing it.
func (e *Engine) acceptHandOff(thread string) {
	if e.peers == nil {
		return
	}
	e.live.runForThread(thread, func(old *session) {
		if old != nil && old.waitFirstCommit(e.baseCtx) != nil || e.live.IsLive(thread) {
			return
		}
		select {
		case e.handOffSlots <- struct{}{}:
			defer func() { <-e.handOffSlots }()
			e.scheduler.ProcessThread(e.baseCtx, thread)
		case <-e.draining:
		}
	}, contain.LogPanic(e.log, "taking a thread panicked"))
}

// handOffDelay is how long a run stays after a number of fruitless hand-offs:
// changing workers must not chase it around.
func handOffDelay(moves int, lease time.Duration) time.Duration {
	const free = 3
	if moves < free {
		return 0
	}
	return min(100*time.Millisecond<<min(moves-free, 16), lease)
}
