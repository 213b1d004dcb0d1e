package worker

import (
	"slices"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// lonely is a task that nobody here serves, whose run is still to be told.
type lonely struct {
	job  *job
	why  string // for the log of the run; "" = it has been told before, or another server serves it
	what func(runtime.Host)
}

// unlockAndTell releases mu, and then tells the runs of tasks that no connected
// worker serves.
func (h *Hub) unlockAndTell() {
	alone := h.alone
	h.alone = nil
	h.mu.Unlock()
	for _, l := range alone {
		if l.why != "" {
			h.log.Info("no worker can take a task", append(l.job.about(), zap.String("reason", l.why))...)
		}
		go contain.Func(func() {
			defer l.job.telling.Done()
			if l.job.task.Host != nil {
				l.what(l.job.task.Host)
			}
		}, contain.Log(h.log, "telling the run of a task panicked"))()
	}
}

// tell has the run of a task told something when mu is released. mu is held.
func (h *Hub) tell(j *job, why string, what func(runtime.Host)) {
	j.telling.Add(1)
	h.alone = append(h.alone, lonely{job: j, why: why, what: what})
}

// notice finds the tasks of a route that nobody here serves. mu is held.
func (h *Hub) notice(r route) { h.attend(r, false) }

// attend does so; again says that the runs are to be told even though they know,
// because the workers of other servers have changed. mu is held.
func (h *Hub) attend(r route, again bool) {
	q := h.queues[r]
	if q == nil || h.served(r) {
		return
	}
	somewhere := h.peers != nil && h.peers.Take(r.need())
	for _, j := range q.jobs {
		isNew := !j.stranded
		h.strand(j, true)
		elsewhere := somewhere && (len(j.task.With) == 0 || h.peers.Take(append(slices.Clip(j.task.With), r.need())...))
		switch {
		case h.draining: // another server goes on with the run
			h.tell(j, "", runtime.Host.HandOver)
		case !elsewhere && !j.told:
			j.told = true
			why := h.whyNobody(r)
			h.tell(j, why, func(host runtime.Host) {
				host.Unassigned(why)
				host.Strand()
			})
		case isNew, again && elsewhere:
			h.tell(j, "", runtime.Host.Strand)
		}
	}
}

// strand notes whether nobody here can take a task. mu is held.
func (h *Hub) strand(j *job, stranded bool) {
	if j.stranded != stranded {
		j.stranded = stranded
		if stranded {
			h.unserved.Add(1)
		} else {
			h.unserved.Add(-1)
		}
	}
	if j.task.Stranded != nil {
		j.task.Stranded.Store(stranded)
	}
}

// rescue notes that the tasks that a new worker serves need no other server. mu
// is held.
func (h *Hub) rescue(s *Session) {
	for r, q := range h.queues {
		if !s.serves(r) {
			continue
		}
		for _, j := range q.jobs {
			h.strand(j, false)
		}
	}
}
