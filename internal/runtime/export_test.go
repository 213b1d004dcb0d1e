package runtime

// Held counts what an engine holds for threads in memory.
func Held(e *Engine) (sessions, topics, drifting int) {
	e.mu.Lock()
	sessions, drifting = len(e.sessions), len(e.drifting)
	e.mu.Unlock()
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	return sessions, len(e.hub.topics), drifting
}

// Kept counts the events that an engine keeps in memory for a thread.
func Kept(e *Engine, thread string) int {
	t := e.hub.find(thread)
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events
}

// Tuned reports whether an engine is told of what others do to a thread.
func Tuned(e *Engine, thread string) bool {
	t := e.hub.find(thread)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard
}

// Told is the newest durable event that an engine was told of.
func Told(e *Engine, thread string) uint64 {
	t := e.hub.find(thread)
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
