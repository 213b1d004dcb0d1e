package due

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// endWaits applies the expiry of each interrupt that was not answered in time, and puts the
// answers in effect that can't be taken back any more.
func (p *Processor) endWaits(ctx context.Context, head checkpoint.Head) error {
	_, err := p.opts.Changer.ChangeFrom(ctx, head, func(t *commit.Tx) error {
		if t.Head.Run != head.Run {
			return checkpoint.ErrConflict
		}
		waiting, err := p.opts.Reader.ListWaitingInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		t.Head.Updated, t.Head.Due = head.Updated, time.Time{}
		if t.Head.State != checkpoint.ThreadBusy {
			t.Head.Due = commit.RestDueTime(&t.Head)
		}
		return p.putDue(ctx, t, waiting)
	})
	p.opts.WakeScheduler()
	return err
}

// putDue puts into a change what is due of the waiting interrupts of a thread: their steps,
// their expiry, the effect of their answers. It schedules the thread for the others. No answer
// takes effect in a run that an expiry cancels.
func (p *Processor) putDue(ctx context.Context, t *commit.Tx, waiting []checkpoint.Interrupt) error {
	var expired []checkpoint.Interrupt
	for i := range waiting {
		if q := &waiting[i]; q.State == checkpoint.InterruptOpen && takeSteps(t, q) {
			expired = append(expired, *q)
		}
	}
	cancels := t.Head.State != checkpoint.ThreadFailed && slices.ContainsFunc(expired, func(q checkpoint.Interrupt) bool {
		return q.Expiry == checkpoint.ExpiryCancelRun
	})
	answered := 0
	if !cancels {
		answered = putEffects(t, waiting)
	}
	if len(expired)+answered == 0 {
		return nil
	}
	t.Head.Updated = t.Now
	if t.Head.State != checkpoint.ThreadBusy {
		t.ScheduleBy(commit.RestDueTime(&t.Head))
	}
	if !cancels && (answered > 0 || t.Head.NeedsAllAnswers) {
		passBreakpoints(t, waiting, t.Head.Answered+len(expired) > 0)
	}
	return p.putExpired(ctx, t, expired)
}

// putEffects puts the answers in effect whose time has come, and returns how many there are. It
// schedules the thread for the others. The last of them says whether the run needs all answers.
func putEffects(t *commit.Tx, waiting []checkpoint.Interrupt) (answered int) {
	var due []*checkpoint.Interrupt
	for i := range waiting {
		q := &waiting[i]
		switch {
		case q.State != checkpoint.InterruptRetractable:
		case q.Effective.After(t.Now):
			t.ScheduleBy(q.Effective)
		default:
			due = append(due, q)
		}
	}
	slices.SortStableFunc(due, func(a, b *checkpoint.Interrupt) int { return a.Effective.Compare(b.Effective) })
	for _, q := range due {
		t.EndWait(q, checkpoint.InterruptAnswered)
		t.Head.NeedsAllAnswers = q.NeedsAllAnswers
		t.Interrupts = append(t.Interrupts, *q)
	}
	t.Head.Answered += len(due)
	return len(due)
}

// takeSteps takes the steps of an open interrupt that are due, puts them into the change, and
// schedules the thread for the next. isExpired says that the interrupt is to be put as expired.
func takeSteps(t *commit.Tx, q *checkpoint.Interrupt) (isExpired bool) {
	stepped := q.TakeSteps(t.Now)
	if q.Expires.IsZero() || q.Expires.After(t.Now) {
		t.ScheduleBy(q.DueTime())
		if stepped {
			t.Interrupts = append(t.Interrupts, *q)
		}
		return false
	}
	t.EndWait(q, checkpoint.InterruptExpired)
	if q.Expiry == checkpoint.ExpiryResumeDefault {
		q.Response, q.Hidden.Response = orNull(q.Default), q.Hidden.Default
	}
	return true
}

// passBreakpoints puts the breakpoints of a thread into a change as passed, if nothing else
// keeps it from going on, as an answer does that takes effect at once.
func passBreakpoints(t *commit.Tx, waiting []checkpoint.Interrupt, hasAnswers bool) {
	var passed []checkpoint.Interrupt
	for i := range waiting {
		switch q := &waiting[i]; {
		case !q.IsWaiting():
		case q.Reason != checkpoint.ReasonBreakpoint:
			if t.Head.NeedsAllAnswers {
				return
			}
		default:
			passed = append(passed, *q)
		}
	}
	if len(passed) == 0 || !hasAnswers {
		return
	}
	for i := range passed {
		t.EndWait(&passed[i], checkpoint.InterruptConsumed)
	}
	t.Interrupts = append(t.Interrupts, passed...)
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: passed})
}

// putExpired puts the expiry of some interrupts into a change: their nodes go on, with
// the default or with the failure that there was no answer, or the run is
// cancelled. A run that has failed has ended: its nodes find the expiry when it is
// continued.
func (p *Processor) putExpired(ctx context.Context, t *commit.Tx, expired []checkpoint.Interrupt) error {
	if len(expired) > 0 {
		t.Interrupts = append(t.Interrupts, expired...)
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: expired})
	}
	hasFailed := t.Head.State == checkpoint.ThreadFailed
	for i := range expired {
		if expired[i].Expiry != checkpoint.ExpiryCancelRun || hasFailed {
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
