package feed

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// SetStoppedRun records how a change ends a run, so that followers need not read
// the store. It records only runs that the change contains completely.
//
// output is that of a run that waits, "" = not known.
func (t *Topic) SetStoppedRun(c *checkpoint.Change, output payload.JSON) {
	if len(c.Runs) == 0 {
		return
	}
	run := c.Runs[len(c.Runs)-1]
	if !runtime.IsStopped(run.State) || run.Revision == 0 || run.Result != "" {
		return
	}
	var open []checkpoint.Interrupt
	for i := range c.Interrupts {
		if q := &c.Interrupts[i]; q.State == checkpoint.InterruptOpen && q.Run == run.ID {
			open = append(open, *q)
		}
	}
	if run.State == checkpoint.RunInterrupted && len(open) != c.Head.Open {
		return
	}
	slices.SortFunc(open, func(a, b checkpoint.Interrupt) int {
		if n := a.Created.Compare(b.Created); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
	s := &runtime.StoppedRun{Run: run}
	for i := range open {
		s.OpenInterrupts = append(s.OpenInterrupts, open[i].ID)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopFollowers > 0 {
		s.Output = output
		if isSmall(open) {
			s.Interrupts = open
		}
	}
	t.stoppedRun = s
}

// maxStoppedBytes bounds the interrupts that a topic keeps of a run that has stopped.
const maxStoppedBytes = 64 << 10

// isSmall reports whether interrupts may be kept in memory: they are small, and have no parts
// that only the store keeps.
func isSmall(open []checkpoint.Interrupt) bool {
	bytes := 0
	for i := range open {
		bytes += open[i].Size()
		if open[i].HidesParts() {
			return false
		}
	}
	return bytes <= maxStoppedBytes
}

// StoppedRun returns how a run stopped with an event that was handed out, if that
// happened in this process.
func (f *Follower) StoppedRun(run string, event uint64) (runtime.StoppedRun, bool) {
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	if s := f.topic.stoppedRun; s != nil && s.Run.ID == run && s.Run.LastEvent == event {
		return *s, true
	}
	return runtime.StoppedRun{}, false
}
