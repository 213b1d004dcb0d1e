package holdings

// CountTallies returns how many counts a keeper remembers.
func CountTallies(k *Keeper) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.tallies)
}
