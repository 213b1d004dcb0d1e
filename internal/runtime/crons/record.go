package crons

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// prefix begins the tenants of crons. No tenant may have such a name.
const prefix = "~crons:"

// hiddenTenant is the tenant of the crons of a tenant.
func hiddenTenant(owner string) string { return prefix + owner }

func threadName(owner, id string) string { return hiddenTenant(owner) + string(tenant.Separator) + id }

// IsCron reports whether a thread is a cron.
func IsCron(thread string) bool { return strings.HasPrefix(thread, prefix) }

// Labels of the head of a cron. Labels of clients have no such keys.
const (
	recordLabel = "\x00cron"   // the record
	threadLabel = "\x00thread" // the thread of the runs, for the index
)

// record is a cron as its head has it: what lists show, and how far its firings are. What it starts
// stands in the checkpoint.
type record struct {
	Schedule  string        `json:"schedule"`
	TimeZone  string        `json:"zone,omitempty"`
	Thread    string        `json:"thread,omitempty"`
	ThreadTTL time.Duration `json:"ttl,omitempty"`
	End       time.Time     `json:"end,omitzero"`
	IsPaused  bool          `json:"paused,omitempty"`
	CreatedBy string        `json:"createdBy,omitempty"`
	StartedBy string        `json:"startedBy,omitempty"`
	Updated   time.Time     `json:"updated"`
	Next      time.Time     `json:"next,omitzero"`
	// Firing is the time of a firing that has begun and is not recorded as done, zero = none.
	Firing time.Time `json:"firing,omitzero"`
	// Expiring is the thread of a firing whose expiry is to be set, "" = none.
	Expiring  string  `json:"expiring,omitempty"`
	Last      *firing `json:"last,omitempty"`
	IsDeleted bool    `json:"deleted,omitempty"` // it goes when its firing is done
}

// firing is what came of one time of the schedule.
type firing struct {
	Time    time.Time `json:"time"`
	Fired   time.Time `json:"fired"`
	Thread  string    `json:"thread"`
	Run     string    `json:"run,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
}

// Channels of the checkpoint. They have JSON of clients as it came.
const (
	channelRun    = "run"
	channelSource = "source"
)

// parseRecord returns the record of a head. Errors: checkpoint.ErrCorrupt.
func parseRecord(head *checkpoint.Head) (*record, error) {
	r := &record{}
	if err := json.Unmarshal([]byte(head.Metadata[recordLabel]), r); err != nil {
		return nil, fmt.Errorf("%w: cron %q: %w", checkpoint.ErrCorrupt, tenant.ClientName(head.Thread), err)
	}
	return r, nil
}

// putRecord puts a record into the change of a cron, whose other labels stay, and makes the cron due
// when there is something to do.
func (r *record) putRecord(t *commit.Tx) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a cron: %w", err)
	}
	labels := maps.Clone(t.Head.Metadata) // the map that was read stays as it is
	if labels == nil {
		labels = map[string]string{}
	}
	labels[recordLabel] = string(text)
	if r.Thread != "" {
		labels[threadLabel] = r.Thread
	}
	t.Head.Metadata = labels
	switch {
	case !r.Firing.IsZero() && !t.Head.Due.IsZero(): // the server that has begun it says until when
	case !r.Firing.IsZero():
		t.Head.Due = t.Now
	case r.Expiring != "", r.IsDeleted:
		t.Head.Due = t.Now
	default:
		t.Head.Due = r.Next
	}
	return nil
}

// setNextTime sets when the cron fires next after a time.
func (r *record) setNextTime(after time.Time) error {
	r.Next = time.Time{}
	s, err := ParseSchedule(r.Schedule, r.TimeZone)
	if err != nil || r.IsPaused || r.IsDeleted {
		return err
	}
	if next := s.NextTime(after); r.End.IsZero() || !next.After(r.End) {
		r.Next = next
	}
	return nil
}

// putSpec makes what a cron starts the only checkpoint of its thread.
func putSpec(t *commit.Tx, c *runtime.Cron) {
	t.Head.Seq++
	cp := &checkpoint.Checkpoint{ID: fmt.Sprintf("%010d", t.Head.Seq), Seq: t.Head.Seq, Graph: c.Graph, Source: checkpoint.SourceUpdate, Time: t.Now}
	for _, part := range []struct {
		name  string
		value payload.JSON
	}{{channelRun, c.Run}, {channelSource, c.Source}} {
		if part.value != "" {
			cp.Channels = append(cp.Channels, checkpoint.Channel{Name: part.name, Version: cp.Seq, Stored: cp.Seq, Value: part.value})
		}
	}
	if t.Expect != 0 {
		t.DropAfter = new(uint64) // all
	}
	t.Checkpoints = append(t.Checkpoints, cp)
	t.Head.Checkpoint, t.Head.FirstSeq, t.Head.Graph = cp.ID, cp.Seq, c.Graph
}

// readCron reads a cron with what it starts. Errors: those of the store.
func (k *Keeper) readCron(ctx context.Context, head *checkpoint.Head, r *record) (runtime.Cron, error) {
	c := newCron(head, r)
	cp, err := k.opts.Store.Checkpoint(ctx, head.Thread, "", head.Checkpoint)
	if err != nil {
		return c, err
	}
	for i := range cp.Channels {
		switch cp.Channels[i].Name {
		case channelRun:
			c.Run = cp.Channels[i].Value
		case channelSource:
			c.Source = cp.Channels[i].Value
		}
	}
	return c, nil
}

// newCron returns what the head has of a cron.
func newCron(head *checkpoint.Head, r *record) runtime.Cron {
	held, id := tenant.Split(head.Thread)
	c := runtime.Cron{
		Tenant: strings.TrimPrefix(held, prefix), ID: id, Schedule: r.Schedule, TimeZone: r.TimeZone, Graph: head.Graph, Thread: r.Thread,
		ThreadTTL: r.ThreadTTL, End: r.End, IsPaused: r.IsPaused, Next: r.Next, CreatedBy: r.CreatedBy, StartedBy: r.StartedBy,
		Created: head.Created, Updated: r.Updated, Revision: head.Revision, Metadata: maps.Clone(head.Metadata),
	}
	maps.DeleteFunc(c.Metadata, func(key, _ string) bool { return key == recordLabel || key == threadLabel })
	if r.Last != nil {
		c.Last = &runtime.CronFiring{
			Time: r.Last.Time, Fired: r.Last.Fired, Thread: r.Last.Thread, Run: r.Last.Run, Reason: r.Last.Reason, Message: r.Last.Message,
		}
	}
	return c
}
