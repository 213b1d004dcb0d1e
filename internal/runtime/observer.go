package runtime

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
)

// containedObserver is an observer whose panics end with the call. The first one is
// logged: there may be one per event.
type containedObserver struct {
	inner    Observer
	log      *zap.Logger
	isLogged atomic.Bool
}

// ContainObserver returns an observer whose panics are contained.
func ContainObserver(to Observer, log *zap.Logger) Observer {
	if _, none := to.(NopObserver); none {
		return to
	}
	return &containedObserver{inner: to, log: log}
}

// recoverPanic is deferred by every method.
func (c *containedObserver) recoverPanic() {
	if v := recover(); v != nil && c.isLogged.CompareAndSwap(false, true) {
		c.log.Error("the observer panicked; the metrics are incomplete from now on", contain.NewPanicError(v).Fields()...)
	}
}

// RunStarted passes on that a run was admitted.
func (c *containedObserver) RunStarted(name string) {
	defer c.recoverPanic()
	c.inner.RunStarted(name)
}

// RunDriven passes on that a run was taken up.
func (c *containedObserver) RunDriven(name string) {
	defer c.recoverPanic()
	c.inner.RunDriven(name)
}

// RunEnded passes on that a run has stopped here.
func (c *containedObserver) RunEnded(name, state string, took time.Duration) {
	defer c.recoverPanic()
	c.inner.RunEnded(name, state, took)
}

// NodeEnded passes on that an attempt has ended.
func (c *containedObserver) NodeEnded(name, node, outcome string, took time.Duration) {
	defer c.recoverPanic()
	c.inner.NodeEnded(name, node, outcome, took)
}

// CommitEnded passes on that a commit has ended.
func (c *containedObserver) CommitEnded(took time.Duration, err error) {
	defer c.recoverPanic()
	c.inner.CommitEnded(took, err)
}

// InterruptRaised passes on that an interrupt was asked.
func (c *containedObserver) InterruptRaised(name, reason string) {
	defer c.recoverPanic()
	c.inner.InterruptRaised(name, reason)
}

// InterruptResolved passes on that an interrupt was answered.
func (c *containedObserver) InterruptResolved(name, state string) {
	defer c.recoverPanic()
	c.inner.InterruptResolved(name, state)
}

// ThreadsPoisoned passes on how many threads are quarantined.
func (c *containedObserver) ThreadsPoisoned(n int) {
	defer c.recoverPanic()
	c.inner.ThreadsPoisoned(n)
}

// LiveBytes passes on how much live runs hold.
func (c *containedObserver) LiveBytes(n int64) {
	defer c.recoverPanic()
	c.inner.LiveBytes(n)
}

// RunEvicted passes on that a run waits for memory.
func (c *containedObserver) RunEvicted(name string) {
	defer c.recoverPanic()
	c.inner.RunEvicted(name)
}
