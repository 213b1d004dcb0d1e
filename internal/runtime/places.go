package runtime

import (
	"errors"
	"sync"
)

// A live run takes one of the places of the process, Options.MaxLive of them.
// What needs no driver passes without one. When all are taken, a run that would
// need one is refused before anything is stored; what is stored already, an
// answer or a run that was queued, waits in line.

// reserve takes a place for the run that a session is about to drive with a loop.
// The error is errNoRoom, and says how much the run would hold where that is why.
func (e *Engine) reserve(s *session, l *loop) error {
	l.hold(0)
	need := l.weigh()
	e.mu.Lock()
	defer e.mu.Unlock()
	called, was := e.called[s.thread]
	e.uncall(s.thread)
	switch {
	case e.drained || e.live >= e.opts.MaxLive:
		e.askForPlaces()
		return errNoRoom
	case need < e.bytes.share, was && need <= called.need:
	case !was && e.heavyLine.len() > 0, !e.bytes.fits(need): // others came first, or there is no room
		return &noRoomError{need: max(need, called.need)}
	}
	e.live++
	s.placed, s.since, s.promised = true, e.uptime(), was
	l.past = called.past
	l.hold(max(need, called.need))
	e.askForPlaces()
	return nil
}

// call takes threads out of the lines: heavy ones for which there is room, which
// is kept for them until they begin, and others as long as there are places.
func (e *Engine) call() (threads []string, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	places := e.opts.MaxLive - e.live
	if e.drained || places <= 0 {
		return nil, true
	}
	for len(threads) < min(places, sweepers) {
		x, ok := e.heavyLine.next(e.uptime(), e.bytes.fits)
		if !ok {
			break
		}
		e.called[x.thread] = x
		e.bytes.shift(0, x.need)
		threads = append(threads, x.thread)
	}
	return append(threads, e.inLine.next(places-len(threads))...), false
}

// uncall ends what call began for a thread. The caller holds mu.
func (e *Engine) uncall(thread string) {
	if x, ok := e.called[thread]; ok {
		delete(e.called, thread)
		e.bytes.shift(x.need, 0)
	}
}

// uncallAll does so for threads that have been attended to.
func (e *Engine) uncallAll(threads []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, thread := range threads {
		e.uncall(thread)
	}
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

// room reports whether one more run may go live here, if it holds little.
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

// awaitRoom puts a thread in line that can't be taken because of err. What was
// given back just before has found the line without the thread, so the sweeper looks again.
func (e *Engine) awaitRoom(thread string, err error) {
	if lack, ok := errors.AsType[*noRoomError](err); ok && lack.need > 0 {
		e.heavyLine.join(heavyThread{thread: thread, need: lack.need, since: e.uptime()})
	} else {
		e.inLine.join(thread)
	}
	if e.room() {
		e.nudge()
	}
}

// noRoom is what a caller is told whose run can't begin because of err.
func (e *Engine) noRoom(err error) *Error {
	if lack, ok := errors.AsType[*noRoomError](err); ok && lack.need > 0 {
		return Errorf(ReasonTooManyRuns, "the live runs of the server hold as much as they may (--max-live-bytes), and this one would hold %d bytes; "+
			"nothing was stored: try again, or another server", lack.need).Beyond("max-live-bytes", e.bytes.limit, 0)
	}
	return tooManyRuns(e.opts.MaxLive)
}

func tooManyRuns(limit int) *Error {
	return Errorf(ReasonTooManyRuns, "the server drives %d runs, as many as it may (--max-live-runs); nothing was stored: try again, or another server", limit).
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
