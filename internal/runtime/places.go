package runtime

import "sync"

// A live run takes one of the places of the process, Options.MaxLive of them.
// What needs no driver passes without one. When all are taken, a run that would
// need one is refused before anything is stored; what is stored already, an
// answer or a run that was queued, waits in line.

// reserve takes a place for the run that a session is about to drive. It
// reports false when there is none.
func (e *Engine) reserve(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.drained || e.live >= e.opts.MaxLive {
		return false
	}
	e.live++
	s.placed = true
	return true
}

// vacate gives the place of a session back. The caller holds mu. It reports
// whether that was the last one, for which others may wait.
func (e *Engine) vacate(s *session) (wasFull bool) {
	if !s.placed {
		return false
	}
	s.placed = false
	e.live--
	return e.live+1 >= e.opts.MaxLive
}

// room reports whether one more run may go live here.
func (e *Engine) room() bool { return e.places() > 0 }

// places is how many more runs may go live here.
func (e *Engine) places() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.drained {
		return 0
	}
	return max(0, e.opts.MaxLive-e.live)
}

// awaitPlace puts a thread in line. A place that was given back just before has
// found the line without the thread, so the sweeper looks again.
func (e *Engine) awaitPlace(thread string) {
	e.inLine.join(thread)
	if e.room() {
		e.nudge()
	}
}

func tooManyRuns(limit int) *Error {
	return Errorf(ReasonTooManyRuns, "the server drives %d runs, as many as it may; nothing was stored: try again, or another server", limit).
		Beyond("max-live-runs", int64(limit), 0)
}

// waitingLine is the order in which threads that need a place get one. It saves the
// sweeper from looking at each of them again and again.
type waitingLine struct {
	mu     sync.Mutex
	first  []string            // some may have left
	within map[string]struct{} // those that have not
}

// maxLine bounds how many threads a process keeps in line. The store knows them
// all: those beyond are found when there is room.
const maxLine = 1 << 16

// join puts a thread at the end.
func (l *waitingLine) join(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, in := l.within[thread]; in || len(l.first) >= maxLine {
		return
	}
	if l.within == nil {
		l.within = make(map[string]struct{})
	}
	l.within[thread] = struct{}{}
	l.first = append(l.first, thread)
}

// has reports whether a thread is in line.
func (l *waitingLine) has(thread string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, in := l.within[thread]
	return in
}

// leave takes a thread out.
func (l *waitingLine) leave(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.within, thread)
	if len(l.within) == 0 {
		l.first = nil
	}
}

// next takes the first n threads out.
func (l *waitingLine) next(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for len(out) < n && len(l.within) > 0 {
		thread := l.first[0]
		l.first = l.first[1:]
		if _, in := l.within[thread]; in {
			delete(l.within, thread)
			out = append(out, thread)
		}
	}
	if len(l.within) == 0 {
		l.first = nil
	}
	return out
}

func (l *waitingLine) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.within)
}
