package worker

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// sessionTable holds the session of each connected worker, up to the limits. It is
// guarded by the dispatcher's mu.
type sessionTable struct {
	maxWorkers      int
	maxProfileBytes int64
	byWorker        map[string]*Session
	coverage        *coverage.Index[*Session] // of the same sessions
	profileBytes    int64                     // size of the workers' profiles
}

func newSessionTable(o Options) *sessionTable {
	return &sessionTable{
		maxWorkers: o.MaxWorkers, maxProfileBytes: o.MaxProfileBytes, byWorker: make(map[string]*Session), coverage: coverage.NewIndex[*Session](),
	}
}

// addSession admits a worker. It returns the older session that this session
// replaces, nil without one.
func (t *sessionTable) addSession(s *Session) (older *Session, err error) {
	older = t.byWorker[s.hello.Worker]
	sum, connected := t.profileBytes+s.hello.EstimateBytes(s.capacity.credit), len(t.byWorker)
	if older != nil {
		connected--
		if !older.hasEnded {
			sum -= older.profileBytes
		}
	}
	if connected >= t.maxWorkers {
		return nil, tooManyError("workers", "max-workers", int64(t.maxWorkers), int64(connected)+1)
	}
	if err := t.reserveProfile(s, sum); err != nil {
		return nil, err
	}
	if older != nil {
		t.coverage.RemoveWorker(older)
	}
	t.byWorker[s.hello.Worker] = s
	t.coverage.AddWorker(s, s.hello.Capabilities)
	return older, nil
}

// removeSession removes a session, unless a newer session of its worker has replaced
// it.
func (t *sessionTable) removeSession(s *Session) {
	if t.byWorker[s.hello.Worker] == s {
		delete(t.byWorker, s.hello.Worker)
		t.coverage.RemoveWorker(s)
	}
}

// updateProfile counts the present profile of a worker.
func (t *sessionTable) updateProfile(s *Session) error {
	return t.reserveProfile(s, t.profileBytes-s.profileBytes+s.hello.EstimateBytes(s.capacity.credit))
}

// reserveProfile counts the bytes of a worker's profile, up to the limit for
// all workers. sum is the total with the profile.
func (t *sessionTable) reserveProfile(s *Session, sum int64) error {
	if sum > t.maxProfileBytes {
		return tooManyError("bytes of what workers serve", "max-worker-bytes", t.maxProfileBytes, sum)
	}
	size := s.hello.EstimateBytes(s.capacity.credit)
	t.profileBytes += size - s.profileBytes
	s.profileBytes = size
	return nil
}

// releaseProfile removes the profile of an ended session from the count.
func (t *sessionTable) releaseProfile(s *Session) { t.profileBytes -= s.profileBytes }

func tooManyError(what, limit string, most, need int64) error {
	return runtime.Errorf(runtime.ReasonTooManyRequests, "the server holds as many %s as it may, %d; connect to another one, or later",
		what, most).WithLimit(limit, most, need)
}

// listSessions lists all sessions, in no order.
func (t *sessionTable) listSessions() iter.Seq[*Session] { return maps.Values(t.byWorker) }

// listCapacities iterates over the capacities of the workers.
func (t *sessionTable) listCapacities() iter.Seq[*capacity] {
	return func(yield func(*capacity) bool) {
		for _, s := range t.byWorker {
			if !yield(&s.capacity) {
				return
			}
		}
	}
}

// describeWorkers lists the workers by id.
func (t *sessionTable) describeWorkers() []runtime.Worker {
	out := make([]runtime.Worker, 0, len(t.byWorker))
	for _, s := range t.byWorker {
		out = append(out, s.describeWorker())
	}
	slices.SortFunc(out, func(a, b runtime.Worker) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// isServed reports whether a worker that stays serves a route.
func (t *sessionTable) isServed(r queue.Route) bool {
	for s := range t.coverage.WorkersOf(r.Graph) {
		if s.capacity.CanServe(r) && !s.isLeaving {
			return true
		}
	}
	return false
}

// listServed lists what each worker that stays serves, and the number of
// entries.
func (t *sessionTable) listServed() (lists [][]checkpoint.Capability, sum int) {
	for _, s := range t.byWorker {
		if !s.isLeaving {
			lists = append(lists, s.hello.Capabilities)
			sum += len(s.hello.Capabilities)
		}
	}
	return lists, sum
}

// unservedReason returns, for the operator, the reason why a route is not
// served.
func (t *sessionTable) unservedReason(r queue.Route) string {
	if r.NeedsComparison {
		for s := range t.coverage.WorkersOf(r.Graph) {
			if s.capacity.CanServe(r.WithoutComparison()) {
				return "no connected worker of graph " + r.Graph + " compares what it asks with what was answered " +
					"(feature \"drift\"): bring the workers up to date"
			}
		}
	}
	return t.coverage.ExplainUncovered(r.Capability())
}

func (s *Session) describeWorker() runtime.Worker {
	w := runtime.Worker{
		ID: s.hello.Worker, Slots: s.capacity.credit.Total, FreeSlots: max(s.capacity.FreeSlots(), 0), LastHeartbeat: s.lastHeard,
		Labels: maps.Clone(s.hello.Labels), Draining: s.isLeaving, Build: s.hello.BuildID,
	}
	w.Nodes = s.hello.ListNodes()
	return w
}
