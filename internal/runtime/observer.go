package runtime

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
)

// containedObserver is an observer whose panics end with the call. The first panic is
// logged: each event may cause a panic.
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

// recoverPanic logs the first panic. Every method defers it.
func (c *containedObserver) recoverPanic() {
	if v := recover(); v != nil && c.isLogged.CompareAndSwap(false, true) {
		c.log.Error("the observer panicked; the metrics are incomplete from now on", contain.NewPanicError(v).Fields()...)
	}
}

// RunStarted implements Observer.
func (c *containedObserver) RunStarted(name string) {
	defer c.recoverPanic()
	c.inner.RunStarted(name)
}

// RunDriven implements Observer.
func (c *containedObserver) RunDriven(name string) {
	defer c.recoverPanic()
	c.inner.RunDriven(name)
}

// RunEnded implements Observer.
func (c *containedObserver) RunEnded(name, state string, took time.Duration) {
	defer c.recoverPanic()
	c.inner.RunEnded(name, state, took)
}

// NodeEnded implements Observer.
func (c *containedObserver) NodeEnded(name, node, outcome string, took time.Duration) {
	defer c.recoverPanic()
	c.inner.NodeEnded(name, node, outcome, took)
}

// CommitEnded implements Observer.
func (c *containedObserver) CommitEnded(took time.Duration, err error) {
	defer c.recoverPanic()
	c.inner.CommitEnded(took, err)
}

// InterruptRaised implements Observer.
func (c *containedObserver) InterruptRaised(name, reason string) {
	defer c.recoverPanic()
	c.inner.InterruptRaised(name, reason)
}

// InterruptResolved implements Observer.
func (c *containedObserver) InterruptResolved(name, state string) {
	defer c.recoverPanic()
	c.inner.InterruptResolved(name, state)
}

// InterruptEnded implements Observer.
func (c *containedObserver) InterruptEnded(name, outcome string, wait time.Duration) {
	defer c.recoverPanic()
	c.inner.InterruptEnded(name, outcome, wait)
}

// ThreadsPoisoned implements Observer.
func (c *containedObserver) ThreadsPoisoned(n int) {
	defer c.recoverPanic()
	c.inner.ThreadsPoisoned(n)
}

// LiveBytes implements Observer.
func (c *containedObserver) LiveBytes(n int64) {
	defer c.recoverPanic()
	c.inner.LiveBytes(n)
}

// RunEvicted implements Observer.
func (c *containedObserver) RunEvicted(name string) {
	defer c.recoverPanic()
	c.inner.RunEvicted(name)
}

// CronFired implements Observer.
func (c *containedObserver) CronFired(name, outcome string) {
	defer c.recoverPanic()
	c.inner.CronFired(name, outcome)
}
