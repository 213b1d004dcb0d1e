package runtime

import "time"

// NopObserver is an Observer without any effect.
type NopObserver struct{}

// RunStarted does nothing.
func (NopObserver) RunStarted(string) {}

// RunDriven does nothing.
func (NopObserver) RunDriven(string) {}

// RunEnded does nothing.
func (NopObserver) RunEnded(string, string, time.Duration) {}

// NodeEnded does nothing.
func (NopObserver) NodeEnded(string, string, string, time.Duration) {}

// CommitEnded does nothing.
func (NopObserver) CommitEnded(time.Duration, error) {}

// InterruptRaised does nothing.
func (NopObserver) InterruptRaised(string, string) {}

// InterruptResolved does nothing.
func (NopObserver) InterruptResolved(string, string) {}

// InterruptEnded does nothing.
func (NopObserver) InterruptEnded(string, string, time.Duration) {}

// ThreadsPoisoned does nothing.
func (NopObserver) ThreadsPoisoned(int) {}

// LiveBytes does nothing.
func (NopObserver) LiveBytes(int64) {}

// RunEvicted does nothing.
func (NopObserver) RunEvicted(string) {}

// CronFired does nothing.
func (NopObserver) CronFired(string, string) {}
