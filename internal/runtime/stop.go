package runtime

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Stop is a run as it was when it stopped, and the questions that it waits for.
type Stop struct {
	Run  checkpoint.Run
	Open []string // ids of questions, in the order in which they are listed
}

// stop notes how a change ends a run, so that those who follow it need not ask
// the store. It notes nothing that the change does not say as a whole.
func (t *topic) stop(c *tx) {
	if len(c.Runs) == 0 {
		return
	}
	run := c.Runs[len(c.Runs)-1]
	if !Stopped(run.State) || run.Revision == 0 || run.Result != "" {
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
	s := &Stop{Run: run}
	for i := range open {
		s.Open = append(s.Open, open[i].ID)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = s
}

// Stop returns how a run stopped with an event that was handed out, if that
// happened in this process.
func (f *Follower) Stop(run string, event uint64) (Stop, bool) {
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	if s := f.topic.stopped; s != nil && s.Run.ID == run && s.Run.LastEvent == event {
		return *s, true
	}
	return Stop{}, false
}
