package worker

import "github.com/graphd-dev/graphd/internal/worker/queue"

// capacity holds the tasks that the worker of a session has, and its free slots.
// The dispatcher's mu guards it.
type capacity struct {
	session        *Session
	jobs           map[string]*job // by lease: offered, or started
	blockedJobs    int             // of them, those that wait for graphs that they have called
	recentRefusals int             // tasks that it has refused, of which the delay has not passed
}

var _ queue.Worker[*job] = (*capacity)(nil)

// CanServe reports whether the worker runs tasks of a route.
func (c *capacity) CanServe(r queue.Route) bool { return c.session.profile.CanServe(r) }

// maxRecentRefusals is the number of tasks that a worker may have refused at a time.
// Beyond it the worker is offered no task until a delay has passed, because each offer
// would search the queue for a task that it has not refused.
const maxRecentRefusals = 64

// FreeSlots returns the number of further tasks that the worker could take.
func (c *capacity) FreeSlots() int {
	if c.session.profile.IsLeaving || c.session.hasEnded || c.recentRefusals >= maxRecentRefusals {
		return 0
	}
	return c.session.profile.Credit.Total - (len(c.jobs) - c.blockedJobs) - c.session.dispatcher.reclaims.CountOf(c.session)
}

// RankTask reports whether a task may be offered to the worker now. The worker that
// has just finished a task of the same thread and waits for the next has the
// highest rank, then the worker with the most free slots.
func (c *capacity) RankTask(j *job) (rank int64, ok bool) {
	const awaitsThread = 1 << 40 // more than a worker has slots
	free := c.FreeSlots()
	if free <= 0 || !c.CanServe(j.route) {
		return 0, false
	}
	if _, refused := j.refusedBy[c.session]; refused {
		return 0, false
	}
	if limit, limited := c.session.profile.Credit.PerNode[j.route.Graph+"/"+j.route.Node]; limited && c.busySlots(j.route) >= limit {
		return 0, false
	}
	rank = int64(free)
	if c.session.waitingCalls.AwaitTaskOf(j.task.Thread) {
		rank += awaitsThread
	}
	return rank, true
}

// busySlots returns the number of tasks of a node that the worker runs.
func (c *capacity) busySlots(r queue.Route) int {
	n := 0
	for _, j := range c.jobs {
		if j.pendingCalls == 0 && j.route.Graph == r.Graph && j.route.Node == r.Node {
			n++
		}
	}
	return n
}

// addJob adds a task of the worker, by its lease.
func (c *capacity) addJob(j *job) {
	c.removeJob(j)
	c.jobs[j.token] = j
	if j.pendingCalls > 0 {
		c.blockedJobs++
	}
}

// removeJob removes a task of the worker.
func (c *capacity) removeJob(j *job) {
	if c.jobs[j.token] != j {
		return
	}
	delete(c.jobs, j.token)
	if j.pendingCalls > 0 {
		c.blockedJobs--
	}
}
