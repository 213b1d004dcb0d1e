package outbox

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/worker/message"
)

// WaitingCall is a call of a worker that has delivered a result and takes another
// task with the answer. That saves the task the way over the stream.
type WaitingCall struct {
	CompletedLease string // of the lease whose result it brought
	Thread         string
	NextTask       chan message.Assignment // buffered for one task; nil for a result from the stream
	Deadline       time.Time               // ends the waiting of such a result
}

// NextTaskWait is the time for which a call waits for another task, about the
// time in which a superstep is stored. The wait delays no other work, because
// tasks for the worker go to its waiting calls.
const NextTaskWait = 20 * time.Millisecond

// WaitingCalls are the waiting calls of one worker, the latest last. The lock of
// the hub guards them.
type WaitingCalls struct{ calls []*WaitingCall }

// AddCall adds a call.
func (w *WaitingCalls) AddCall(c *WaitingCall) { w.calls = append(w.calls, c) }

// RemoveCall removes a call. It reports false when the call got a task.
func (w *WaitingCalls) RemoveCall(c *WaitingCall) bool {
	at := slices.Index(w.calls, c)
	if at < 0 {
		return false
	}
	w.calls = slices.Delete(w.calls, at, at+1)
	return true
}

// TakeLatest removes the latest call and returns it, nil without a call.
func (w *WaitingCalls) TakeLatest() *WaitingCall {
	last := len(w.calls) - 1
	if last < 0 {
		return nil
	}
	c := w.calls[last]
	w.calls[last] = nil
	w.calls = w.calls[:last]
	return c
}

// TakeOverdue removes the results from the stream that have waited until now. next is when
// the next one has, zero when none waits.
func (w *WaitingCalls) TakeOverdue(now time.Time) (overdue []*WaitingCall, next time.Time) {
	w.calls = slices.DeleteFunc(w.calls, func(c *WaitingCall) bool {
		switch {
		case c.NextTask != nil:
			return false
		case !c.Deadline.After(now):
			overdue = append(overdue, c)
			return true
		case next.IsZero() || c.Deadline.Before(next):
			next = c.Deadline
		}
		return false
	})
	return overdue, next
}

// AwaitTaskOf reports whether a call that has just ended a task of the thread
// waits for another.
func (w *WaitingCalls) AwaitTaskOf(thread string) bool {
	return slices.ContainsFunc(w.calls, func(c *WaitingCall) bool { return c.Thread == thread })
}
