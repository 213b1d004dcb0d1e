package worker

import (
	"slices"
	"time"
)

// waitingCall is a call of a worker that has delivered a result and takes another
// task with the answer. That saves the task the way over the stream.
type waitingCall struct {
	completedLease string // of the lease whose result it brought
	thread         string
	nextTask       chan Assignment // takes one; nil for a result that came on the stream
	timer          *time.Timer     // ends the waiting of such a result
}

// nextTaskWait is how long a call waits for another task: about as long as a
// superstep takes to be stored. It keeps nothing from being done, because what
// the worker is given meanwhile goes to the calls that wait.
const nextTaskWait = 20 * time.Millisecond

// waitingCalls are those of one worker, the latest last. They are guarded by the
// dispatcher's mu.
type waitingCalls struct{ calls []*waitingCall }

func (w *waitingCalls) addCall(c *waitingCall) { w.calls = append(w.calls, c) }

// removeCall removes a call. It reports false when the call got a task.
func (w *waitingCalls) removeCall(c *waitingCall) bool {
	at := slices.Index(w.calls, c)
	if at < 0 {
		return false
	}
	w.calls = slices.Delete(w.calls, at, at+1)
	return true
}

// takeLatest removes the call that came last, nil when none waits.
func (w *waitingCalls) takeLatest() *waitingCall {
	last := len(w.calls) - 1
	if last < 0 {
		return nil
	}
	c := w.calls[last]
	w.calls[last] = nil
	w.calls = w.calls[:last]
	return c
}

// awaitTaskOf reports whether a call that has just ended a task of the thread
// waits for another.
func (w *waitingCalls) awaitTaskOf(thread string) bool {
	return slices.ContainsFunc(w.calls, func(c *waitingCall) bool { return c.thread == thread })
}
