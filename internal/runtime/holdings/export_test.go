package holdings

// MaxTenants is the number of tenants whose queues are counted.
const MaxTenants = maxTenants

// CountTenants returns the number of tenants whose queues a keeper counts.
func CountTenants(k *Keeper) int {
	k.queues.mu.Lock()
	defer k.queues.mu.Unlock()
	return len(k.queues.byTenant)
}

// CountTallies returns how many counts a keeper remembers.
func CountTallies(k *Keeper) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.tallies)
}
