package engine

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// peers knows where workers are: at this server, or at others.
type peers struct {
	workers         runtime.Workers
	registration    checkpoint.Registration
	handOffSlots    chan struct{} // bounds how many threads are taken at the same time
	recheckUnserved func()        // has the runs looked at that wait for workers
	countUnserved   func() int    // counts their tasks

	mu      sync.Mutex
	holders map[string]string // by lease
	awaited map[string]struct{}
}

// joinMembership registers this server in the membership of the store, if the store
// has one.
func (e *Engine) joinMembership(store checkpoint.Store) {
	if e.opts.Workers == nil {
		return
	}
	p := &peers{workers: e.opts.Workers, registration: soloRegistration{}, handOffSlots: make(chan struct{}, maxParallelDue), recheckUnserved: e.recheckUnserved, countUnserved: e.unservedRuns.countTasks}
	if membership, ok := store.(checkpoint.Membership); ok {
		p.mu.Lock() // updateMembers waits until the registration is set
		p.registration = membership.Register(e.id, p.updateMembers)
		p.mu.Unlock()
	}
	e.peers = p
	e.opts.Workers.SetPeers(e.peers)
}

// soloRegistration is the registration of a server that shares its store with none.
type soloRegistration struct{}

// SetCapabilities does nothing.
func (soloRegistration) SetCapabilities([]checkpoint.Capability) {}

// SetClaims does nothing.
func (soloRegistration) SetClaims(checkpoint.Claims) {}

// OtherMembers lists none.
func (soloRegistration) OtherMembers() []checkpoint.Member { return nil }

// Close does nothing.
func (soloRegistration) Close() {}

// SetCapabilities tells the others, and the runs that wait here, what the workers of this
// server take.
func (p *peers) SetCapabilities(served []checkpoint.Capability) {
	p.registration.SetCapabilities(served)
	p.recheckUnserved()
}

// UnservedTasks is how many tasks wait for workers though no run of them is live here.
func (p *peers) UnservedTasks() int { return p.countUnserved() }

// Cover reports whether another server has workers for all that is needed.
func (p *peers) Cover(needs ...checkpoint.Capability) bool {
	return slices.ContainsFunc(p.registration.OtherMembers(), func(s checkpoint.Member) bool { return coversAll(&s, needs) })
}

// updateMembers takes note of what the other servers say now.
func (p *peers) updateMembers() {
	p.mu.Lock()
	p.holders, p.awaited = nil, nil
	for _, s := range p.registration.OtherMembers() {
		for _, lease := range s.Claims.Held {
			if p.holders == nil {
				p.holders = make(map[string]string)
			}
			p.holders[lease] = s.Server
		}
		for _, lease := range s.Claims.Awaited {
			if p.awaited == nil {
				p.awaited = make(map[string]struct{})
			}
			p.awaited[lease] = struct{}{}
		}
	}
	p.mu.Unlock()
	p.workers.RecheckTasks()
	p.recheckUnserved()
}

// SetClaims tells the others which leases of other servers are known here.
func (p *peers) SetClaims(claims checkpoint.Claims) { p.registration.SetClaims(claims) }

// FindHolder names the server to which the worker of a lease is attached.
func (p *peers) FindHolder(lease string, needs ...checkpoint.Capability) string {
	p.mu.Lock()
	server := p.holders[lease]
	p.mu.Unlock()
	if server == "" || len(needs) == 0 {
		return server
	}
	for _, s := range p.registration.OtherMembers() {
		if s.Server == server && coversAll(&s, needs) {
			return server
		}
	}
	return ""
}

// IsAwaited reports whether another server keeps the task of a lease back.
func (p *peers) IsAwaited(lease string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.awaited[lease]
	return ok
}

func coversAll(s *checkpoint.Member, needs []checkpoint.Capability) bool {
	for _, need := range needs {
		if !s.Covers(need) {
			return false
		}
	}
	return true
}

// chooseServer names the server with workers for most of the tasks, "" = none.
// Among equals, threads are spread by hash.
func (p *peers) chooseServer(thread string, remoteTasks [][]checkpoint.Capability) string {
	var best []string
	most := 1
	for _, s := range p.registration.OtherMembers() {
		n := 0
		for _, needs := range remoteTasks {
			if coversAll(&s, needs) {
				n++
			}
		}
		if n > most {
			best, most = best[:0], n
		}
		if n == most {
			best = append(best, s.Server)
		}
	}
	if len(best) == 0 {
		return ""
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(thread)) // never fails
	return best[h.Sum32()%uint32(len(best))]
}

// isMember reports whether a server is registered.
func (p *peers) isMember(server string) bool {
	for _, s := range p.registration.OtherMembers() {
		if s.Server == server {
			return true
		}
	}
	return false
}

// capabilityFor says what a worker must take to run a node, or the work of the graph
// that belongs to no node. It reports false for what no worker runs.
func capabilityFor(g *graph.Graph, n *graph.Node) (checkpoint.Capability, bool) {
	need := checkpoint.Capability{Graph: g.Name, Version: g.Version}
	if n == nil {
		return need, true
	}
	need.Node = n.Name
	return need, n.Kind == graph.KindRemote && (n.Spec == nil || n.Spec.Remote == nil || n.Spec.Remote.Endpoint == "")
}

// capabilitiesOfGraph is what workers must take to run all of a graph.
func capabilitiesOfGraph(g *graph.Graph) []checkpoint.Capability {
	var needs []checkpoint.Capability
	for _, n := range g.Nodes {
		if need, remote := capabilityFor(g, n); remote {
			needs = append(needs, need)
		}
	}
	return needs
}

// findOtherServer names the server on which a loop has the workers for what it is
// about to do, when it can do nothing of it here; "" = it can, or no server can.
func (e *Engine) findOtherServer(l *loop) string {
	if e.peers == nil || len(e.peers.registration.OtherMembers()) == 0 || l.decideEnd(l.state, l.tasks, nil, &l.pending) != nil {
		return ""
	}
	w := &superstep{loop: l}
	for _, t := range l.tasks {
		l.planTask(w, t)
	}
	needs := make([][]checkpoint.Capability, 0, len(w.toRun))
	for _, t := range w.toRun {
		need, remote := capabilityFor(l.graph(), t.Node)
		if !remote || e.peers.workers.Covers(need) {
			return ""
		}
		needs = append(needs, []checkpoint.Capability{need})
	}
	return e.peers.chooseServer(l.session.thread, needs)
}

// putHandOff hands a thread off to a server in a change. If that server does not
// take it, any server may after the time of a lease.
func (e *Engine) putHandOff(t *commit.Tx, server string) {
	t.Lease = 0
	t.Head.Owner, t.Head.PreferredOwner, t.Head.PreferredUntil = "", server, t.Now.Add(e.opts.LeaseTTL)
	t.Head.Handoffs++
	t.Head.Due = t.Now.Add(e.opts.ScanInterval) // it is notified, and its scan finds the thread otherwise
}

// isLeftToOther reports whether another server is expected to take a thread.
func (e *Engine) isLeftToOther(head *checkpoint.Head) bool {
	return e.peers != nil && head.PreferredOwner != "" && head.PreferredOwner != e.id && head.PreferredUntil.After(head.Now) && e.peers.isMember(head.PreferredOwner)
}

// claimOrHandOff claims the lease for a loop that is about to begin, or hands the
// thread off to the server with its workers and returns that server. A loop that
// has ended already ends in the same change.
func (e *Engine) claimOrHandOff(s *session, t *commit.Tx, l *loop) (to string, err error) {
	t.Head.Handoffs = 0
	if l.inlineEnd != nil {
		s.claimLease(t)
		return "", l.putRunEnd(t, l.state, l.inlineEnd)
	}
	if to = e.findOtherServer(l); to != "" {
		e.putHandOff(t, to)
		return to, nil
	}
	s.claimLease(t)
	return "", nil
}

// driveOrRelease drives the loop after its first change, unless the thread was left to
// another server or the loop has ended with it.
func (s *session) driveOrRelease(head *checkpoint.Head, l *loop, to string) {
	switch {
	case l.inlineEnd != nil:
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
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isDrained || e.peers == nil {
		return
	}
	old := e.sessions[thread]
	e.goroutines.Go(contain.Func(func() {
		if old != nil && old.waitFirstCommit(e.baseCtx) != nil || e.findSession(thread) != nil {
			return
		}
		select {
		case e.peers.handOffSlots <- struct{}{}:
			defer func() { <-e.peers.handOffSlots }()
			e.processThread(e.baseCtx, thread, &dueRound{engine: e})
		case <-e.draining:
		}
	}, contain.LogPanic(e.log, "taking a thread panicked")))
}

// handOffDueThread hands a due thread off to the server with its workers.
func (e *Engine) handOffDueThread(ctx context.Context, head checkpoint.Head, to string) error {
	_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.RemoteTasks = head.Updated, remoteTasksOf(&head)
		e.putHandOff(t, to)
		return nil
	})
	return err
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
