package session

import (
	"sync"
	"time"
)

// maxEnded bounds the sessions whose end is remembered. Beyond it the first ones are
// forgotten: their cookies were removed from the browsers when they ended.
const maxEnded = 100_000

// endedSessions remembers sessions that have ended before their time, as long as one of them
// could still be valid.
type endedSessions struct {
	mu      sync.Mutex
	byID    map[string]time.Time
	order   []endedSession
	changed chan struct{}
}

type endedSession struct {
	id string
	at time.Time
}

func newEndedSessions() *endedSessions {
	return &endedSessions{byID: make(map[string]time.Time), changed: make(chan struct{})}
}

// add ends all sessions of an id that were begun until now.
func (e *endedSessions) add(id string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.order) > 0 && (len(e.order) >= maxEnded || now.Sub(e.order[0].at) > MaxAge) {
		first := e.order[0]
		e.order = e.order[1:]
		if e.byID[first.id].Equal(first.at) { // it has not ended once more
			delete(e.byID, first.id)
		}
	}
	e.byID[id] = now
	e.order = append(e.order, endedSession{id, now})
	close(e.changed)
	e.changed = make(chan struct{})
}

// has reports whether a session of an id that was begun at a time has ended.
func (e *endedSessions) has(id string, begun time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.byID[id]
	return ok && !begun.After(at)
}

// changes returns a channel that is closed when the next session ends.
func (e *endedSessions) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}
