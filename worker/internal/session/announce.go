package session

import (
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
)

// announceAfter is how long a task runs before the server is told that it has begun: most have ended
// by then.
const announceAfter = 100 * time.Millisecond

// announcements say of tasks that do not end at once that they run: such a task stays here when the
// stream breaks. One timer serves all tasks, because one for each costs more than most tasks do.
type announcements struct {
	timer     *time.Timer // nil before the first task
	isPending bool        // the timer runs
}

// scheduleAnnouncement has tasks announced after a time, or before. The caller holds the lock.
func (s *Session) scheduleAnnouncement(after time.Duration) {
	n := &s.announcements
	switch {
	case n.isPending:
		return
	case n.timer == nil:
		n.timer = time.AfterFunc(after, contain.Func(s.announceLongTasks, contain.LogPanic(s.log, "tasks could not be announced")))
	default:
		n.timer.Reset(after)
	}
	n.isPending = true
}

// announceLongTasks announces the tasks that run for long enough.
func (s *Session) announceLongTasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announcements.isPending = false
	next := time.Duration(-1)
	isWoken := false
	for _, a := range s.attempts {
		if a.isAnnounced || a.hasReturned {
			continue
		}
		if left := announceAfter - time.Since(a.begun); left > 0 {
			if next < 0 || left < next {
				next = left
			}
			continue
		}
		a.needsAnnounce, isWoken = true, true
	}
	if isWoken {
		s.wakeSender()
	}
	if next >= 0 {
		s.scheduleAnnouncement(next)
	}
}
