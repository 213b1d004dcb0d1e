package worker

import "slices"

// detachJob keeps a task for its worker, whose stream is broken. The worker may
// have begun, whether or not it has said so: no other worker gets the task until
// its lease ends, or the worker comes back without it. mu is held.
func (h *Hub) detachJob(j *job) {
	s := j.session
	s.capacity.removeJob(j)
	j.session, j.detachedWorker = nil, s.hello.Worker
	if h.detached[j.detachedWorker] == nil {
		h.detached[j.detachedWorker] = make(map[string]*job, 1)
	}
	h.detached[j.detachedWorker][j.token] = j
	h.markDisconnected(j)
}

// markDisconnected records that the worker of a task has no stream here: it may
// have one to another server. mu is held.
func (h *Hub) markDisconnected(j *job) {
	h.disconnected[j] = struct{}{}
	h.followHolder(j)
}

// clearDisconnected records that the worker of a task has a stream here, or is not
// waited for any more. mu is held.
func (h *Hub) clearDisconnected(j *job) {
	delete(h.disconnected, j)
	h.clearHolder(j)
}

// attachJob notes which session has the worker of a task. mu is held.
func (h *Hub) attachJob(j *job, s *Session) {
	if j.session != nil {
		j.session.capacity.removeJob(j)
	}
	h.clearDetached(j)
	h.clearDisconnected(j)
	j.session = s
	s.capacity.addJob(j)
}

// clearDetached records that the worker of a task is back, or not waited for any
// more. mu is held.
func (h *Hub) clearDetached(j *job) {
	if j.detachedWorker == "" {
		return
	}
	delete(h.detached[j.detachedWorker], j.token)
	if len(h.detached[j.detachedWorker]) == 0 {
		delete(h.detached, j.detachedWorker)
	}
	j.detachedWorker = ""
}

// requeueDetached requeues what a worker that has come back does not hold. What it
// was given in the answer to a call may still be on its way: that stays. mu is
// held.
func (h *Hub) requeueDetached(s *Session) {
	for _, j := range sortedByAge(h.detached[s.hello.Worker]) {
		if j.stage == stageOffered && j.isInCallAnswer {
			h.attachJob(j, s)
		} else {
			h.requeueJob(j)
		}
	}
}

// HandleStreamEnd records that the worker has closed its side of the stream in
// order, and that no message of it was lost. After a goodbye it begins no task any
// more: tasks without a sign of life go to others.
func (s *Session) HandleStreamEnd() {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndNotify()
	if !s.isLeaving {
		return
	}
	for _, j := range sortedByAge(s.capacity.jobs) {
		if j.stage == stageOffered && !j.isInCallAnswer {
			h.requeueJob(j)
		}
	}
}

// offeredToken is the lease of the task that a message brings, "" for none.
func offeredToken(m Message) string {
	switch m := m.(type) {
	case Assignment:
		return m.Token
	case CompletionReply:
		if m.Receipt.Next != nil {
			return m.Receipt.Next.Token
		}
	}
	return ""
}

// unsentJobs lists the tasks that have not left for the worker yet, by lease. mu is
// held.
func (s *Session) unsentJobs() map[string]*job {
	jobs := make(map[string]*job)
	for _, m := range s.outgoing {
		if j := s.capacity.jobs[offeredToken(m)]; j != nil {
			jobs[j.token] = j
		}
	}
	return jobs
}

// isUnsent reports whether a task has not left yet. mu is held.
func (s *Session) isUnsent(token string) bool { return s.indexOfUnsent(token) >= 0 }

// removeUnsent takes back a task that has not left yet. mu is held.
func (s *Session) removeUnsent(token string) bool {
	at := s.indexOfUnsent(token)
	if at < 0 {
		return false
	}
	if r, ok := s.outgoing[at].(CompletionReply); ok {
		r.Receipt.Next = nil
		s.outgoing[at] = r
		return true
	}
	s.outgoing = slices.Delete(slices.Clone(s.outgoing), at, at+1)
	return true
}

func (s *Session) indexOfUnsent(token string) int {
	return slices.IndexFunc(s.outgoing, func(m Message) bool { return offeredToken(m) == token })
}
