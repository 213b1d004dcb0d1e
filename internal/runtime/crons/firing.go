package crons

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// A firing is four changes, and a server may die between any two: the cron notes that the firing has
// begun; the run starts; the cron notes what came of it, and its next time; a thread that the firing
// has made gets its end. Whichever server comes next goes on with the same run. The thread gets its
// end last: a thread that was deleted would forget that its run has started.

// firingTime is how long a server may take to start the run of a firing before another one does it as
// well. The run is the same, whichever comes first.
const firingTime = 15 * time.Second

// maxMessageBytes bounds the message of a refusal that is kept.
const maxMessageBytes = 500

// ProcessDue fires a cron that is due, or goes on with a firing. Errors: ErrConflict, and those of the
// store.
func (k *Keeper) ProcessDue(ctx context.Context, head checkpoint.Head) error {
	r, err := parseRecord(&head)
	switch {
	case err != nil:
		return err
	case head.Due.IsZero(), head.Due.After(head.Now), k.opts.ParseRun == nil:
		return nil // it was listed as due before
	case r.IsDeleted:
		return k.finishDeleted(ctx, head, r)
	case !r.Firing.IsZero():
		return k.fireCron(ctx, head, r.Firing)
	case r.Expiring != "":
		return k.expireThread(ctx, head, r)
	case r.Next.IsZero(), r.Next.After(head.Now):
		return k.changeRecord(ctx, head, r, func(*commit.Tx) {})
	}
	return k.fireCron(ctx, head, r.Next)
}

// changeRecord makes one change of the record of a cron that no caller has asked for.
func (k *Keeper) changeRecord(ctx context.Context, head checkpoint.Head, r *record, change func(t *commit.Tx)) error {
	_, err := k.tryRecord(ctx, head, r, change)
	return err
}

func (k *Keeper) tryRecord(ctx context.Context, head checkpoint.Head, r *record, change func(t *commit.Tx)) (checkpoint.Head, error) {
	return k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.ClearFaults()
		change(t)
		return r.putRecord(t)
	})
}

// fireCron starts the run of a time of the schedule, once: the ids of the run are computed of the
// cron and the time.
func (k *Keeper) fireCron(ctx context.Context, head checkpoint.Head, at time.Time) error {
	r, err := parseRecord(&head)
	if err != nil {
		return err
	}
	r.Firing = at
	claimed, err := k.tryRecord(ctx, head, r, func(t *commit.Tx) { t.Head.Due = t.Now.Add(firingTime) })
	if err != nil {
		return err
	}
	done, err := k.startRun(ctx, &claimed, r)
	if err != nil {
		return err
	}
	if done == nil { // this server has no room for it; it is tried again
		return nil
	}
	return k.finishFiring(ctx, claimed.Thread, done)
}

// startRun starts the run of a firing, nil = it has to wait. Errors: those of the store.
func (k *Keeper) startRun(ctx context.Context, head *checkpoint.Head, r *record) (*firing, error) {
	c, err := k.readCron(ctx, head, r)
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) { // the cron was changed meanwhile
		return nil, checkpoint.ErrConflict
	}
	if err != nil {
		return nil, err
	}
	done := &firing{Time: r.Firing, Thread: firingThread(head, r)}
	req, err := k.opts.ParseRun(&c)
	if err == nil {
		setIDs(&req, head, &c, done)
		var started *runtime.Started
		if started, err = k.opts.Runs.Start(ctx, req); err == nil {
			done.Run = started.Run.ID
		}
	}
	if err == nil {
		k.opts.Observer.CronFired(c.Graph, runtime.CronStarted)
		return done, nil
	}
	return k.noteRefusal(&c, done, err)
}

// setIDs makes a request that of a firing.
func setIDs(req *runtime.StartRequest, head *checkpoint.Head, c *runtime.Cron, f *firing) {
	if c.Thread == "" {
		req.CreateThread = true
	}
	req.Thread, req.Graph = f.Thread, c.Graph
	req.Run = firingID(head, f.Time, "run").String()
	req.RequestID, req.Digest = req.Run, "cron" // what the cron starts may change before a repeat
	req.By = runtime.Actor{Name: c.StartedBy}
}

// firingID computes an id of a firing. A cron that was deleted and made again has others.
func firingID(head *checkpoint.Head, at time.Time, of string) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("cron\x00"+of+"\x00"+head.Thread+"\x00"+head.LogID+"\x00"+strconv.FormatInt(at.Unix(), 10)))
}

// firingThread returns the thread of the firing that is under way.
func firingThread(head *checkpoint.Head, r *record) string {
	if r.Thread != "" {
		return r.Thread
	}
	held, _ := tenant.Split(head.Thread)
	owner := held[len(prefix):]
	id := firingID(head, r.Firing, "thread").String()
	if qualified, err := tenant.Qualify(owner, id); err == nil {
		return qualified
	}
	return id
}

// noteRefusal notes in a firing why its run was refused. It returns nil for a run that has to wait,
// because the server is full or goes down. Errors: those of the store.
func (k *Keeper) noteRefusal(c *runtime.Cron, f *firing, err error) (*firing, error) {
	refusal, isRefusal := errors.AsType[*runtime.Error](err)
	switch {
	case runtime.IsStoreFault(err), !isRefusal:
		return nil, err
	case refusal.Reason == runtime.ReasonServerDraining, refusal.Reason == runtime.ReasonTooManyRuns:
		return nil, nil //nolint:nilnil // it waits
	}
	f.Reason, f.Message = refusal.Reason, refusal.Message
	if len(f.Message) > maxMessageBytes {
		f.Message = f.Message[:maxMessageBytes]
	}
	k.opts.Observer.CronFired(c.Graph, runtime.CronRefused)
	k.opts.Logger.Warn("a cron has fired and its run was refused", zap.String("cron", c.ID), zap.String("thread", tenant.ClientName(f.Thread)), zap.Error(err))
	return f, nil
}

// finishFiring notes what came of a firing, and the next time of the cron, which a caller may have
// changed meanwhile.
func (k *Keeper) finishFiring(ctx context.Context, thread string, done *firing) error {
	finished, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (next checkpoint.Head, err error) {
		if *head, err = k.opts.Store.Head(ctx, thread); err != nil {
			return next, err
		}
		r, err := parseRecord(head)
		if err != nil || !r.Firing.Equal(done.Time) {
			return next, err // another server has noted it
		}
		return k.tryRecord(ctx, *head, r, func(t *commit.Tx) {
			done.Fired = t.Now
			r.Firing, r.Last = time.Time{}, done
			if r.Thread == "" && r.ThreadTTL > 0 && done.Run != "" {
				r.Expiring = done.Thread
			}
			if err := r.setNextTime(laterOf(t.Now, done.Time)); err != nil { // the time of a server may lag
				k.opts.Logger.Error("a cron has a schedule that can't be read", zap.Error(err))
			}
		})
	})
	if errors.Is(err, checkpoint.ErrThreadNotFound) { // another server has removed it
		return nil
	}
	if err != nil || finished.Revision == 0 {
		return err
	}
	r, err := parseRecord(&finished)
	if err != nil || r.Expiring == "" {
		return err
	}
	return k.expireThread(ctx, finished, r)
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// expireThread gives the thread of the last firing its end.
func (k *Keeper) expireThread(ctx context.Context, head checkpoint.Head, r *record) error {
	if err := k.setThreadTTL(ctx, r.Expiring, r.ThreadTTL); err != nil {
		return err
	}
	if r.Expiring = ""; r.IsDeleted {
		return k.removeCron(ctx, head, r)
	}
	return k.changeRecord(ctx, head, r, func(*commit.Tx) {})
}

func (k *Keeper) setThreadTTL(ctx context.Context, thread string, ttl time.Duration) error {
	_, err := k.opts.Runs.UpdateThread(ctx, runtime.UpdateThreadRequest{Thread: thread, Expiration: &runtime.Expiration{TTL: ttl}})
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonThreadNotFound}) {
		return nil
	}
	return err
}

// finishDeleted removes a cron that was deleted while it fired. A run that has not started by then is
// not started.
func (k *Keeper) finishDeleted(ctx context.Context, head checkpoint.Head, r *record) error {
	if !r.Firing.IsZero() && r.Thread == "" && r.ThreadTTL > 0 {
		r.Expiring = firingThread(&head, r)
	}
	r.Firing = time.Time{}
	if r.Expiring == "" {
		return k.removeCron(ctx, head, r)
	}
	return k.expireThread(ctx, head, r)
}
