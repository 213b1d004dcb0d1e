package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/contain"
)

// Bounds of the events of a task that wait to be sent. What is more is dropped, or waits if it must be
// kept.
const (
	maxWaitingEvents = 1000
	maxWaitingBytes  = 1 << 20
)

// attempt is one task that the worker has. Its fields are under the lock of the session.
type attempt struct {
	session    *Session
	assignment *graphdv1.TaskAssignment
	token      []byte

	held context.Context //nolint:containedctx // ends when the task is lost, or the worker has left
	drop context.CancelCauseFunc
	ctx  context.Context //nolint:containedctx // of the function: ends when the task is stopped
	stop context.CancelCauseFunc

	begun         time.Time
	hasReturned   bool // the function has ended
	isStopped     bool // the server wants no result any more
	isLost        bool // another worker has it
	isReleased    bool // the worker leaves before it has ended
	isUndecided   bool // another server may give it away
	isAnnounced   bool // the server knows that it has begun
	needsAnnounce bool

	events     []*graphdv1.EmitItem
	eventBytes int
	dropped    uint64
	sent       uint64

	sentResult *graphdv1.CompleteTaskRequest // that the stream has not answered, nil = none
}

// lose ends an attempt that another worker has. The caller holds the lock.
func (a *attempt) lose() {
	a.isLost = true
	a.drop(ErrLost)
}

// announce has the server told that the task has begun: it stays here then when the stream breaks.
func (a *attempt) announce() {
	a.session.mu.Lock()
	a.needsAnnounce = !a.isAnnounced
	a.session.mu.Unlock()
	a.session.wakeSender()
}

// BeginEffect waits until it is certain that the task is this worker's.
func (a *attempt) BeginEffect(ctx context.Context) error {
	s := a.session
	a.announce()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.held, contain.Func(func() { cancel(context.Cause(a.held)) }, contain.LogPanic(s.log, "a memo was not ended")))()
	isAsked := false
	return s.waitFor(ctx, func() bool {
		isSure := s.certainty.isSure(time.Now())
		if !isSure && !isAsked {
			isAsked, s.isBeatDue = true, true
			s.wakeSender()
		}
		return isSure && a.isAnnounced && !a.isUndecided && !a.isLost
	})
}

// RecordMemo records a memo, however long that takes.
func (a *attempt) RecordMemo(_ context.Context, r *graphdv1.RecordMemoRequest) (*graphdv1.RecordMemoResponse, error) {
	response, err := callUntilAnswered(a.session, a, r, recordMemo)
	if failure, ok := errors.AsType[*client.Error](err); ok && failure.Reason == "PAYLOAD_TOO_LARGE" { // it would be too large again
		return response, graph.Permanent(err)
	}
	return response, err
}

func recordMemo(ctx context.Context, c graphdv1.WorkerServiceClient, r *graphdv1.RecordMemoRequest) (*graphdv1.RecordMemoResponse, error) {
	return c.RecordMemo(ctx, r, anySize())
}

// Emit takes an event. One that must be kept waits until there is room for it.
func (a *attempt) Emit(e *graphdv1.EmitItem) {
	if !e.GetDurable() && !slices.Contains(a.assignment.GetEmit(), e.GetChannel()) {
		return
	}
	size := proto.Size(e)
	isTaken := false
	_ = a.session.waitFor(a.held, func() bool {
		isFull := len(a.events) >= maxWaitingEvents || len(a.events) > 0 && a.eventBytes+size > maxWaitingBytes
		switch {
		case isFull && e.GetDurable():
			return false
		case isFull:
			a.dropped++
			return true
		}
		a.events, a.eventBytes, isTaken = append(a.events, e), a.eventBytes+size, true
		return true
	})
	if isTaken {
		a.session.wakeSender()
	}
}

// takeEvents returns the events that wait, nil when there are none. The caller holds the lock.
func (a *attempt) takeEvents() *graphdv1.Emit {
	if len(a.events) == 0 && a.dropped == 0 {
		return nil
	}
	emit := &graphdv1.Emit{Items: a.events, Dropped: a.dropped}
	a.events, a.eventBytes, a.dropped = nil, 0, 0
	a.session.announceChange()
	return emit
}
