package runtime

import "time"

// nobody is the observer of an engine that nobody observes.
type nobody struct{}

// RunStarted does nothing.
func (nobody) RunStarted(string) {}

// RunDriven does nothing.
func (nobody) RunDriven(string) {}

// RunEnded does nothing.
func (nobody) RunEnded(string, string, time.Duration) {}

// NodeEnded does nothing.
func (nobody) NodeEnded(string, string, string, time.Duration) {}

// CommitEnded does nothing.
func (nobody) CommitEnded(time.Duration, error) {}

// InterruptRaised does nothing.
func (nobody) InterruptRaised(string, string) {}

// InterruptResolved does nothing.
func (nobody) InterruptResolved(string, string) {}

// ThreadsPoisoned does nothing.
func (nobody) ThreadsPoisoned(int) {}

// LiveBytes does nothing.
func (nobody) LiveBytes(int64) {}

// RunPutOff does nothing.
func (nobody) RunPutOff(string) {}
