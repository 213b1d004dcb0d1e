package statistics

import (
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/trail"
)

// DefaultLimit is the default of Options.Limit.
const DefaultLimit = 100

// tenantShares is how many tenants may have as many series as one may have.
const tenantShares = 10

// Options make a Counter.
type Options struct {
	// Limit bounds what is counted by itself of a tenant: graphs, pairs of a graph and a group
	// that it asks, and nodes; 0 = DefaultLimit. All tenants together have ten times as many.
	Limit int
	Now   func() time.Time // the store's time
}

// Counter counts what becomes of questions. It is safe for concurrent use.
type Counter struct {
	now   func() time.Time
	since time.Time
	limit int

	mu           sync.Mutex
	tenants      map[string]*tenantCounts
	tenantsSince time.Time // since when no tenant was dropped
	rows         int       // series and answers of all tenants
	swept        int64     // slot in which idle ones were dropped last
	overflow     int64     // slot in which a tenant had no place last; 0 = never
}

// New makes a counter that begins to count now.
func New(opts Options) *Counter {
	if opts.Limit <= 0 {
		opts.Limit = DefaultLimit
	}
	since := opts.Now()
	return &Counter{now: opts.Now, since: since, limit: opts.Limit, tenants: map[string]*tenantCounts{}, tenantsSince: since}
}

// CountChange counts what the events of a change tell of questions. records are the questions
// that it changes, which have trails.
func (c *Counter) CountChange(events []checkpoint.Event, records []checkpoint.Interrupt) {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case checkpoint.EventInterrupt:
			for j := range e.Interrupts {
				c.countAsked(&e.Interrupts[j], records, e.Time)
			}
		case checkpoint.EventResolved:
			for j := range e.Interrupts {
				c.countResolved(&e.Interrupts[j], e.Time)
			}
		default: // not about questions
		}
	}
}

// countAsked counts a question that was asked, or takes the answer from the count that was
// taken back.
func (c *Counter) countAsked(q *checkpoint.Interrupt, records []checkpoint.Interrupt, at time.Time) {
	if answer := findRetracted(q.ID, records); answer != nil {
		outcome := checkpoint.OutcomeAnswered
		if answer.Dismisses {
			outcome = checkpoint.OutcomeDismissed
		}
		o := newEnd(q, outcome, answer.Time)
		o.isUndone = true
		c.count(q, o, findDecision(q.Schema, answer.Value))
		return
	}
	c.count(q, occurrence{slot: slotNumber(at)}, "")
}

// countResolved counts the end of the wait for an answer, unless it ended before.
func (c *Counter) countResolved(q *checkpoint.Interrupt, at time.Time) {
	outcome := q.ResolvedOutcome()
	if outcome == "" {
		return
	}
	var decision payload.JSON
	if outcome == checkpoint.OutcomeAnswered {
		decision = findDecision(q.Schema, q.Response)
	}
	c.count(q, newEnd(q, outcome, at), decision)
}

// findRetracted returns the answer of an open question that a change takes back, nil for a
// question that is new.
func findRetracted(id string, records []checkpoint.Interrupt) *trail.Entry {
	at := slices.IndexFunc(records, func(r checkpoint.Interrupt) bool { return r.ID == id })
	if at < 0 || len(records[at].Trail.Records) < 2 {
		return nil
	}
	entries, err := records[at].Trail.Entries()
	if err != nil || entries[len(entries)-1].Kind != trail.Retracted {
		return nil
	}
	for i := range slices.Backward(entries) {
		if entries[i].Kind == trail.Answered {
			return &entries[i]
		}
	}
	return nil
}

// newEnd describes the end of the wait for an answer.
func newEnd(q *checkpoint.Interrupt, outcome checkpoint.Outcome, at time.Time) occurrence {
	due := q.FirstDueTime()
	return occurrence{slot: slotNumber(at), outcome: outcome, isLate: !due.IsZero() && at.After(due), bucket: findBucket(at.Sub(q.Created))}
}

// count counts what happened to a question.
func (c *Counter) count(q *checkpoint.Interrupt, o occurrence, decision payload.JSON) {
	owner, graph := tenant.Split(q.Graph)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.findTenant(owner, o.slot)
	if t == nil {
		return
	}
	t.all.countOccurrence(&o)
	if s := c.findGraph(t, graph, o.slot); s != nil {
		s.countOccurrence(&o)
	}
	isGrouped := false
	if q.Policy != nil {
		for _, group := range q.Policy.Groups {
			c.findPair(t, pair{graph, group}, o.slot).countOccurrence(&o)
			isGrouped = true
		}
	}
	for _, group := range q.PropertyChanges().AddedGroups {
		if q.Policy == nil || !slices.Contains(q.Policy.Groups, group) {
			c.findPair(t, pair{graph, group}, o.slot).countOccurrence(&o)
			isGrouped = true
		}
	}
	if !isGrouped {
		c.findPair(t, pair{graph, ""}, o.slot).countOccurrence(&o)
	}
	if o.outcome != "" && o.outcome != checkpoint.OutcomeWithdrawn {
		if a := c.findAnswers(t, node{graph, q.Node}, o.slot); a != nil {
			a.countOutcome(&o, decision)
		}
	}
}
