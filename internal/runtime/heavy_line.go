package runtime

import (
	"sync"
	"sync/atomic"
	"time"
)

// heavyLine is the order in which heavy runs that wait for room get it.
type heavyLine struct {
	waiting atomic.Int64 // how many wait

	mu     sync.Mutex
	first  []heavyThread // some may have left
	within map[string]struct{}
}

// heavyThread is a thread whose run waits for room.
type heavyThread struct {
	thread string
	need   int64         // bytes
	past   tidied        // what its loop knew of the past, if it was live here
	since  time.Duration // Engine.uptime
}

// join puts a thread at the end.
func (l *heavyLine) join(x heavyThread) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, in := l.within[x.thread]; in || len(l.first) >= maxLine {
		return
	}
	if l.within == nil {
		l.within = make(map[string]struct{})
	}
	l.within[x.thread] = struct{}{}
	l.first = append(l.first, x)
	l.waiting.Store(int64(len(l.within)))
}

// has reports whether a thread is in line.
func (l *heavyLine) has(thread string) bool {
	if l.waiting.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, in := l.within[thread]
	return in
}

// leave takes a thread out.
func (l *heavyLine) leave(thread string) {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(thread)
}

// forget notes that a thread is no longer in line. The caller holds mu.
func (l *heavyLine) forget(thread string) {
	delete(l.within, thread)
	if len(l.within) == 0 {
		l.first = nil
	}
	l.waiting.Store(int64(len(l.within)))
}

func (l *heavyLine) len() int { return int(l.waiting.Load()) }

// lookAhead bounds how far behind one that does not fit others are looked at.
const lookAhead = 64

// next takes the first thread out for which there is room. One for which there is
// none keeps those behind it from passing for two turns, in which runs make room that come
// to the end of a superstep, and lets them pass for two: those that are left may stand still for long.
func (l *heavyLine) next(now time.Duration, fits func(need int64) bool) (heavyThread, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < min(len(l.first), lookAhead); i++ {
		x := l.first[i]
		_, in := l.within[x.thread]
		switch {
		case !in || fits(x.need):
			copy(l.first[1:i+1], l.first[:i])
			l.first[0] = heavyThread{}
			l.first = l.first[1:]
			if in {
				l.forget(x.thread)
				return x, true
			}
			i--
		case (now-x.since)/(2*turn)%2 == 0:
			return heavyThread{}, false
		}
	}
	return heavyThread{}, false
}
