package due

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// expireInterrupts applies the expiry of each interrupt that was not answered in time.
func (p *Processor) expireInterrupts(ctx context.Context, head checkpoint.Head) error {
	_, err := p.opts.Changer.ChangeFrom(ctx, head, func(t *commit.Tx) error {
		if t.Head.Run != head.Run {
			return checkpoint.ErrConflict
		}
		open, err := p.opts.Reader.ListOpenInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		t.Head.Updated, t.Head.Due = head.Updated, time.Time{}
		if t.Head.State != checkpoint.ThreadBusy {
			t.Head.Due = commit.ExpiryTime(&t.Head)
		}
		late := takeExpired(t, open)
		if len(late) == 0 {
			return nil
		}
		return p.putExpired(ctx, t, late)
	})
	p.opts.WakeScheduler()
	return err
}

// takeExpired returns the expired interrupts, and schedules the thread for the others. It
// puts the others whose steps are due into the change.
func takeExpired(t *commit.Tx, open []checkpoint.Interrupt) []checkpoint.Interrupt {
	var late []checkpoint.Interrupt
	for _, q := range open {
		stepped := q.TakeSteps(t.Now)
		if q.Expires.IsZero() || q.Expires.After(t.Now) {
			t.ScheduleBy(q.DueTime())
			if stepped {
				t.Interrupts = append(t.Interrupts, q)
			}
			continue
		}
		q.State, q.Updated = checkpoint.InterruptExpired, t.Now
		if q.Expiry == checkpoint.ExpiryResumeDefault {
			q.Response = orNull(q.Default)
		}
		late = append(late, q)
	}
	return late
}

// putExpired puts the end of some interrupts into a change: their nodes go on, with
// the default or with the failure that there was no answer, or the run is
// cancelled. A run that has failed has ended: its nodes find the expiry when it is
// continued.
func (p *Processor) putExpired(ctx context.Context, t *commit.Tx, late []checkpoint.Interrupt) error {
	t.Interrupts = append(t.Interrupts, late...)
	t.Head.Open = max(0, t.Head.Open-len(late))
	t.Head.Updated = t.Now
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: late})
	hasFailed := t.Head.State == checkpoint.ThreadFailed
	for _, q := range late {
		if q.Expiry != checkpoint.ExpiryCancelRun || hasFailed {
			t.Head.Answered++
			continue
		}
		return p.cancelExpiredRun(ctx, t)
	}
	if t.Head.Owner == "" && !hasFailed {
		t.ScheduleBy(t.Now)
	}
	return nil
}

// cancelExpiredRun ends the run whose interrupt expired, or asks its driver to.
func (p *Processor) cancelExpiredRun(ctx context.Context, t *commit.Tx) error {
	request := checkpoint.Cancel{Run: t.Head.Run, Reason: "a question expired"}
	if t.Head.State == checkpoint.ThreadBusy {
		if err := p.opts.Canceller.PutRequest(ctx, t, request); !errors.Is(err, commit.ErrNoChange) {
			return err
		}
		return nil
	}
	run, err := p.opts.Store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	return p.opts.Canceller.PutCancelledEnd(ctx, t, run, request)
}

func orNull(v payload.JSON) payload.JSON {
	if v == "" {
		return payload.Null
	}
	return v
}
