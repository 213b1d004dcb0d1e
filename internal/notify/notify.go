// Package notify tells endpoints what happens to questions: it reads the questions that have
// changed, finds the entries of their trails that an endpoint has not got, and sends each of
// them at least once, those of a question in order.
package notify

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/trail"
)

// Endpoint is who is told, and of what.
type Endpoint struct {
	Name   string
	Tenant string       // whose questions; "" = all
	Graphs []string     // names without the tenant; empty = all
	Groups []string     // of those who may answer; empty = all questions
	Kinds  []trail.Kind // of entries; empty = all
}

// Event is one entry of the trail of a question, to be sent.
type Event struct {
	ID       string // the same whenever the event is sent again
	Question *checkpoint.Interrupt
	Entry    trail.Entry
}

// newEvent returns the event of an entry. The names of tenants, threads and questions have no
// slash.
func newEvent(q *checkpoint.Interrupt, entry trail.Entry) Event {
	owner, thread := tenant.Split(q.Thread)
	id := thread + "/" + q.ID + "/" + strconv.Itoa(entry.Number)
	if owner != tenant.Default {
		id = owner + "/" + id
	}
	return Event{ID: id, Question: q, Entry: entry}
}

// wantsQuestion reports whether the endpoint is told of a question. A breakpoint asks nothing.
func (e *Endpoint) wantsQuestion(q *checkpoint.Interrupt) bool {
	switch {
	case q.Reason == checkpoint.ReasonBreakpoint, !tenant.Contains(e.Tenant, q.Thread),
		len(e.Graphs) > 0 && !slices.Contains(e.Graphs, tenant.ClientName(q.Graph)):
		return false
	case len(e.Groups) == 0:
		return true
	}
	isNamed := func(group string) bool { return slices.Contains(e.Groups, group) }
	return q.Policy != nil && slices.ContainsFunc(q.Policy.Groups, isNamed) || slices.ContainsFunc(q.PropertyChanges().AddedGroups, isNamed)
}

func (e *Endpoint) wantsEntry(entry *trail.Entry) bool {
	return len(e.Kinds) == 0 || slices.Contains(e.Kinds, entry.Kind)
}

// Place is how far an endpoint is.
type Place struct {
	// Change is the number up to which all changes of questions are done.
	Change uint64
	// Whole is a moment, by the store's clock, from before which all entries are done.
	Whole  time.Time
	IsDead bool // events were given up since the last one that was taken
}

// ErrHeld is the error of a place that another server holds.
var ErrHeld = errors.New("another server sends to the endpoint")

// Keeper keeps the place of an endpoint for the servers that share a store. One of them holds it
// at a time.
type Keeper interface {
	// TakePlace holds the place for this server, or fails with ErrHeld.
	TakePlace(ctx context.Context) (Place, error)
	// SavePlace stores the place, and holds it for a further time. It fails with ErrHeld when
	// another server holds it now.
	SavePlace(ctx context.Context, p Place) error
	// ReleasePlace stores the place and leaves it to another server.
	ReleasePlace(ctx context.Context, p Place) error
}

// Source reads the questions that change. One goroutine uses it.
type Source interface {
	// Next waits for changes, and returns at least one, in their order.
	Next(ctx context.Context) ([]*checkpoint.Interrupt, error)
	// WholeUntil returns a moment, by the store's clock: Next has returned each question as it
	// was then, or as it became later. Zero means that there is none yet.
	WholeUntil() time.Time
	Close()
}

// ErrGone is the error of an endpoint that takes no events any more.
var ErrGone = errors.New("the endpoint is gone")

// Sender sends an event. The error is ErrGone when the endpoint takes no further ones.
type Sender interface {
	SendEvent(ctx context.Context, e *Event) error
}

// State is what an operator has to know of an endpoint.
type State string

// States of an endpoint.
const (
	StateLive State = "live"
	StateDead State = "dead" // events were given up since the last one that was taken
	StateOff  State = "off"  // it has said that it is gone
)

// Outcome is what became of an attempt to send an event.
type Outcome string

// Outcomes of attempts.
const (
	Sent    Outcome = "sent"
	Failed  Outcome = "failed"
	GivenUp Outcome = "given_up" // the last attempt failed, too
)

// Observer counts what is sent.
type Observer interface {
	CountWebhookEvent(endpoint string, outcome Outcome)
	SetWebhookState(endpoint string, s State)
}
