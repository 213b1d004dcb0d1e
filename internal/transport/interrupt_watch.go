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
	maxChanges int  // in one message, 0 = one, in the fields of the message itself
	hasActions bool // with what the caller may do
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
		maxChanges: int(min(req.GetMaxChanges(), maxBatchChanges)), hasActions: req.GetWithAllowed(),
	}
	if w.maxChanges < 0 {
		v.AddViolation("max_changes", "%d is negative; 0 means a message for each change", w.maxChanges)
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

// sendOpenPage sends interrupts until the client does not take a message soon. A stream
// that breaks before all are sent has to begin again.
func (w *interruptWatch) sendOpenPage(ctx context.Context, q *checkpoint.InterruptQuery, open []checkpoint.Interrupt) error {
	filter, allowed, now := w.newItemFilter(ctx), w.newActions(ctx), w.engine.CurrentTime()
	for len(open) > 0 {
		b := changeBatch{limit: w.maxChanges}
		looked := 0
		for ; looked < len(open) && b.HasRoom(); looked++ {
			in := &open[looked]
			if !filter.Shows(in.Graph, in.Thread) || !w.filter.Matches(in, now) {
				continue
			}
			m, err := w.encodeAlone(in, false, allowed.readActions(in, false))
			if err != nil {
				return err
			}
			b.AddChange(m)
		}
		if err := w.offerBatch(ctx, &b, ""); err != nil {
			return err
		}
		q.After = q.PositionOf(&open[looked-1])
		open = open[looked:]
	}
	return nil
}

// newItemFilter makes the filter of the interrupts that are sent next. Those after them
// are decided by the policy of then.
func (w *interruptWatch) newItemFilter(ctx context.Context) *permission.ItemFilter {
	return w.access.NewItemFilter(ctx, graphdv1.InterruptService_WatchInterrupts_FullMethodName)
}

// newActions makes the reader of what the caller may do with the interrupts that are sent next, nil
// when the client does not want to know.
func (w *interruptWatch) newActions(ctx context.Context) *actionReader {
	if !w.hasActions {
		return nil
	}
	return w.newActionReader(ctx)
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

// sendChanges sends changes, until the client does not take a message soon.
func (w *interruptWatch) sendChanges(ctx context.Context, changed []*checkpoint.Interrupt) error {
	filter, allowed, now := w.newItemFilter(ctx), w.newActions(ctx), w.engine.CurrentTime()
	for len(changed) > 0 {
		b := changeBatch{limit: w.maxChanges}
		looked := 0
		for ; looked < len(changed) && b.HasRoom(); looked++ {
			in := changed[looked]
			isSelected := w.filter.Query.MatchesInterrupt(in) && w.filter.Matches(in, now)
			if !filter.Shows(in.Graph, in.Thread) || !isSelected && !w.filter.MayHaveMatched(in) {
				continue
			}
			m, err := w.encodeChange(in, !isSelected, allowed.readActions(in, false))
			if err != nil {
				return err
			}
			b.AddChange(m)
		}
		last := max(w.lastChange, changed[looked-1].Change)
		if len(b.parts) > 0 {
			token, err := w.tokens.EncodeToken(w.tokenScope, last)
			if err != nil {
				return err
			}
			if err := w.offerBatch(ctx, &b, token); err != nil {
				return err
			}
		}
		w.lastChange = last
		changed = changed[looked:]
	}
	return nil
}

// offerBatch sends the changes of a batch, if there are any.
func (w *interruptWatch) offerBatch(ctx context.Context, b *changeBatch, token string) error {
	if len(b.parts) == 0 {
		return nil
	}
	m, err := b.BuildMessage(token)
	if err != nil {
		return err
	}
	return w.sender.OfferMessage(ctx, m)
}

// sendBookmark sends the token from which a client continues.
func (w *interruptWatch) sendBookmark(ctx context.Context) error {
	token, err := w.tokens.EncodeToken(w.tokenScope, w.lastChange)
	if err != nil {
		return err
	}
	f, err := flow.EncodeMessage(&graphdv1.InterruptChange{ResumeToken: token, Bookmark: true})
	if err != nil {
		return err
	}
	return w.sender.SendMessage(ctx, f)
}
