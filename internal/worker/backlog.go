package worker

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxBacklogBytes bounds what waits for a worker that asks for answers and does not
// read them, in bytes. Tasks don't count: credit bounds them. Above
// maxAllBacklogBytes of all workers together, each has minBacklogBytes.
const (
	maxBacklogBytes    = 16 << 20
	maxAllBacklogBytes = 64 << 20
	minBacklogBytes    = 64 << 10
)

// messageSize is about how many bytes of memory a message takes that waits.
func messageSize(m Message) int {
	const message = 256
	switch m := m.(type) {
	case Assignment:
		return 0
	case HeartbeatAck:
		sum := message
		for _, token := range m.LostLeases {
			sum += len(token)
		}
		for _, token := range m.UndecidedLeases {
			sum += len(token)
		}
		return sum
	}
	return message
}

// backlog is what waits to be sent to a worker.
type backlog struct {
	bytes     int
	lastMoved time.Time // when a message left, or the first of those that wait came
}

func (b *backlog) addMessage(m Message, first bool) (bytes int) {
	bytes = messageSize(m)
	b.bytes += bytes
	if first {
		b.lastMoved = time.Now()
	}
	return bytes
}

func (b *backlog) removeMessage(m Message) (bytes int) {
	bytes = messageSize(m)
	b.bytes -= bytes
	b.lastMoved = time.Now()
	return bytes
}

// checkBacklog ends the session of a worker that sends and does not read: it would
// be given tasks, and never run them. It reports false if it did. mu is held.
func (s *Session) checkBacklog() bool {
	stuck := len(s.outgoing) > 0 && time.Since(s.backlog.lastMoved) > maxMissedHeartbeats*s.hub.opts.HeartbeatInterval
	most := maxBacklogBytes
	if s.hub.unreadBytes > maxAllBacklogBytes {
		most = minBacklogBytes
	}
	if !stuck && s.backlog.bytes <= most {
		return true
	}
	s.endSession(runtime.Errorf(runtime.ReasonWorkerSilent, "the worker does not read what it is sent: %d messages wait; connect again",
		len(s.outgoing)).With("workerId", s.hello.Worker))
	s.outgoing = slices.DeleteFunc(s.outgoing, func(m Message) bool { return offeredToken(m) == "" }) // what has not left is known when it closes
	return false
}
