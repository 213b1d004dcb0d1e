// Package crons keeps crons: schedules, and the runs that start at their times.
//
// A cron is a thread that no client can name. It is due at its next time, so that any server that
// shares the store fires it, and a firing is a run whose ids are computed of the cron and the time.
package crons

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// Graphs finds graphs.
type Graphs interface {
	// FindGraph returns a version of a graph, the newest without one. Errors: GRAPH_NOT_FOUND.
	FindGraph(name, version string) (*graph.Graph, error)
}

// Requests finds the requests that a thread remembers.
type Requests interface {
	// FindRequest returns nil when the thread has no such request. Errors: REQUEST_ID_CONFLICT.
	FindRequest(ctx context.Context, thread, id, digest string) (*checkpoint.Request, error)
}

// Counts counts the crons of tenants, for all servers.
type Counts interface {
	// AddThread takes one of the threads that a tenant may have. done is called once, with whether
	// the thread was made. Errors: QUOTA_EXCEEDED, and those of the store.
	AddThread(ctx context.Context, thread string) (done func(isMade bool), err error)
	// NoteRemoved notes that a thread was removed.
	NoteRemoved(thread string)
}

// Runs starts the runs of firings.
type Runs interface {
	// Start begins a run, or attaches to the one that the same request began before.
	Start(ctx context.Context, req runtime.StartRequest) (*runtime.Started, error)
	// UpdateThread sets when the thread of a firing is deleted.
	UpdateThread(ctx context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error)
}

// Options are the collaborators and limits of a Keeper.
type Options struct {
	Store     *commit.StoreClient
	Committer *commit.Committer
	Graphs    Graphs
	Requests  Requests
	Counts    Counts
	Runs      Runs
	// ParseRun makes a request of what a cron starts, without its ids. nil = this server fires none.
	ParseRun func(c *runtime.Cron) (runtime.StartRequest, error)
	Limit    int // crons of a tenant, as Counts knows it
	MaxBytes int // of one cron
	Observer runtime.Observer
	Logger   *zap.Logger
}

// Keeper keeps crons, and fires them.
type Keeper struct{ opts Options }

// New makes a Keeper.
func New(opts Options) *Keeper { return &Keeper{opts: opts} }

// CreateCron makes a cron. The errors are *Error: CRON_EXISTS, GRAPH_NOT_FOUND, INVALID_FIELD,
// PAYLOAD_TOO_LARGE, TOO_MANY_CRONS, REQUEST_ID_CONFLICT, and those of the store.
func (k *Keeper) CreateCron(ctx context.Context, req runtime.CreateCronRequest) (runtime.Cron, error) {
	if req.Cron.ID == "" {
		req.Cron.ID = newID(req.Cron.Tenant, req.RequestID)
	}
	if err := k.opts.Store.SyncClock(ctx); err != nil {
		return runtime.Cron{}, runtime.TranslateStoreError(err)
	}
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (runtime.Cron, error) {
		found, isFound, err := k.findCreated(ctx, &req, head)
		if err != nil || isFound {
			return found, err
		}
		return k.tryCreate(ctx, &req)
	})
}

// newID returns the id of a new cron. The same request makes the same one.
func newID(owner, request string) string {
	if request == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("cron\x00"+owner+"\x00"+request)).String()
}

// findCreated finds the cron that a repeated request has made. One of another request is refused.
func (k *Keeper) findCreated(ctx context.Context, req *runtime.CreateCronRequest, head *checkpoint.Head) (found runtime.Cron, isFound bool, err error) {
	id, thread := req.Cron.ID, threadName(req.Cron.Tenant, req.Cron.ID)
	*head, err = k.opts.Store.Head(ctx, thread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return found, false, nil
	}
	if err != nil {
		return found, false, runtime.TranslateStoreError(err)
	}
	if req.RequestID != "" {
		old, err := k.opts.Requests.FindRequest(ctx, thread, req.RequestID, req.Digest)
		if err != nil {
			return found, false, err
		}
		if old != nil {
			found, err = k.readHeadCron(ctx, head)
			return found, true, err
		}
	}
	return found, false, runtime.Errorf(runtime.ReasonCronExists, "cron %q exists", id).With("cronId", id)
}

// readHeadCron reads the cron of a head. The errors are *Error.
func (k *Keeper) readHeadCron(ctx context.Context, head *checkpoint.Head) (runtime.Cron, error) {
	r, err := parseRecord(head)
	if err != nil {
		return runtime.Cron{}, runtime.TranslateStoreError(err)
	}
	c, err := k.readCron(ctx, head, r)
	return c, runtime.TranslateStoreError(err)
}

// tryCreate makes a cron that there is not. Errors: those of CreateCron, and ErrConflict when another
// call has made it meanwhile.
func (k *Keeper) tryCreate(ctx context.Context, req *runtime.CreateCronRequest) (runtime.Cron, error) {
	c := req.Cron
	if _, err := k.opts.Graphs.FindGraph(c.Graph, ""); err != nil {
		return c, err
	}
	r := &record{
		Schedule: c.Schedule, TimeZone: c.TimeZone, Thread: c.Thread, ThreadTTL: c.ThreadTTL, End: c.End, IsPaused: c.IsPaused,
		CreatedBy: c.CreatedBy, StartedBy: c.StartedBy,
	}
	if err := k.checkCron(&c, r); err != nil {
		return c, err
	}
	thread := threadName(c.Tenant, c.ID)
	done, err := k.opts.Counts.AddThread(ctx, thread)
	if err != nil {
		return c, k.explainLimit(ctx, thread, err)
	}
	head := checkpoint.Head{Thread: thread, LogID: uuid.NewString()[:8], Created: k.opts.Store.CurrentTime(), State: checkpoint.ThreadIdle, Keep: checkpoint.KeepAll}
	made, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.RecordRequest(req.RequestID, req.Digest, "")
		t.Head.Metadata, r.Updated = c.Metadata, t.Now
		if err := r.setNextTime(t.Now); err != nil {
			return err
		}
		putSpec(t, &c)
		return r.putRecord(t)
	})
	done(err == nil)
	if err != nil {
		return c, err
	}
	shown := newCron(&made, r)
	shown.Run, shown.Source = c.Run, c.Source
	return shown, nil
}

// explainLimit returns the error of a cron that is beyond the limit, unless another call has made it.
func (k *Keeper) explainLimit(ctx context.Context, thread string, err error) error {
	if !errors.Is(err, &runtime.Error{Reason: runtime.ReasonQuotaExceeded}) {
		return err
	}
	if _, err := k.opts.Store.Head(ctx, thread); err == nil {
		return checkpoint.ErrConflict
	}
	return runtime.Errorf(runtime.ReasonTooManyCrons, "there are %d crons, as many as the server keeps (--max-crons); delete some that are not used", k.opts.Limit).
		WithLimit("max-crons", int64(k.opts.Limit), int64(k.opts.Limit)+1)
}

// checkCron refuses a cron that is too large, or never fires. What is paused need not fire.
func (k *Keeper) checkCron(c *runtime.Cron, r *record) error {
	if err := k.checkSize(c); err != nil {
		return err
	}
	s, err := ParseSchedule(r.Schedule, r.TimeZone)
	if err != nil {
		return err
	}
	now := k.opts.Store.CurrentTime()
	next := s.NextTime(now)
	switch {
	case next.IsZero():
		return newFieldError(fieldSchedule, "is %.100q, which no day has: want one that comes", r.Schedule)
	case !r.End.IsZero() && next.After(r.End):
		return newFieldError(fieldEnd, "is %s, and the schedule has no time before: want one after %s", r.End.UTC().Format(time.RFC3339), next.Format(time.RFC3339))
	}
	return nil
}

// checkSize refuses a cron that is too large. The error names its largest field.
func (k *Keeper) checkSize(c *runtime.Cron) error {
	all, field, largest := c.Size(), "cron.run", len(c.Run)
	if all <= k.opts.MaxBytes {
		return nil
	}
	if len(c.Source) > largest {
		field, largest = "cron.source", len(c.Source)
	}
	return runtime.Errorf(runtime.ReasonPayloadTooLarge, "%s has %d of the %d bytes of the cron; run, source and metadata may have %d together (--max-cron-bytes)",
		field, largest, all, k.opts.MaxBytes).
		With("field", field).With("sizeBytes", strconv.Itoa(all)).With("limitBytes", strconv.Itoa(k.opts.MaxBytes)).
		WithLimit("max-cron-bytes", int64(k.opts.MaxBytes), int64(all))
}

// GetCron returns a cron. The errors are *Error: CRON_NOT_FOUND, and those of the store.
func (k *Keeper) GetCron(ctx context.Context, owner, id string) (runtime.Cron, error) {
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (runtime.Cron, error) {
		r, err := k.readRecord(ctx, owner, id, head)
		if err != nil {
			return runtime.Cron{}, err
		}
		c, err := k.readCron(ctx, head, r)
		return c, runtime.TranslateStoreError(err)
	})
}

// readRecord reads the head of a cron that is not deleted.
func (k *Keeper) readRecord(ctx context.Context, owner, id string, head *checkpoint.Head) (r *record, err error) {
	*head, err = k.opts.Store.Head(ctx, threadName(owner, id))
	if err == nil {
		r, err = parseRecord(head)
	}
	if errors.Is(err, checkpoint.ErrThreadNotFound) || err == nil && r.IsDeleted {
		return nil, runtime.NewCronNotFoundError(id)
	}
	return r, runtime.TranslateStoreError(err)
}

// ListCrons lists crons, the newest first. more reports that others follow. Errors: those of the
// store.
func (k *Keeper) ListCrons(ctx context.Context, q runtime.CronQuery) (list []runtime.Cron, more bool, err error) {
	heads, err := k.opts.Store.Threads(ctx, newThreadQuery(&q))
	if err != nil {
		return nil, false, runtime.TranslateStoreError(err)
	}
	held := 0
	for i := range heads {
		if len(list) == q.Limit || held > q.MaxBytes {
			return list, true, nil
		}
		c, isDeleted, err := k.readListed(ctx, &heads[i], q.IsBasic)
		switch {
		case isDeleted, errors.Is(err, checkpoint.ErrCheckpointNotFound): // it was deleted, or changed
		case err != nil:
			return nil, false, runtime.TranslateStoreError(err)
		default:
			held += c.Size()
			list = append(list, c)
		}
	}
	return list, checkpoint.IsPart(heads, q.Limit+1, (*checkpoint.Head).Size), nil
}

// readListed reads a cron of a list. One that was changed since is read again.
func (k *Keeper) readListed(ctx context.Context, head *checkpoint.Head, isBasic bool) (c runtime.Cron, isDeleted bool, err error) {
	r, err := parseRecord(head)
	if err != nil || r.IsDeleted {
		return c, err == nil, err
	}
	if isBasic {
		return newCron(head, r), false, nil
	}
	c, err = k.readCron(ctx, head, r)
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		if *head, err = k.opts.Store.Head(ctx, head.Thread); errors.Is(err, checkpoint.ErrThreadNotFound) {
			return c, true, nil
		}
		if err == nil {
			c, err = k.readHeadCron(ctx, head)
		}
	}
	return c, false, err
}

// newThreadQuery returns the query of the threads of crons, in the order of their creation.
func newThreadQuery(q *runtime.CronQuery) checkpoint.ThreadQuery {
	labels := make(map[string]string, len(q.Metadata)+1)
	maps.Copy(labels, q.Metadata)
	if q.Thread != "" {
		labels[threadLabel] = q.Thread
	}
	threads := checkpoint.ThreadQuery{Tenant: hiddenTenant(q.Tenant), State: checkpoint.ThreadIdle, Graph: q.Graph, Metadata: labels, Limit: q.Limit + 1}
	if q.After.ID != "" {
		threads.Before = checkpoint.ThreadPosition{Created: q.After.Created, Thread: threadName(q.Tenant, q.After.ID)}
	}
	return threads
}

// UpdateCron changes a cron. A firing that is under way goes on as it began, and the next time is
// computed anew when the schedule, its end, or whether it is paused changes. The errors are *Error:
// CRON_NOT_FOUND, INVALID_FIELD, PAYLOAD_TOO_LARGE, ETAG_MISMATCH, and those of the store and of
// Admits.
func (k *Keeper) UpdateCron(ctx context.Context, req runtime.UpdateCronRequest) (runtime.Cron, error) {
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (c runtime.Cron, err error) {
		r, err := k.readRecord(ctx, req.Tenant, req.ID, head)
		if err != nil {
			return c, err
		}
		if c, err = k.readCron(ctx, head, r); err != nil {
			return c, runtime.TranslateStoreError(err)
		}
		changed, err := k.opts.Committer.TryChange(ctx, *head, func(t *commit.Tx) error { return k.applyUpdate(t, &c, r, &req) })
		if err != nil {
			return c, err
		}
		shown := newCron(&changed, r)
		shown.Run, shown.Source = c.Run, c.Source
		return shown, nil
	})
}

// applyUpdate puts a change of a cron into a change of its thread.
func (k *Keeper) applyUpdate(t *commit.Tx, c *runtime.Cron, r *record, req *runtime.UpdateCronRequest) (err error) {
	if req.Admits != nil {
		if err := req.Admits(c); err != nil {
			return err
		}
	}
	if err := checkRevision(t.Expect, req.Etag); err != nil {
		return err
	}
	if err := applyRun(c, r, req.Run); err != nil {
		return err
	}
	setIf(&c.Source, req.Source)
	setIf(&r.ThreadTTL, req.ThreadTTL)
	if r.ThreadTTL > 0 && r.Thread != "" {
		return newFieldError("cron.thread_ttl", "is for crons whose firings make threads: leave it unset")
	}
	if c.Metadata, err = runtime.ChangeLabels("cron.metadata", c.Metadata, req.Metadata, req.DropKeys, req.ReplaceMetadata); err != nil {
		return err
	}
	if err := k.applySchedule(t, c, r, req); err != nil {
		return err
	}
	if req.Run != nil || req.Source != nil {
		putSpec(t, c)
	}
	t.Head.Metadata, r.Updated = c.Metadata, t.Now
	return r.putRecord(t)
}

// applyRun replaces what a cron starts. Its graph and its thread stay: they decide who sees it.
func applyRun(c *runtime.Cron, r *record, change *runtime.CronRunChange) error {
	switch {
	case change == nil:
		return nil
	case change.Graph != "" && change.Graph != c.Graph:
		return newFieldError("cron.run.graph", "must stay as it is: make another cron for another graph")
	case change.Thread != c.Thread:
		return newFieldError("cron.run.thread_id", "must stay as it is: make another cron for another thread")
	}
	c.Run, r.StartedBy = change.Run, change.StartedBy
	return nil
}

// applySchedule changes when a cron fires.
func (k *Keeper) applySchedule(t *commit.Tx, c *runtime.Cron, r *record, req *runtime.UpdateCronRequest) error {
	setIf(&r.Schedule, req.Schedule)
	setIf(&r.TimeZone, req.TimeZone)
	setIf(&r.End, req.End)
	setIf(&r.IsPaused, req.IsPaused)
	c.Schedule, c.TimeZone = r.Schedule, r.TimeZone
	if req.Schedule == nil && req.TimeZone == nil && req.End == nil && req.IsPaused == nil {
		return k.checkSize(c)
	}
	bare := *r
	bare.End = time.Time{} // an end that has passed ends the cron
	if err := k.checkCron(c, &bare); err != nil {
		return err
	}
	return r.setNextTime(t.Now)
}

func checkRevision(is, want uint64) error {
	if want == 0 || want == is {
		return nil
	}
	return runtime.Errorf(runtime.ReasonEtagMismatch, "the cron was changed; read it again").With("current", strconv.FormatUint(is, 10))
}

func setIf[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}

// DeleteCron deletes a cron. One with a firing under way fires no more, and goes when that is done.
// The errors are *Error: CRON_NOT_FOUND, ETAG_MISMATCH, and those of the store and of admits.
func (k *Keeper) DeleteCron(ctx context.Context, owner, id string, etag uint64, admits func(c *runtime.Cron) error) error {
	_, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (none struct{}, err error) {
		r, err := k.readRecord(ctx, owner, id, head)
		if err != nil {
			return none, err
		}
		c := newCron(head, r)
		if admits != nil {
			if err := admits(&c); err != nil {
				return none, err
			}
		}
		if err := checkRevision(head.Revision, etag); err != nil {
			return none, err
		}
		return none, k.removeCron(ctx, *head, r)
	})
	return err
}

// removeCron deletes the thread of a cron, or marks it until its firing is done. Errors: ErrConflict,
// and those of the store.
func (k *Keeper) removeCron(ctx context.Context, head checkpoint.Head, r *record) error {
	isBusy := !r.Firing.IsZero() || r.Expiring != ""
	_, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		if isBusy {
			r.IsDeleted, r.Next = true, time.Time{}
			return r.putRecord(t)
		}
		t.Delete = true
		return nil
	})
	if err == nil && !isBusy {
		k.opts.Counts.NoteRemoved(head.Thread)
	}
	return err
}
