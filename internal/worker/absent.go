package worker

import "slices"

// detach keeps a task for its worker, whose stream is broken. The worker may have
// begun, whatever was heard of that: no other worker gets the task until its lease
// ends, or the worker comes back without it. mu is held.
func (h *Hub) detach(j *job) {
	s := j.session
	s.drop(j)
	j.session, j.absent = nil, s.hello.Worker
	if h.absent[j.absent] == nil {
		h.absent[j.absent] = make(map[string]*job, 1)
	}
	h.absent[j.absent][j.token] = j
	h.part(j)
}

// part notes that the worker of a task has no stream here: it may have one to
// another server. mu is held.
func (h *Hub) part(j *job) {
	h.apart[j] = struct{}{}
	h.seekHolder(j)
}

// rejoin notes that the worker of a task has a stream here, or is not waited for
// any more. mu is held.
func (h *Hub) rejoin(j *job) {
	delete(h.apart, j)
	h.forgetHolder(j)
}

// attach notes which session has the worker of a task. mu is held.
func (h *Hub) attach(j *job, s *Session) {
	if j.session != nil {
		j.session.drop(j)
	}
	h.endAbsence(j)
	h.rejoin(j)
	j.session = s
	s.gain(j)
}

// endAbsence notes that the worker of a task is back, or not waited for any more.
// mu is held.
func (h *Hub) endAbsence(j *job) {
	if j.absent == "" {
		return
	}
	delete(h.absent[j.absent], j.token)
	if len(h.absent[j.absent]) == 0 {
		delete(h.absent, j.absent)
	}
	j.absent = ""
}

// reassign gives away what a worker that has come back does not hold. What it was
// given in the answer to a call may still be on its way: that stays. mu is held.
func (h *Hub) reassign(s *Session) {
	for _, j := range sorted(h.absent[s.hello.Worker]) {
		if j.stage == offered && j.byCall {
			h.attach(j, s)
		} else {
			h.requeue(j)
		}
	}
}

// HearEnd notes that the worker has closed its side of the stream in order, and
// that nothing it has said was lost. One that has said goodbye begins nothing any
// more: tasks of which nothing was heard go to others.
func (s *Session) HearEnd() {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	if !s.leaving {
		return
	}
	for _, j := range sorted(s.jobs) {
		if j.stage == offered && !j.byCall {
			h.requeue(j)
		}
	}
}

// offerOf is the lease of the task that a message brings, "" for none.
func offerOf(m Message) string {
	switch m := m.(type) {
	case Assignment:
		return m.Token
	case Reply:
		if m.Receipt.Next != nil {
			return m.Receipt.Next.Token
		}
	}
	return ""
}

// unsent lists the tasks that have not left for the worker yet, by lease. mu is
// held.
func (s *Session) unsent() map[string]*job {
	jobs := make(map[string]*job)
	for _, m := range s.out {
		if j := s.jobs[offerOf(m)]; j != nil {
			jobs[j.token] = j
		}
	}
	return jobs
}

// holdsBack reports whether a task has not left yet. mu is held.
func (s *Session) holdsBack(token string) bool { return s.waiting(token) >= 0 }

// unsend takes back a task that has not left yet. mu is held.
func (s *Session) unsend(token string) bool {
	at := s.waiting(token)
	if at < 0 {
		return false
	}
	if r, ok := s.out[at].(Reply); ok {
		r.Receipt.Next = nil
		s.out[at] = r
		return true
	}
	s.out = slices.Delete(slices.Clone(s.out), at, at+1)
	return true
}

func (s *Session) waiting(token string) int {
	return slices.IndexFunc(s.out, func(m Message) bool { return offerOf(m) == token })
}
