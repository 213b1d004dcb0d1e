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

// sendSlots counts the webhooks that are called. The zero value has none.
type sendSlots struct {
	mu       sync.Mutex
	all      int
	byTenant map[string]int
	byHost   map[string]int
}

// takeSlot takes a slot, and reports whether there was one.
func (s *sendSlots) takeSlot(owner, host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxParallelSends || s.byTenant[owner] >= maxTenantSends || s.byHost[host] >= maxHostSends {
		return false
	}
	if s.byTenant == nil {
		s.byTenant, s.byHost = make(map[string]int), make(map[string]int)
	}
	s.all++
	s.byTenant[owner]++
	s.byHost[host]++
	return true
}

// freeSlot returns a slot that was taken.
func (s *sendSlots) freeSlot(owner, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	decrementCount(s.byTenant, owner)
	decrementCount(s.byHost, host)
}

func decrementCount(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// hostOf returns the host of a URL, whatever its port is.
func hostOf(text string) string {
	to, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(to.Hostname())
}
