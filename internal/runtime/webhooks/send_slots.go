package webhooks

import (
	"net/url"
	"strings"
	"sync"
)

// Bounds of how many webhooks a server calls at the same time. A host that hangs, or a tenant with
// many of them, does not keep the others waiting.
const (
	maxParallelSends = 32
	maxTenantSends   = 24
	maxHostSends     = 8
)

// target is what a webhook calls. What hangs is often one path of a host.
type target struct {
	host string // whatever its port is
	path string
}

// sendSlots counts the webhooks that are called. The zero value has none.
type sendSlots struct {
	mu       sync.Mutex
	all      int
	byTenant map[string]int
	byHost   map[string]int
	byTarget map[target]int
}

// takeSlot takes a slot, and reports whether there was one. A path takes a further slot of its host
// only while more slots are free than it has: one that hangs has half of them, a second one half of
// the rest, and so on, so a path that answers finds one.
func (s *sendSlots) takeSlot(owner string, to target) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxParallelSends || s.byTenant[owner] >= maxTenantSends || s.byTarget[to] >= maxHostSends-s.byHost[to.host] {
		return false
	}
	if s.byTenant == nil {
		s.byTenant, s.byHost, s.byTarget = make(map[string]int), make(map[string]int), make(map[target]int)
	}
	s.all++
	s.byTenant[owner]++
	s.byHost[to.host]++
	s.byTarget[to]++
	return true
}

// freeSlot returns a slot that was taken.
func (s *sendSlots) freeSlot(owner string, to target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	decrementCount(s.byTenant, owner)
	decrementCount(s.byHost, to.host)
	decrementCount(s.byTarget, to)
}

func decrementCount[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// targetOf returns what a URL leads to.
func targetOf(text string) target {
	to, err := url.Parse(text)
	if err != nil {
		return target{}
	}
	return target{host: strings.ToLower(to.Hostname()), path: to.EscapedPath()}
}
