package runtime

import "fmt"

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

// LiveBytes is what the live runs of an engine hold, and how many wait for room.
func LiveBytes(e *Engine) (held int64, waiting int) { return e.bytes.held.Load(), e.heavyLine.len() }

// Loads is what calls hold of large states.
func Loads(e *Engine) int64 {
	e.loads.mu.Lock()
	defer e.loads.mu.Unlock()
	return e.loads.held
}

// Leaked says what an engine without sessions still counts as held, "" = nothing.
func Leaked(e *Engine) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := &e.bytes
	if n := Loads(e); len(e.sessions) == 0 && n != 0 {
		return fmt.Sprintf("calls hold %d", n)
	}
	if len(e.sessions) > 0 || b.held.Load() == 0 && b.heavy.Load() == 0 && b.leaving.Load() == 0 && e.dismissed == 0 && len(e.called) == 0 && e.giving == 0 && len(e.idle) == 0 {
		return ""
	}
	return fmt.Sprintf("held %d, heavy %d, leaving %d, dismissed %d, called %v", b.held.Load(), b.heavy.Load(), b.leaving.Load(), e.dismissed, e.called)
}

// Nobody observes nothing.
var Nobody Observer = nobody{}
