package outbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/worker/message"
)

// maxBacklogBytes bounds the messages that wait for a worker that asks for answers
// and does not read them, in bytes. Tasks don't count, because credit bounds them.
// Above maxAllBacklogBytes for all workers together, the bound of each worker is
// minBacklogBytes.
const (
	maxBacklogBytes    = 16 << 20
	maxAllBacklogBytes = 64 << 20
	minBacklogBytes    = 64 << 10
)

// messageSize estimates the bytes of memory of a waiting message.
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

// offeredToken returns the lease of the task that a message brings, "" without
// a task.
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

// Outbox holds the messages that wait to be sent to one worker. It calls no
// other package under its lock, so a stream that takes its next message does not
// wait for the hub.
type Outbox struct {
	allBytes *atomic.Int64 // bytes that wait for all workers
	added    chan struct{} // buffered for one signal
	ended    chan struct{}

	mu        sync.Mutex
	messages  []message.Message
	bytes     int
	lastMoved time.Time // when a message left, or the first of those that wait came
	endCause  error     // why it has ended
}

// NewOutbox makes an outbox. allBytes counts the waiting bytes of all workers.
func NewOutbox(allBytes *atomic.Int64) *Outbox {
	return &Outbox{allBytes: allBytes, added: make(chan struct{}, 1), ended: make(chan struct{})}
}

// EndSignal returns a channel that is closed when the outbox has ended.
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

// WaitForMessage waits for the next message. The error is the cause with which
// the outbox has ended, or that of ctx.
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

// PollMessage returns the next message if one waits, nil without one.
func (o *Outbox) PollMessage() message.Message {
	m, _ := o.popMessage() // who waits for the next one learns the error
	return m
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

// EndDelivery stops the delivery of messages with a cause. It keeps the messages that
// bring tasks, for ListTasks.
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

// CountUnread counts the waiting messages, and reports whether the worker reads
// too little: no message for longer than timeout, or less than it makes the server
// hold.
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

// RemoveTask removes a task that was not sent yet. It reports false when there is
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
