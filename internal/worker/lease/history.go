package lease

import "github.com/graphd-dev/graphd/internal/runtime"

// History remembers the outcome of leases, the latest maxRemembered of each kind.
type History struct {
	completed tokenSet // their results were taken; a repeated result is acknowledged again
	rejected  tokenSet // of an earlier server, and no run has asked for their tasks
	departed  tokenSet // the runs of their tasks went elsewhere
	requested requestedTasks
}

// NewHistory makes an empty history.
func NewHistory() *History {
	return &History{
		completed: newTokenSet(), rejected: newTokenSet(), departed: newTokenSet(),
		requested: requestedTasks{fences: make(map[string]uint64)},
	}
}

// AddCompleted remembers that the result under a lease was taken.
func (h *History) AddCompleted(token string) { h.completed.addToken(token) }

// IsCompleted reports whether the result under a lease was taken.
func (h *History) IsCompleted(token string) bool { return h.completed.hasToken(token) }

// AddRejected remembers that a lease which a worker brought is lost.
func (h *History) AddRejected(token string) { h.rejected.addToken(token) }

// IsRejected reports whether a lease which a worker brought was lost.
func (h *History) IsRejected(token string) bool { return h.rejected.hasToken(token) }

// AddDeparted remembers that the run of a leased task went to another server.
func (h *History) AddDeparted(token string) { h.departed.addToken(token) }

// IsDeparted reports whether the run of a leased task went to another server.
func (h *History) IsDeparted(token string) bool { return h.departed.hasToken(token) }

// AddRequest remembers that a run has requested a task here.
func (h *History) AddRequest(t *runtime.Task) { h.requested.addTask(t) }

// RemoveRequest forgets a requested task, because another server decides about
// it now.
func (h *History) RemoveRequest(t *runtime.Task) { h.requested.removeTask(t) }

// IsRequestedSince reports whether the task of a lease was requested here after the
// lease was given.
func (h *History) IsRequestedSince(l Lease) bool { return h.requested.isRequestedSince(l) }

// tokenSet remembers leases and forgets the oldest.
type tokenSet struct {
	tokens map[string]struct{}
	order  []string
}

// maxRemembered is the number of leases of each kind that a History remembers.
const maxRemembered = 4096

func newTokenSet() tokenSet { return tokenSet{tokens: make(map[string]struct{})} }

// addToken remembers a token. Beyond maxRemembered it forgets the oldest one.
func (s *tokenSet) addToken(token string) {
	if s.hasToken(token) {
		return
	}
	s.tokens[token] = struct{}{}
	s.order = append(s.order, token)
	if len(s.order) > maxRemembered {
		delete(s.tokens, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *tokenSet) hasToken(token string) bool {
	_, ok := s.tokens[token]
	return ok
}

// requestedTasks remembers the tasks that a run has requested here, and the fence
// of the run then. It forgets the oldest.
type requestedTasks struct {
	fences map[string]uint64
	order  []string
}

// addTask remembers a task that is requested now, or its newer fence.
func (r *requestedTasks) addTask(t *runtime.Task) {
	if _, ok := r.fences[t.ID]; !ok {
		r.order = append(r.order, t.ID)
	}
	r.fences[t.ID] = t.Fence
	if len(r.order) > maxRemembered {
		delete(r.fences, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *requestedTasks) removeTask(t *runtime.Task) { delete(r.fences, t.ID) }

func (r *requestedTasks) isRequestedSince(l Lease) bool {
	fence, ok := r.fences[l.TaskID()]
	return ok && l.fence <= fence
}
