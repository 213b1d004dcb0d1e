package runtime

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Cron is a schedule of a tenant, and the run that starts at its times.
type Cron struct {
	Tenant    string
	ID        string
	Schedule  string
	TimeZone  string        // of the IANA database, "" = UTC
	Graph     string        // of the runs, with the tenant
	Thread    string        // of the runs, with the tenant; "" = each firing makes one
	Run       payload.JSON  // what a firing starts, as transport keeps it
	Source    payload.JSON  // what a client has made it of, "" = none
	ThreadTTL time.Duration // how long threads that firings have made are kept, 0 = for good
	End       time.Time     // zero = none
	IsPaused  bool
	Metadata  map[string]string
	Next      time.Time   // zero = never
	Last      *CronFiring // nil = it has not fired
	CreatedBy string
	StartedBy string // the principal that starts its runs
	Created   time.Time
	Updated   time.Time // by a caller
	Revision  uint64    // the etag
}

// CronFiring is what came of one time of a schedule.
type CronFiring struct {
	Time    time.Time // of the schedule
	Fired   time.Time // when the run was accepted or refused
	Thread  string    // with the tenant
	Run     string    // "" = it was refused
	Reason  string    // of the refusal, "" = none
	Message string    // of the refusal
}

// CreateCronRequest is a request to make a cron.
type CreateCronRequest struct {
	Cron      Cron // an empty ID is made by the server
	RequestID string
	Digest    string // of the request's content, for RequestID
}

// CronRunChange is what a changed cron starts.
type CronRunChange struct {
	Graph     string // with the tenant; "" = that of the cron, and else it must be
	Thread    string // likewise
	Run       payload.JSON
	StartedBy string
}

// UpdateCronRequest is a request to change a cron. Nil fields stay.
type UpdateCronRequest struct {
	Tenant    string
	ID        string
	Etag      uint64 // 0 = any
	Schedule  *string
	TimeZone  *string
	Run       *CronRunChange
	Source    *payload.JSON
	ThreadTTL *time.Duration
	End       *time.Time
	IsPaused  *bool
	Metadata  map[string]string
	// ReplaceMetadata says that labels which are not in Metadata go. DropKeys are those that go
	// otherwise.
	ReplaceMetadata bool
	DropKeys        []string
	// Admits reports whether the caller may change this cron, nil = any.
	Admits func(cron *Cron) error
}

// CronQuery selects crons of a tenant. Zero fields select all.
type CronQuery struct {
	Tenant   string
	Graph    string
	Thread   string
	Metadata map[string]string // all must be equal
	After    CronPosition      // keyset page
	Limit    int
	IsBasic  bool // leaves out Run and Source
	MaxBytes int  // of the crons together, of which at least one is returned
}

// CronPosition is a place in a list of crons; zero = the start.
type CronPosition struct {
	Created time.Time
	ID      string
}

// Position returns where a cron stands.
func (c *Cron) Position() CronPosition { return CronPosition{Created: c.Created, ID: c.ID} }

// Size returns about how many bytes a cron holds.
func (c *Cron) Size() int {
	n := len(c.ID) + len(c.Schedule) + len(c.TimeZone) + len(c.Graph) + len(c.Thread) + len(c.Run) + len(c.Source)
	for key, value := range c.Metadata {
		n += len(key) + len(value)
	}
	return n
}

// NewCronNotFoundError returns the refusal of an id that no cron has.
func NewCronNotFoundError(id string) *Error {
	return Errorf(ReasonCronNotFound, "there is no cron %q", id).With("cronId", id)
}

// Outcomes of firings, for Observer.CronFired.
const (
	CronStarted = "started"
	CronRefused = "refused"
)
