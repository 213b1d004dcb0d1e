package worker

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxUnread bounds what waits for a worker that asks for answers and does not
// read them, in bytes. Tasks don't count: credit bounds them. Where workers leave
// more unread together than maxAllUnread, each has fewUnread.
const (
	maxUnread    = 16 << 20
	maxAllUnread = 64 << 20
	fewUnread    = 64 << 10
)

// weight is about how many bytes of memory a message takes that waits.
func weight(m Message) int {
	const message = 256
	switch m := m.(type) {
	case Assignment:
		return 0
	case Ack:
		sum := message
		for _, token := range m.Lost {
			sum += len(token)
		}
		for _, token := range m.Undecided {
			sum += len(token)
		}
		return sum
	}
	return message
}

// backlog is what waits to be sent to a worker.
type backlog struct {
	bytes int
	moved time.Time // when a message left, or the first of those that wait came
}

func (b *backlog) add(m Message, first bool) (bytes int) {
	bytes = weight(m)
	b.bytes += bytes
	if first {
		b.moved = time.Now()
	}
	return bytes
}

func (b *backlog) remove(m Message) (bytes int) {
	bytes = weight(m)
	b.bytes -= bytes
	b.moved = time.Now()
	return bytes
}

// checkRead ends the session of a worker that talks and does not listen: it
// would be given tasks, and never run them. It reports false if it did. mu is
// held.
func (s *Session) checkRead() bool {
	stuck := len(s.out) > 0 && time.Since(s.backlog.moved) > silentBeats*s.hub.opts.Beat
	most := maxUnread
	if s.hub.unread > maxAllUnread {
		most = fewUnread
	}
	if !stuck && s.backlog.bytes <= most {
		return true
	}
	s.finish(runtime.Errorf(runtime.ReasonWorkerSilent, "the worker does not read what it is sent: %d messages wait; connect again",
		len(s.out)).With("workerId", s.hello.Worker))
	s.out = slices.DeleteFunc(s.out, func(m Message) bool { return offerOf(m) == "" }) // what has not left is known when it closes
	return false
}
