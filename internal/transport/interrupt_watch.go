package transport

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// interruptStream is the sending side of WatchInterrupts.
type interruptStream = grpc.ServerStreamingServer[graphdv1.InterruptChange]

// interruptWatch is a client that follows the interrupts of all threads.
type interruptWatch struct {
	*interruptService

	filter     listing.InterruptFilter
	tokenScope string // the query that its tokens are bound to
	lastChange uint64 // last change looked at
	isResumed  bool
	startsNow  bool // without the interrupts that are open
	sender     *stream.Sender
	memory     *runtime.CallMemory // for interrupts that were read and are not sent
}

// WatchInterrupts follows interrupts: the open interrupts, then each change.
func (s *interruptService) WatchInterrupts(req *graphdv1.WatchInterruptsRequest, ss interruptStream) error {
	if err := s.streams.AddInterruptStream(ss.Context()); err != nil {
		return err
	}
	defer s.streams.RemoveInterruptStream()
	ctx := ss.Context()
	v := s.newValidator(ctx)
	w := &interruptWatch{
		interruptService: s, filter: listing.ParseInterruptFilter(v, "filter", req.GetFilter(), "", interceptor.ActorOf(ctx)),
		tokenScope: digestList(ctx, "inbox", req.GetFilter()), isResumed: req.GetResumeToken() != "", startsNow: req.GetStartNow(),
	}
	w.filter.RequireWatchIndex(v)
	if w.isResumed && w.startsNow {
		v.AddViolation("start_now", "the watch begins where resume_token says: leave one of them out")
	}
	if err := v.Err(); err != nil {
		return err
	}
	if err := s.tokens.DecodeToken(req.GetResumeToken(), w.tokenScope, &w.lastChange); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidCursor,
			"resume_token was not made by this service for this filter; leave it empty to begin").WithCause(err)
	}
	life, release := s.streams.NewLifetime(ctx)
	defer release()
	w.memory = interceptor.CallMemoryOf(ctx)
	w.sender = s.streams.NewSender(ss)
	err := w.relayChanges(ctx, life)
	err = w.sender.FinishSending(ctx, err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, stream.ErrStalled):
		return runtime.Errorf(reason.SlowConsumer, "the client does not read")
	}
	return err
}

func (w *interruptWatch) relayChanges(ctx, life context.Context) error {
	begin := w.sendOpenInterrupts
	switch {
	case w.isResumed:
		begin = w.probeStore
	case w.startsNow:
		begin = w.startNow
	}
	if err := begin(ctx); err != nil {
		return err
	}
	f := w.followInterrupts(w.memory, w.filter.Query, w.lastChange)
	defer func() { f.Close() }()
	turns := w.streams.NewHeartbeatWait(life)
	defer turns.StopWaiting()
	for {
		if errors.Is(context.Cause(life), stream.ErrDraining) {
			return stream.DrainingError()
		}
		waitCtx := turns.NextContext(w.sender.LastSent)
		changed, err := f.Next(waitCtx)
		switch {
		case err == nil:
			err := w.sendChanges(ctx, changed)
			w.memory.Release()
			switch {
			case err == nil:
				w.lastChange = max(w.lastChange, f.After())
			case !errors.Is(err, stream.ErrClientBehind):
				return err
			default:
				f.Close() // interrupts that were not sent are read again
				if err := w.sender.WaitUntilRead(ctx); err != nil {
					return err
				}
				f = w.followInterrupts(w.memory, w.filter.Query, w.lastChange)
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case context.Cause(waitCtx) == nil:
			return err
		default:
			w.lastChange = max(w.lastChange, f.After()) // nothing of it is for the client
		}
		if time.Since(w.sender.LastSent) >= w.streams.HeartbeatInterval {
			if err := w.probeStore(ctx); err != nil {
				return err
			}
			if err := w.sendBookmark(ctx); err != nil {
				return err
			}
		}
	}
}

// startNow sends the token of the newest change.
func (w *interruptWatch) startNow(ctx context.Context) (err error) {
	if w.lastChange, err = w.readLatestChange(ctx); err != nil {
		return err
	}
	return w.sendBookmark(ctx)
}

// sendOpenInterrupts sends the interrupts that wait for an answer. It misses no
// change made meanwhile: the follower begins at the newest change from before the
// read.
func (w *interruptWatch) sendOpenInterrupts(ctx context.Context) error {
	start, err := w.readLatestChange(ctx)
	if err != nil {
		return err
	}
	w.memory.Release()
	q := w.filter.Query
	if len(q.States) == 0 {
		q.States = []checkpoint.InterruptState{checkpoint.InterruptOpen}
	}
	q.Limit = listing.MaxPageSize
	for {
		open, err := w.readPage(ctx, q)
		if err != nil {
			return err
		}
		more := checkpoint.IsPart(open, q.Limit, (*checkpoint.Interrupt).Size)
		err = w.sendOpenPage(ctx, &q, open)
		w.memory.Release() // interrupts that were not sent are read again
		switch {
		case errors.Is(err, stream.ErrClientBehind):
			if err := w.sender.WaitForRoom(ctx, flow.LargeMessageBytes); err != nil {
				return err
			}
		case err != nil:
			return err
		case !more:
			w.lastChange = start
			return w.sendBookmark(ctx)
		}
	}
}

// sendOpenPage sends interrupts until the client does not take an interrupt soon. A stream
// that breaks before all are sent has to begin again.
func (w *interruptWatch) sendOpenPage(ctx context.Context, q *checkpoint.InterruptQuery, open []checkpoint.Interrupt) error {
	filter, now := w.newItemFilter(ctx), time.Now()
	for i := range open {
		if !filter.Shows(open[i].Graph, open[i].Thread) || !w.filter.Matches(&open[i], now) {
			q.After = q.PositionOf(&open[i])
			continue
		}
		f, err := flow.EncodeMessage(&graphdv1.InterruptChange{Interrupt: wire.InterruptToProto(open[i])})
		if err != nil {
			return err
		}
		if err := w.sender.OfferMessage(ctx, f); err != nil {
			return err
		}
		q.After = q.PositionOf(&open[i])
	}
	return nil
}

// newItemFilter makes the filter of the interrupts that are sent next. Those after them
// are decided by the policy of then.
func (w *interruptWatch) newItemFilter(ctx context.Context) *permission.ItemFilter {
	return w.access.NewItemFilter(ctx, graphdv1.InterruptService_WatchInterrupts_FullMethodName)
}

// probeStore reads one interrupt, so that a replaced store returns its error. Such
// a store has no changes, and a watch of it would stay silent.
func (w *interruptWatch) probeStore(ctx context.Context) error {
	defer w.memory.Release()
	_, err := w.engine.Interrupts(ctx, w.memory, checkpoint.InterruptQuery{
		Tenant: w.filter.Query.Tenant, States: []checkpoint.InterruptState{checkpoint.InterruptOpen}, Limit: 1,
	})
	return err
}

// readLatestChange reads the number of the newest change, with an opening slot.
func (w *interruptWatch) readLatestChange(ctx context.Context) (uint64, error) {
	begun, err := w.streams.AcquireOpeningSlot(ctx)
	if err != nil {
		return 0, err
	}
	defer begun()
	return w.engine.LatestInterruptChange(ctx)
}

// readPage reads one page of interrupts with an opening slot.
func (w *interruptWatch) readPage(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	begun, err := w.streams.AcquireOpeningSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer begun()
	return w.engine.Interrupts(ctx, w.memory, q)
}

// sendChanges sends changes, until the client does not take a change soon.
func (w *interruptWatch) sendChanges(ctx context.Context, changed []checkpoint.Interrupt) error {
	filter, now := w.newItemFilter(ctx), time.Now()
	for i := range changed {
		before := w.lastChange
		w.lastChange = max(w.lastChange, changed[i].Change)
		isSelected := w.filter.Query.MatchesInterrupt(&changed[i]) && w.filter.Matches(&changed[i], now)
		if !filter.Shows(changed[i].Graph, changed[i].Thread) || !isSelected && !w.filter.MayHaveMatched(&changed[i]) {
			continue
		}
		m, err := w.newChangeMessage(wire.InterruptToProto(changed[i]))
		if err != nil {
			return err
		}
		m.Gone = !isSelected
		f, err := flow.EncodeMessage(m)
		if err != nil {
			return err
		}
		if err := w.sender.OfferMessage(ctx, f); err != nil {
			w.lastChange = before
			return err
		}
	}
	return nil
}

// newChangeMessage returns the message of an interrupt, or of a bookmark, with the
// token from which a client continues.
func (w *interruptWatch) newChangeMessage(q *graphdv1.Interrupt) (*graphdv1.InterruptChange, error) {
	token, err := w.tokens.EncodeToken(w.tokenScope, w.lastChange)
	return &graphdv1.InterruptChange{Interrupt: q, ResumeToken: token, Bookmark: q == nil}, err
}

// sendBookmark sends the token from which a client continues.
func (w *interruptWatch) sendBookmark(ctx context.Context) error {
	m, err := w.newChangeMessage(nil)
	if err != nil {
		return err
	}
	f, err := flow.EncodeMessage(m)
	if err != nil {
		return err
	}
	return w.sender.SendMessage(ctx, f)
}
