package profile

import (
	"iter"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// Table has the profile of each connected worker, up to the limits. The caller's lock
// guards it.
type Table[S any] struct {
	maxWorkers int
	maxBytes   int64
	byWorker   map[string]*Profile[S]
	index      *coverage.Index[*Profile[S]]
	bytes      int64 // size of all profiles
}

// NewTable makes a table for some workers, whose profiles may have some bytes together.
func NewTable[S any](maxWorkers int, maxBytes int64) *Table[S] {
	return &Table[S]{
		maxWorkers: maxWorkers, maxBytes: maxBytes,
		byWorker: make(map[string]*Profile[S]), index: coverage.NewIndex[*Profile[S]](),
	}
}

// FindProfile returns the profile of a worker, else nil.
func (t *Table[S]) FindProfile(worker string) *Profile[S] { return t.byWorker[worker] }

// AddProfile admits a worker. It returns the older profile of the same worker, or nil. Its
// bytes count until they are released. The error is a *runtime.Error
// TOO_MANY_REQUESTS.
func (t *Table[S]) AddProfile(p *Profile[S]) (older *Profile[S], err error) {
	older = t.byWorker[p.Hello.Worker]
	sum, connected := t.bytes+p.Hello.EstimateBytes(p.Credit), len(t.byWorker)
	if older != nil {
		connected--
		sum -= older.countedBytes
	}
	if connected >= t.maxWorkers {
		return nil, tooManyError("workers", "max-workers", int64(t.maxWorkers), int64(connected)+1)
	}
	if err := t.reserveBytes(p, sum); err != nil {
		return nil, err
	}
	if older != nil {
		t.index.RemoveWorker(older)
	}
	t.byWorker[p.Hello.Worker] = p
	t.index.AddWorker(p, p.Hello.Capabilities)
	return older, nil
}

// RemoveProfile removes a profile, unless a newer profile of its worker has replaced it.
func (t *Table[S]) RemoveProfile(p *Profile[S]) {
	if t.byWorker[p.Hello.Worker] == p {
		delete(t.byWorker, p.Hello.Worker)
		t.index.RemoveWorker(p)
	}
}

// SetCredit sets the credit of a worker. The error is a *runtime.Error
// TOO_MANY_REQUESTS.
func (t *Table[S]) SetCredit(p *Profile[S], c message.Credit) error {
	p.Credit = c
	return t.reserveBytes(p, t.bytes-p.countedBytes+p.Hello.EstimateBytes(c))
}

// reserveBytes counts the bytes of a profile, up to the limit for all of them. sum is
// the total with the profile.
func (t *Table[S]) reserveBytes(p *Profile[S], sum int64) error {
	if sum > t.maxBytes {
		return tooManyError("bytes of what workers serve", "max-worker-bytes", t.maxBytes, sum)
	}
	size := p.Hello.EstimateBytes(p.Credit)
	t.bytes += size - p.countedBytes
	p.countedBytes = size
	return nil
}

// ReleaseBytes removes the bytes of the profile of an ended session from the count.
func (t *Table[S]) ReleaseBytes(p *Profile[S]) {
	t.bytes -= p.countedBytes
	p.countedBytes = 0
}

func tooManyError(what, limit string, most, need int64) error {
	return runtime.Errorf(runtime.ReasonTooManyRequests, "the server holds as many %s as it may, %d; connect to another one, or later",
		what, most).WithLimit(limit, most, need)
}

// Sessions iterates over the sessions of all profiles, in no order.
func (t *Table[S]) Sessions() iter.Seq[*S] {
	return func(yield func(*S) bool) {
		for _, p := range t.byWorker {
			if !yield(p.Session) {
				return
			}
		}
	}
}

// IsServed reports whether a worker that stays serves a route.
func (t *Table[S]) IsServed(r queue.Route) bool {
	return t.index.ContainsFunc(r.Graph, r.Version, func(p *Profile[S]) bool { return p.CanServe(r) && !p.IsLeaving })
}

// ListServed lists the entries of each worker that stays, and their number.
func (t *Table[S]) ListServed() (lists [][]checkpoint.Capability, sum int) {
	for _, p := range t.byWorker {
		if !p.IsLeaving {
			lists = append(lists, p.Hello.Capabilities)
			sum += len(p.Hello.Capabilities)
		}
	}
	return lists, sum
}

// ExplainUnserved returns, for the operator, the reason why a route is not served.
func (t *Table[S]) ExplainUnserved(r queue.Route) string {
	if r.NeedsComparison {
		for p := range t.index.WorkersOf(r.Graph) {
			if p.CanServe(r.WithoutComparison()) {
				return "no connected worker of graph " + tenant.ClientName(r.Graph) + " compares what it asks with what was answered " +
					"(feature \"drift\"): bring the workers up to date"
			}
		}
	}
	return t.index.ExplainUncovered(r.Capability())
}
