package worker

import (
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// capacity is what the worker of a session takes: which tasks, and how many more of
// them. It is guarded by the dispatcher's mu.
type capacity struct {
	session        *Session
	coverage       *coverage.Coverage
	credit         message.Credit
	jobs           map[string]*job // by lease: offered, or started
	blockedJobs    int             // of them, those that wait for graphs that they have called
	recentRefusals int             // tasks that it has refused, of which the delay has not passed
}

var _ queue.Worker[*job] = (*capacity)(nil)

// CanServe reports whether the worker runs tasks of a route. A reducer belongs to
// no node: every worker of the graph can run it.
func (c *capacity) CanServe(r queue.Route) bool {
	if r.NeedsComparison && !c.session.hello.ComparesAnswers {
		return false
	}
	return c.coverage.Covers(r.Capability())
}

// maxRecentRefusals bounds how many tasks a worker may have refused at a time. It is given
// none beyond that until a delay has passed: they would be looked through, over and
// over, for one that it has not refused.
const maxRecentRefusals = 64

// FreeSlots is how many more tasks the worker could take.
func (c *capacity) FreeSlots() int {
	if c.session.isLeaving || c.session.hasEnded || c.recentRefusals >= maxRecentRefusals {
		return 0
	}
	return c.credit.Total - (len(c.jobs) - c.blockedJobs) - c.session.dispatcher.reclaims.CountOf(c.session)
}

// RankTask reports whether a task may be offered to the worker now. The worker that
// has just finished a task of the same thread and waits for the next comes first,
// then the one with most free slots.
func (c *capacity) RankTask(j *job) (rank int64, ok bool) {
	const awaits = 1 << 40
	free := c.FreeSlots()
	if free <= 0 || !c.CanServe(j.route) {
		return 0, false
	}
	if _, refused := j.refusedBy[c.session]; refused {
		return 0, false
	}
	if limit, limited := c.credit.PerNode[j.route.Graph+"/"+j.route.Node]; limited && c.busySlots(j.route) >= limit {
		return 0, false
	}
	rank = int64(free)
	if c.session.waitingCalls.AwaitTaskOf(j.task.Thread) {
		rank += awaits
	}
	return rank, true
}

// busySlots is how many tasks of a node the worker is at work on.
func (c *capacity) busySlots(r queue.Route) int {
	n := 0
	for _, j := range c.jobs {
		if j.pendingCalls == 0 && j.route.Graph == r.Graph && j.route.Node == r.Node {
			n++
		}
	}
	return n
}

// addJob notes that the worker has a task, under its lease.
func (c *capacity) addJob(j *job) {
	c.removeJob(j)
	c.jobs[j.token] = j
	if j.pendingCalls > 0 {
		c.blockedJobs++
	}
}

// removeJob notes that it has it no more.
func (c *capacity) removeJob(j *job) {
	if c.jobs[j.token] != j {
		return
	}
	delete(c.jobs, j.token)
	if j.pendingCalls > 0 {
		c.blockedJobs--
	}
}
