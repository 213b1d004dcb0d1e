package worker

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

// unsentJobs lists the tasks that have not left for the worker yet, by lease. mu is
// held.
func (s *Session) unsentJobs() map[string]*job {
	jobs := make(map[string]*job)
	for _, token := range s.outbox.listTasks() {
		if j := s.capacity.jobs[token]; j != nil {
			jobs[token] = j
		}
	}
	return jobs
}
