package worker

import (
	"context"

	"github.com/graphd-dev/graphd/internal/worker/lease"
)

// waitForJob returns the task of a lease. For a lease of another server it waits until
// the run has asked for the task, and has the call repeated if that takes too long.
func (h *Hub) waitForJob(ctx context.Context, token string) (*job, error) {
	if j := h.findJob(token); j != nil {
		return j, nil
	}
	l, ok := h.dispatcher.signer.ParseToken(token)
	if !ok {
		return nil, lease.NewLostError("")
	}
	for {
		c, held := h.claimForCall(l)
		switch c {
		case claimLost:
			return nil, lease.NewLostError(l.TaskID())
		case claimUndecided:
			if err := h.waitForRun(ctx, held); err != nil {
				return nil, err
			}
		case claimGranted:
		}
		if j := h.findJob(token); j != nil {
			return j, nil
		}
	}
}

// findJob returns the task of a valid lease, else nil. The task has begun,
// because its worker calls.
func (h *Hub) findJob(token string) *job {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	j := h.dispatcher.jobsByLease[token]
	if j != nil && j.stage == stageOffered {
		j.stage = stageStarted
	}
	return j
}

// claimForCall claims a lease for a call of its worker. A call that has to wait for
// the run is counted until waitForRun returns.
func (h *Hub) claimForCall(l lease.Lease) (c claimResult, held *lease.Reclaimed[Session]) {
	d := h.dispatcher
	d.updateState(func() (list []notice) {
		if d.jobsByLease[l.Token] != nil {
			c = claimGranted
			return nil
		}
		if c, list = d.claimUnknownLease(nil, l); c == claimUndecided {
			held = d.reclaims.FindPlace(l.Place())
			d.reclaims.AddWaitingCalls(held, +1)
		}
		return list
	})
	return c, held
}

// waitForRun waits until the run of a reclaimed lease has requested its task. The
// error asks the caller to repeat the call when the run has not.
func (h *Hub) waitForRun(ctx context.Context, held *lease.Reclaimed[Session]) error {
	select {
	case <-held.Decided():
	case <-ctx.Done():
	}
	d := h.dispatcher
	d.mu.Lock()
	d.reclaims.AddWaitingCalls(held, -1)
	open := held.IsUnclaimed() && !d.history.IsRejected(held.Token)
	over := d.jobsByLease[held.Token] == nil && d.reclaims.FindPlace(held.Place()) == nil && !d.history.IsCompleted(held.Token)
	d.mu.Unlock()
	switch {
	case ctx.Err() != nil, over && open:
		return lease.NewNotTakenUpError(held.TaskID())
	case over:
		return lease.NewLostError(held.TaskID())
	}
	return nil
}
