package ownership

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/contain"
)

// Why a thread can't be taken here.
var (
	ErrDraining   = errors.New("the server drains, and takes up nothing")
	ErrThreadHeld = errors.New("a run of the thread is live here, or about to begin")
)

// Table has the sessions of a process by thread, and the threads whose lease it may
// still hold. Its lock is taken before those of a capacity.Limiter and of
// placement.UnservedRuns, and during nothing that waits.
type Table struct {
	mu          sync.Mutex
	sessions    map[string]*session
	maybeLeased map[string]struct{} // threads whose lease may be ours without a session
	draining    chan struct{}       // closed when there is no further session
	goroutines  sync.WaitGroup      // one for each session, and for other work on threads
}

// NewTable makes a table without sessions.
func NewTable() *Table {
	return &Table{sessions: make(map[string]*session), maybeLeased: make(map[string]struct{}), draining: make(chan struct{})}
}

// findSession returns the live run of a thread in this process, or nil.
func (t *Table) findSession(thread string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessions[thread]
}

// IsLive reports whether a run of the thread is live here.
func (t *Table) IsLive(thread string) bool { return t.findSession(thread) != nil }

// CountThreads counts the threads that are held here, and those whose lease may be this
// server's without a session.
func (t *Table) CountThreads() (held, maybeLeased int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions), len(t.maybeLeased)
}

// Draining returns a channel that is closed when no further thread is taken.
func (t *Table) Draining() <-chan struct{} { return t.draining }

// IsDraining reports whether no further thread is taken.
func (t *Table) IsDraining() bool {
	select {
	case <-t.draining:
		return true
	default:
		return false
	}
}

// registerSession registers the hold on a thread, or returns ErrThreadHeld or ErrDraining.
func (t *Table) registerSession(s *session) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.sessions[s.thread.id] != nil:
		return ErrThreadHeld
	case t.IsDraining():
		return ErrDraining
	}
	t.sessions[s.thread.id] = s
	t.goroutines.Add(1)
	return nil
}

// unregisterSession ends the hold on a thread. The thread is free, and queued where it
// waits for something, at once. It reports whether other threads wait for the released
// capacity.
func (t *Table) unregisterSession(s *session) (awaited bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[s.thread.id] != s {
		return false
	}
	delete(t.sessions, s.thread.id)
	t.goroutines.Done()
	return s.releaseCapacity()
}

// runForThread runs a function in the background, with the session that the thread has
// now, unless the process takes up nothing any more.
func (t *Table) runForThread(thread string, f func(now *session), panicked func(*contain.PanicError)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.IsDraining() {
		return
	}
	now := t.sessions[thread]
	t.goroutines.Go(contain.Func(func() { f(now) }, panicked))
}

// close refuses further sessions. It reports whether it is the first call.
func (t *Table) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.IsDraining() {
		return false
	}
	close(t.draining)
	return true
}

// MarkMaybeLeased records an abandoned thread. If this server still holds the
// lease, the next scan resumes it without waiting for expiry.
func (t *Table) MarkMaybeLeased(thread string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.maybeLeased[thread] = struct{}{}
}

// ListMaybeLeased returns the abandoned threads that were not processed since.
func (t *Table) ListMaybeLeased() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.maybeLeased))
}

// ClearMaybeLeased forgets an abandoned thread that is processed now.
func (t *Table) ClearMaybeLeased(thread string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.maybeLeased, thread)
}
