package runtime

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
)

// Workers are those that are attached to this server.
type Workers interface {
	// Meet makes those known that want to know of workers. From then on they
	// are told what the workers take, now and whenever that changes.
	Meet(peers Peers)
	// Takes reports whether a worker is attached that takes what is needed.
	Takes(need checkpoint.Served) bool
	// Look has all tasks that wait for a worker looked at again: the workers of
	// the other servers have changed.
	Look()
}

// Peers are the other servers on the same store, if there are any, and the runs of
// this one that wait for workers. The methods don't block.
type Peers interface {
	// Serve tells them what the workers of this server take from now on.
	Serve(served []checkpoint.Served)
	// Take reports whether one of them has workers for all that is needed.
	Take(needs ...checkpoint.Served) bool
	// Claim tells them which leases of other servers are known here.
	Claim(claims checkpoint.Claims)
	// Holder names the one to which the worker of such a lease is attached, if that
	// has workers for all that is needed besides; "" = none, as far as is known.
	Holder(lease string, needs ...checkpoint.Served) string
	// Awaited reports whether one of them keeps the task of such a lease back.
	Awaited(lease string) bool
	// Unserved is how many tasks wait for workers besides those that a hub was
	// asked for: their runs have given their places up.
	Unserved() int
}

// peers knows where workers are: at this server, or at others.
type peers struct {
	own      Workers
	post     checkpoint.Post
	arrivals chan struct{} // bounds how many threads are taken at the same time
	stir     func()        // has the runs looked at that wait for workers
	unserved func() int    // counts their tasks

	mu      sync.Mutex
	holders map[string]string // by lease
	awaited map[string]struct{}
}

// meet puts this server on the roster of the store, if the store has one.
func (e *Engine) meet(store checkpoint.Store) {
	if e.opts.Workers == nil {
		return
	}
	p := &peers{own: e.opts.Workers, post: lonePost{}, arrivals: make(chan struct{}, sweepers), stir: e.stir, unserved: e.unserved.count}
	if roster, ok := store.(checkpoint.Roster); ok {
		p.mu.Lock() // changed waits until the post is known
		p.post = roster.Enlist(e.id, p.changed)
		p.mu.Unlock()
	}
	e.peers = p
	e.opts.Workers.Meet(e.peers)
}

// lonePost is that of a server which shares its store with none.
type lonePost struct{}

// Serve does nothing.
func (lonePost) Serve([]checkpoint.Served) {}

// Claim does nothing.
func (lonePost) Claim(checkpoint.Claims) {}

// Others lists none.
func (lonePost) Others() []checkpoint.Station { return nil }

// Close does nothing.
func (lonePost) Close() {}

// Serve tells the others, and the runs that wait here, what the workers of this
// server take.
func (p *peers) Serve(served []checkpoint.Served) {
	p.post.Serve(served)
	p.stir()
}

// Unserved is how many tasks wait for workers though no run of them is live here.
func (p *peers) Unserved() int { return p.unserved() }

// Take reports whether another server has workers for all that is needed.
func (p *peers) Take(needs ...checkpoint.Served) bool {
	return slices.ContainsFunc(p.post.Others(), func(s checkpoint.Station) bool { return takesAll(&s, needs) })
}

// changed takes note of what the other servers say now.
func (p *peers) changed() {
	p.mu.Lock()
	p.holders, p.awaited = nil, nil
	for _, s := range p.post.Others() {
		for _, lease := range s.Claims.Holds {
			if p.holders == nil {
				p.holders = make(map[string]string)
			}
			p.holders[lease] = s.Server
		}
		for _, lease := range s.Claims.Awaits {
			if p.awaited == nil {
				p.awaited = make(map[string]struct{})
			}
			p.awaited[lease] = struct{}{}
		}
	}
	p.mu.Unlock()
	p.own.Look()
	p.stir()
}

// Claim tells the others which leases of other servers are known here.
func (p *peers) Claim(claims checkpoint.Claims) { p.post.Claim(claims) }

// Holder names the server to which the worker of a lease is attached.
func (p *peers) Holder(lease string, needs ...checkpoint.Served) string {
	p.mu.Lock()
	server := p.holders[lease]
	p.mu.Unlock()
	if server == "" || len(needs) == 0 {
		return server
	}
	for _, s := range p.post.Others() {
		if s.Server == server && takesAll(&s, needs) {
			return server
		}
	}
	return ""
}

// Awaited reports whether another server keeps the task of a lease back.
func (p *peers) Awaited(lease string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.awaited[lease]
	return ok
}

func takesAll(s *checkpoint.Station, needs []checkpoint.Served) bool {
	for _, need := range needs {
		if !s.Takes(need) {
			return false
		}
	}
	return true
}

// choose names the server that has workers for most of some errands, "" = for
// none. Of several that are as good, each thread prefers another one.
func (p *peers) choose(thread string, errands [][]checkpoint.Served) string {
	var best []string
	most := 1
	for _, s := range p.post.Others() {
		n := 0
		for _, needs := range errands {
			if takesAll(&s, needs) {
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

// has reports whether a server is on the roster.
func (p *peers) has(server string) bool {
	for _, s := range p.post.Others() {
		if s.Server == server {
			return true
		}
	}
	return false
}

// needOf says what a worker must take to run a node, or the work of the graph
// that belongs to no node. It reports false for what no worker runs.
func needOf(g *graph.Graph, n *graph.Node) (checkpoint.Served, bool) {
	need := checkpoint.Served{Graph: g.Name, Version: g.Version}
	if n == nil {
		return need, true
	}
	need.Node = n.Name
	return need, n.Kind == graph.KindRemote && (n.Spec == nil || n.Spec.Remote == nil || n.Spec.Remote.Endpoint == "")
}

// needsOf is what workers must take to run all of a graph.
func needsOf(g *graph.Graph) []checkpoint.Served {
	var needs []checkpoint.Served
	for _, n := range g.Nodes {
		if need, remote := needOf(g, n); remote {
			needs = append(needs, need)
		}
	}
	return needs
}

// elsewhere names the server on which a loop has the workers for what it is
// about to do, when it can do nothing of it here; "" = it can, or nobody can.
func (e *Engine) elsewhere(l *loop) string {
	if e.peers == nil || len(e.peers.post.Others()) == 0 || l.judge(l.state, l.tasks, nil, &l.pending) != nil {
		return ""
	}
	w := &work{loop: l}
	for _, t := range l.tasks {
		l.place(w, t)
	}
	needs := make([][]checkpoint.Served, 0, len(w.run))
	for _, t := range w.run {
		need, remote := needOf(l.graph(), t.Node)
		if !remote || e.peers.own.Takes(need) {
			return ""
		}
		needs = append(needs, []checkpoint.Served{need})
	}
	return e.peers.choose(l.session.thread, needs)
}

// wish leaves a thread to another server, which has the workers that its run
// needs. Should it not take the thread, anybody may after the time of a lease.
func (e *Engine) wish(t *tx, server string) {
	t.Lease = 0
	t.Head.Owner, t.Head.Wish, t.Head.WishUntil = "", server, t.now.Add(e.opts.Lease)
	t.Head.Moves++
	t.Head.Due = t.now.Add(e.opts.Sweep) // it is told, and looks by itself should it not hear that
}

// leftTo reports whether another server is expected to take a thread.
func (e *Engine) leftTo(head *checkpoint.Head) bool {
	return e.peers != nil && head.Wish != "" && head.Wish != e.id && head.WishUntil.After(head.Now) && e.peers.has(head.Wish)
}

// settleOn either takes the lease for a loop that is about to begin, or leaves
// the thread to the server that has its workers, whose name it returns. A loop
// that is over already ends with the same change.
func (e *Engine) settleOn(s *session, t *tx, l *loop) (to string, err error) {
	t.Head.Moves = 0
	if l.ended != nil {
		s.lease(t)
		return "", l.end(t, l.state, l.ended)
	}
	if to = e.elsewhere(l); to != "" {
		e.wish(t, to)
		return to, nil
	}
	s.lease(t)
	return "", nil
}

// begun drives the loop after its first change, unless the thread was left to
// another server or the loop has ended with it.
func (s *session) begun(head checkpoint.Head, l *loop, to string) {
	switch {
	case l.ended != nil:
		s.wasBrief(head, l)
		return
	case to == "":
		s.launch(head, l)
		return
	}
	s.log.Debug("run left to a server with workers", zap.String("server", to))
	s.release(nil)
}

// beckoned takes a thread that another server has left to this one, even if it
// has left this one so lately that it has not let go of it yet.
func (e *Engine) beckoned(thread string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.drained || e.peers == nil {
		return
	}
	old := e.sessions[thread]
	e.work.Go(contain.Func(func() {
		if old != nil && old.settled(e.base) != nil || e.session(thread) != nil {
			return
		}
		select {
		case e.peers.arrivals <- struct{}{}:
			defer func() { <-e.peers.arrivals }()
			e.tend(e.base, thread, &round{engine: e})
		case <-e.draining:
		}
	}, contain.Log(e.log, "taking a thread panicked")))
}

// point leaves a thread that is due to the server that has its workers.
func (e *Engine) point(ctx context.Context, head checkpoint.Head, to string) error {
	_, err := e.tryChange(ctx, head, func(t *tx) error {
		t.Head.Updated, t.Head.Lent = head.Updated, lentBy(&head)
		e.wish(t, to)
		return nil
	})
	return err
}

// calmly is how long a run stays after so many moves that brought it nothing:
// workers that come and go must not chase it around.
func calmly(moves int, lease time.Duration) time.Duration {
	const free = 3
	if moves < free {
		return 0
	}
	return min(100*time.Millisecond<<min(moves-free, 16), lease)
}
