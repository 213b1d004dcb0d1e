package webhooks

import "sync"

// arrivals counts the webhooks of each tenant that this server is about to keep: a count of the
// store does not have them yet.
type arrivals struct {
	mu       sync.Mutex
	byTenant map[string]int
}

// addWebhook counts a webhook until leave is called, and returns how many there are with it.
func (a *arrivals) addWebhook(tenant string) (count int, leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byTenant == nil {
		a.byTenant = make(map[string]int)
	}
	a.byTenant[tenant]++
	return a.byTenant[tenant], func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.byTenant[tenant]--; a.byTenant[tenant] == 0 {
			delete(a.byTenant, tenant)
		}
	}
}
