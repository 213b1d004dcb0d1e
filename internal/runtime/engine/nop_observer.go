package engine

import "time"

// nopObserver is the observer of an engine without one.
type nopObserver struct{}

// RunStarted does nothing.
func (nopObserver) RunStarted(string) {}

// RunDriven does nothing.
func (nopObserver) RunDriven(string) {}

// RunEnded does nothing.
func (nopObserver) RunEnded(string, string, time.Duration) {}

// NodeEnded does nothing.
func (nopObserver) NodeEnded(string, string, string, time.Duration) {}

// CommitEnded does nothing.
func (nopObserver) CommitEnded(time.Duration, error) {}

// InterruptRaised does nothing.
func (nopObserver) InterruptRaised(string, string) {}

// InterruptResolved does nothing.
func (nopObserver) InterruptResolved(string, string) {}

// ThreadsPoisoned does nothing.
func (nopObserver) ThreadsPoisoned(int) {}

// LiveBytes does nothing.
func (nopObserver) LiveBytes(int64) {}

// RunEvicted does nothing.
func (nopObserver) RunEvicted(string) {}
