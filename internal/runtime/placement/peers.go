// Package placement finds the servers with the workers that a run needs: this
// server, or others that share the store.
package placement

import (
	"hash/fnv"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Peers finds workers, at this server or at others.
type Peers struct {
	workers      runtime.Workers
	registration checkpoint.Registration
	unserved     *UnservedRuns

	mu      sync.Mutex
	holders map[string]string // by lease
	awaited map[string]struct{}
}

// New makes the Peers of a server that shares its store with no other server.
func New(workers runtime.Workers, unserved *UnservedRuns) *Peers {
	return &Peers{workers: workers, registration: soloRegistration{}, unserved: unserved}
}

// Register makes the server a member of those that share a store.
func (p *Peers) Register(members checkpoint.Membership, server string) {
	p.mu.Lock() // updateMembers waits until the registration is set
	defer p.mu.Unlock()
	p.registration = members.Register(server, p.updateMembers)
}

// Unregister ends the membership.
func (p *Peers) Unregister() { p.registration.Close() }

// OtherMembers lists the other servers.
func (p *Peers) OtherMembers() []checkpoint.Member { return p.registration.OtherMembers() }

// CoversHere reports whether a worker of this server has a capability.
func (p *Peers) CoversHere(need checkpoint.Capability) bool { return p.workers.Covers(need) }

// soloRegistration is the registration of a server that shares its store with no
// other server.
type soloRegistration struct{}

// SetCapabilities does nothing.
func (soloRegistration) SetCapabilities([]checkpoint.Capability) {}

// SetClaims does nothing.
func (soloRegistration) SetClaims(checkpoint.Claims) {}

// OtherMembers returns nil.
func (soloRegistration) OtherMembers() []checkpoint.Member { return nil }

// Close does nothing.
func (soloRegistration) Close() {}

// SetCapabilities reports the capabilities of this server's workers to the other
// servers, and to the runs that wait here.
func (p *Peers) SetCapabilities(served []checkpoint.Capability) {
	p.registration.SetCapabilities(served)
	p.unserved.RequestCheck()
}

// UnservedTasks returns the number of tasks that wait for workers without a live run
// here.
func (p *Peers) UnservedTasks() int { return p.unserved.CountTasks() }

// Cover reports whether another server has workers for all the needs.
func (p *Peers) Cover(needs ...checkpoint.Capability) bool {
	return slices.ContainsFunc(p.registration.OtherMembers(), func(s checkpoint.Member) bool { return coversAll(&s, needs) })
}

// updateMembers updates the records of the other servers.
func (p *Peers) updateMembers() {
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
	p.unserved.RequestCheck()
}

// SetClaims announces the claims of this server to the other servers.
func (p *Peers) SetClaims(claims checkpoint.Claims) { p.registration.SetClaims(claims) }

// FindHolder names the server to which the worker of a lease is attached.
func (p *Peers) FindHolder(lease string, needs ...checkpoint.Capability) string {
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
func (p *Peers) IsAwaited(lease string) bool {
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

// ChooseServer returns the server with workers for most of the tasks, "" =
// none. Among equals a hash spreads the threads.
func (p *Peers) ChooseServer(thread string, remoteTasks [][]checkpoint.Capability) string {
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

// IsMember reports whether a server is registered.
func (p *Peers) IsMember(server string) bool {
	for _, s := range p.registration.OtherMembers() {
		if s.Server == server {
			return true
		}
	}
	return false
}

// CapabilityFor returns the capability that a worker needs to run a node, or to do
// the graph's own work. It returns false for a node that no worker runs.
func CapabilityFor(g *graph.Graph, n *graph.Node) (checkpoint.Capability, bool) {
	need := checkpoint.Capability{Graph: g.Name, Version: g.Version}
	if n == nil {
		return need, true
	}
	need.Node = n.Name
	return need, n.RunsInWorker()
}

// CapabilitiesOfGraph returns the capabilities that workers need to run all of
// a graph.
func CapabilitiesOfGraph(g *graph.Graph) []checkpoint.Capability {
	var needs []checkpoint.Capability
	for _, n := range g.Nodes {
		if need, remote := CapabilityFor(g, n); remote {
			needs = append(needs, need)
		}
	}
	return needs
}
