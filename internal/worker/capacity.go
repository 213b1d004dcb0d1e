package worker

import (
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// canServe reports whether the worker runs tasks of a route. A reducer belongs to
// no node: every worker of the graph can run it.
func (s *Session) canServe(r route) bool {
	if r.needsComparison && !s.hello.ComparesAnswers {
		return false
	}
	return s.coverage.Covers(r.capability())
}

// admitWorker admits a worker, which may replace its older session. mu is held.
func (h *Hub) admitWorker(s, older *Session) error {
	sum, connected := h.profileBytes+s.estimateProfile(), len(h.sessions)
	if older != nil {
		connected--
		if older.endCause == nil {
			sum -= older.profileBytes
		}
	}
	if connected >= h.opts.MaxWorkers {
		return tooManyError("workers", "max-workers", int64(h.opts.MaxWorkers), int64(connected)+1)
	}
	return s.reserveProfile(sum)
}

// reserveProfile counts the bytes of what the worker says of itself, up to the
// limit for all workers. mu is held.
func (s *Session) reserveProfile(sum int64) error {
	h := s.hub
	if sum > h.opts.MaxProfileBytes {
		return tooManyError("bytes of what workers serve", "max-worker-bytes", h.opts.MaxProfileBytes, sum)
	}
	claims := s.estimateProfile()
	h.profileBytes += claims - s.profileBytes
	s.profileBytes = claims
	return nil
}

func tooManyError(what, limit string, most, need int64) error {
	return runtime.Errorf(runtime.ReasonTooManyRequests, "the server holds as many %s as it may, %d; connect to another one, or later",
		what, most).WithLimit(limit, most, need)
}

// estimateProfile estimates the bytes of memory of what the worker says of itself.
func (s *Session) estimateProfile() int64 {
	const session, text = 1024, 32
	n := session + len(s.hello.BuildID)
	for _, x := range s.hello.Capabilities {
		n += 4*text + len(x.Graph) + len(x.Version) + len(x.Node)
	}
	for k, v := range s.hello.Labels {
		n += 2*text + len(k) + len(v)
	}
	for k := range s.credit.PerNode {
		n += 2*text + len(k)
	}
	return int64(n)
}

// canTake reports whether a task may be offered to the worker now.
func (s *Session) canTake(j *job) bool {
	if s.isLeaving || s.endCause != nil || s.freeSlots() <= 0 || !s.canServe(j.route) {
		return false
	}
	if _, refused := j.refusedBy[s]; refused {
		return false
	}
	limit, ok := s.credit.PerNode[j.route.graph+"/"+j.route.node]
	return !ok || s.busySlots(j.route) < limit
}

func (s *Session) busySlots(r route) int {
	n := 0
	for _, j := range s.jobs {
		if j.pendingCalls == 0 && j.route.graph == r.graph && j.route.node == r.node {
			n++
		}
	}
	return n
}

// freeSlots is how many more tasks the worker could take.
func (s *Session) freeSlots() int {
	if s.isLeaving || s.endCause != nil {
		return 0
	}
	if s.recentRefusals >= maxRecentRefusals {
		return 0
	}
	return s.credit.Total - (len(s.jobs) - s.blockedJobs) - s.hub.reclaims.CountOf(s)
}

// addJob notes that the worker has a task, under its lease. mu is held.
func (s *Session) addJob(j *job) {
	s.removeJob(j)
	s.jobs[j.token] = j
	if j.pendingCalls > 0 {
		s.blockedJobs++
	}
}

// removeJob notes that it has it no more. mu is held.
func (s *Session) removeJob(j *job) {
	if s.jobs[j.token] != j {
		return
	}
	delete(s.jobs, j.token)
	if j.pendingCalls > 0 {
		s.blockedJobs--
	}
}

func (s *Session) describeWorker() runtime.Worker {
	w := runtime.Worker{
		ID: s.hello.Worker, Slots: s.credit.Total, FreeSlots: max(s.freeSlots(), 0), LastHeartbeat: s.lastHeard,
		Labels: maps.Clone(s.hello.Labels), Draining: s.isLeaving, Build: s.hello.BuildID,
	}
	for _, x := range s.hello.Capabilities {
		node := x.Node
		if node == "" {
			node = "*"
		}
		w.Nodes = append(w.Nodes, x.Graph+"/"+node)
	}
	slices.Sort(w.Nodes)
	w.Nodes = slices.Compact(w.Nodes)
	return w
}
