package outbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/worker/message"
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
func messageSize(m message.Message) int {
	const around = 256
	switch m := m.(type) {
	case message.Assignment:
		return 0
	case message.HeartbeatAck:
		sum := around
		for _, token := range m.LostLeases {
			sum += len(token)
		}
		for _, token := range m.UndecidedLeases {
			sum += len(token)
		}
		return sum
	}
	return around
}

// offeredToken is the lease of the task that a message brings, "" for none.
func offeredToken(m message.Message) string {
	switch m := m.(type) {
	case message.Assignment:
		return m.Token
	case message.CompletionReply:
		if m.Receipt.Next != nil {
			return m.Receipt.Next.Token
		}
	}
	return ""
}

// Outbox is what waits to be sent to one worker. It has a lock of its own, under
// which it calls nothing: a stream that takes its next message does not wait for
// the hub.
type Outbox struct {
	allBytes *atomic.Int64 // bytes that wait for all workers
	added    chan struct{} // takes one
	ended    chan struct{}

	mu        sync.Mutex
	messages  []message.Message
	bytes     int
	lastMoved time.Time // when a message left, or the first of those that wait came
	endCause  error     // why it has ended
}

// NewOutbox makes an outbox; allBytes counts what waits for all workers.
func NewOutbox(allBytes *atomic.Int64) *Outbox {
	return &Outbox{allBytes: allBytes, added: make(chan struct{}, 1), ended: make(chan struct{})}
}

// EndSignal is closed when the outbox has ended.
func (o *Outbox) EndSignal() <-chan struct{} { return o.ended }

// AddMessage queues a message, unless the outbox has ended.
func (o *Outbox) AddMessage(m message.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.endCause != nil {
		return
	}
	if len(o.messages) == 0 {
		o.lastMoved = time.Now()
	}
	o.addBytes(messageSize(m))
	o.messages = append(o.messages, m)
	select {
	case o.added <- struct{}{}:
	default:
	}
}

// WaitForMessage waits for the next message. The error says why the outbox has
// ended, or is ctx's.
func (o *Outbox) WaitForMessage(ctx context.Context) (message.Message, error) {
	for {
		m, err := o.popMessage()
		if m != nil || err != nil {
			return m, err
		}
		select {
		case <-o.added:
		case <-o.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (o *Outbox) popMessage() (message.Message, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.endCause != nil {
		return nil, o.endCause
	}
	if len(o.messages) == 0 {
		return nil, nil
	}
	m := o.messages[0]
	o.messages = o.messages[1:]
	o.addBytes(-messageSize(m))
	o.lastMoved = time.Now()
	return m, nil
}

// addBytes adds to the bytes that wait. mu is held.
func (o *Outbox) addBytes(n int) {
	o.bytes += n
	o.allBytes.Add(int64(n))
}

// EndDelivery sends nothing any more, for a reason. Of the messages those are kept
// that bring tasks: listTasks says what has not left.
func (o *Outbox) EndDelivery(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.endCause != nil {
		return
	}
	o.endCause = cause
	o.messages = slices.DeleteFunc(o.messages, func(m message.Message) bool { return offeredToken(m) == "" })
	o.addBytes(-o.bytes)
	close(o.ended)
}

// CountUnread counts the messages that wait, and reports whether the worker reads
// too little: none for longer than timeout, or less than it makes the server hold.
func (o *Outbox) CountUnread(timeout time.Duration) (count int, tooMuch bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	most := maxBacklogBytes
	if o.allBytes.Load() > maxAllBacklogBytes {
		most = minBacklogBytes
	}
	isStuck := len(o.messages) > 0 && time.Since(o.lastMoved) > timeout
	return len(o.messages), isStuck || o.bytes > most
}

// ListTasks lists the leases of the tasks that have not left yet.
func (o *Outbox) ListTasks() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var tokens []string
	for _, m := range o.messages {
		if token := offeredToken(m); token != "" {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// HasTask reports whether a task has not left yet.
func (o *Outbox) HasTask(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.indexOfTask(token) >= 0
}

// RemoveTask takes back a task that has not left yet. It reports false when there is
// none.
func (o *Outbox) RemoveTask(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.indexOfTask(token)
	if at < 0 {
		return false
	}
	if r, ok := o.messages[at].(message.CompletionReply); ok {
		r.Receipt.Next = nil
		o.messages[at] = r
		return true
	}
	o.messages = slices.Delete(slices.Clone(o.messages), at, at+1)
	return true
}

// indexOfTask finds the message that brings a task. mu is held.
func (o *Outbox) indexOfTask(token string) int {
	return slices.IndexFunc(o.messages, func(m message.Message) bool { return offeredToken(m) == token })
}
