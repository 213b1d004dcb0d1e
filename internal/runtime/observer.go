package runtime

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
)

// contained is an observer whose panics end with the call. The first one is
// logged: there may be one per event.
type contained struct {
	to     Observer
	log    *zap.Logger
	logged atomic.Bool
}

func newObserver(to Observer, log *zap.Logger) Observer {
	if _, none := to.(nobody); none {
		return to
	}
	return &contained{to: to, log: log}
}

// caught is deferred by every method.
func (c *contained) caught() {
	if v := recover(); v != nil && c.logged.CompareAndSwap(false, true) {
		c.log.Error("the observer panicked; the metrics are incomplete from now on", contain.Caught(v).Fields()...)
	}
}

// RunStarted passes on that a run was admitted.
func (c *contained) RunStarted(name string) {
	defer c.caught()
	c.to.RunStarted(name)
}

// RunDriven passes on that a run was taken up.
func (c *contained) RunDriven(name string) {
	defer c.caught()
	c.to.RunDriven(name)
}

// RunEnded passes on that a run has stopped here.
func (c *contained) RunEnded(name, state string, took time.Duration) {
	defer c.caught()
	c.to.RunEnded(name, state, took)
}

// NodeEnded passes on that an attempt has ended.
func (c *contained) NodeEnded(name, node, outcome string, took time.Duration) {
	defer c.caught()
	c.to.NodeEnded(name, node, outcome, took)
}

// CommitEnded passes on that a commit has ended.
func (c *contained) CommitEnded(took time.Duration, err error) {
	defer c.caught()
	c.to.CommitEnded(took, err)
}

// InterruptRaised passes on that a question was asked.
func (c *contained) InterruptRaised(name, reason string) {
	defer c.caught()
	c.to.InterruptRaised(name, reason)
}

// InterruptResolved passes on that a question was answered.
func (c *contained) InterruptResolved(name, state string) {
	defer c.caught()
	c.to.InterruptResolved(name, state)
}

// ThreadsPoisoned passes on how many threads are put off.
func (c *contained) ThreadsPoisoned(n int) {
	defer c.caught()
	c.to.ThreadsPoisoned(n)
}

// LiveBytes passes on how much live runs hold.
func (c *contained) LiveBytes(n int64) {
	defer c.caught()
	c.to.LiveBytes(n)
}

// RunPutOff passes on that a run waits for room.
func (c *contained) RunPutOff(name string) {
	defer c.caught()
	c.to.RunPutOff(name)
}
