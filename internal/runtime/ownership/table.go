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

// Table has the sessions of a process by thread, and what else it may still hold the
// lease of. Its lock is taken before those of a capacity.Limiter and of
// placement.UnservedRuns, and during nothing that waits.
type Table struct {
	mu          sync.Mutex
	sessions    map[string]*session
	maybeLeased map[string]struct{} // threads whose lease may be ours without a session
	draining    chan struct{}       // closed when there is no further session
	goroutines  sync.WaitGroup      // one for each session, and for what else works on threads
}

// NewTable makes a table without sessions.
func NewTable() *Table {
	return &Table{sessions: make(map[string]*session), maybeLeased: make(map[string]struct{}), draining: make(chan struct{})}
}

// findSession returns the live run of a thread in this process, or nil.
func (b *Table) findSession(thread string) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[thread]
}

// IsLive reports whether a run of the thread is live here.
func (b *Table) IsLive(thread string) bool { return b.findSession(thread) != nil }

// CountThreads counts the threads that are held here, and those whose lease may be this
// server's without a session.
func (b *Table) CountThreads() (held, maybeLeased int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions), len(b.maybeLeased)
}

// Draining is closed when no further thread is taken.
func (b *Table) Draining() <-chan struct{} { return b.draining }

// IsDraining reports whether no further thread is taken.
func (b *Table) IsDraining() bool {
	select {
	case <-b.draining:
		return true
	default:
		return false
	}
}

// registerSession registers the hold on a thread, or returns ErrThreadHeld or ErrDraining.
func (b *Table) registerSession(s *session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.sessions[s.thread.id] != nil:
		return ErrThreadHeld
	case b.IsDraining():
		return ErrDraining
	}
	b.sessions[s.thread.id] = s
	b.goroutines.Add(1)
	return nil
}

// unregisterSession ends the hold on a thread. The thread is free, and queued where it
// waits for something, at once. It reports whether others wait for what is released.
func (b *Table) unregisterSession(s *session) (awaited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[s.thread.id] != s {
		return false
	}
	delete(b.sessions, s.thread.id)
	b.goroutines.Done()
	return s.releaseCapacity()
}

// runForThread runs a function in the background, with the session that the thread has
// now, unless the process takes up nothing any more.
func (b *Table) runForThread(thread string, f func(now *session), panicked func(*contain.PanicError)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.IsDraining() {
		return
	}
	now := b.sessions[thread]
	b.goroutines.Go(contain.Func(func() { f(now) }, panicked))
}

// close refuses further sessions. It reports whether it is the first call.
func (b *Table) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.IsDraining() {
		return false
	}
	close(b.draining)
	return true
}

// MarkMaybeLeased records an abandoned thread. If this server still holds the
// lease, the next scan resumes it without waiting for expiry.
func (b *Table) MarkMaybeLeased(thread string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maybeLeased[thread] = struct{}{}
}

// ListMaybeLeased returns the abandoned threads that were not processed since.
func (b *Table) ListMaybeLeased() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.maybeLeased))
}

// ClearMaybeLeased forgets an abandoned thread that is processed now.
func (b *Table) ClearMaybeLeased(thread string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.maybeLeased, thread)
}
