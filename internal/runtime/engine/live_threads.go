package engine

import (
	"maps"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/contain"
)

// liveThreads are the sessions of a process by thread, and what else it may still
// hold the lease of. Its lock is taken before those of a capacity.Limiter and of
// placement.UnservedRuns, and during nothing that waits.
type liveThreads struct {
	mu          sync.Mutex
	sessions    map[string]*session
	maybeLeased map[string]struct{} // threads whose lease may be ours without a session
	isClosed    bool
	goroutines  sync.WaitGroup // one for each session, and for what else works on threads
}

// findSession returns the live run of a thread in this process, or nil.
func (l *liveThreads) findSession(thread string) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions[thread]
}

// IsLive reports whether a run of the thread is live here.
func (l *liveThreads) IsLive(thread string) bool { return l.findSession(thread) != nil }

// registerSession registers the hold on a thread, or returns errThreadHeld or errDraining.
func (l *liveThreads) registerSession(s *session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.sessions[s.thread] != nil:
		return errThreadHeld
	case l.isClosed:
		return errDraining
	}
	l.sessions[s.thread] = s
	l.goroutines.Add(1)
	return nil
}

// unregisterSession ends the hold on a thread. The thread is free, and queued where it
// waits for something, at once. It reports whether others wait for what is released.
func (l *liveThreads) unregisterSession(s *session) (awaited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions[s.thread] != s {
		return false
	}
	delete(l.sessions, s.thread)
	l.goroutines.Done()
	return s.releaseCapacity()
}

// runForThread runs a function in the background, with the session that the thread has
// now, unless the process takes up nothing any more.
func (l *liveThreads) runForThread(thread string, f func(now *session), panicked func(*contain.PanicError)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return
	}
	now := l.sessions[thread]
	l.goroutines.Go(contain.Func(func() { f(now) }, panicked))
}

// close refuses further sessions. It reports whether it is the first call.
func (l *liveThreads) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.isClosed
	l.isClosed = true
	return !was
}

// MarkMaybeLeased records an abandoned thread. If this server still holds the
// lease, the next scan resumes it without waiting for expiry.
func (l *liveThreads) MarkMaybeLeased(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybeLeased[thread] = struct{}{}
}

// ListMaybeLeased returns the abandoned threads that were not processed since.
func (l *liveThreads) ListMaybeLeased() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.maybeLeased))
}

// ClearMaybeLeased forgets an abandoned thread that is processed now.
func (l *liveThreads) ClearMaybeLeased(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.maybeLeased, thread)
}
