package transport

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// inboxStream is the sending side of WatchInterrupts.
type inboxStream = grpc.ServerStreamingServer[graphdv1.InterruptChange]

// inboxWatch is one client that follows the questions of all threads.
type inboxWatch struct {
	*interruptService

	query  checkpoint.InterruptQuery
	list   string // what its tokens are bound to
	after  uint64 // last change looked at
	resume bool
	out    *sender
	room   *runtime.Room // for what was read and is not sent
}

// WatchInterrupts follows questions: those that are open, then each change.
func (s *interruptService) WatchInterrupts(req *graphdv1.WatchInterruptsRequest, stream inboxStream) error {
	if err := s.enterInbox(); err != nil {
		return err
	}
	defer s.leaveInbox()
	ctx := stream.Context()
	b := s.border()
	w := &inboxWatch{
		interruptService: s, query: interruptQueryIn(b, req.GetFilter(), ""),
		list: listed("inbox", req.GetFilter()), resume: req.GetResumeToken() != "",
	}
	if err := b.err(); err != nil {
		return err
	}
	if err := s.tokens.read(req.GetResumeToken(), w.list, &w.after); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidCursor,
			"resume_token was not made by this service for this filter; leave it empty to begin").Because(err)
	}
	life, release := s.lifetime(ctx)
	defer release()
	w.room = roomOf(ctx)
	w.out = newSender(sending(stream), outletOf(ctx), s.room, s.stall)
	err := w.relay(ctx, life)
	err = w.out.close(ctx, err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errStalled):
		return runtime.Errorf(ReasonSlowConsumer, "the client does not read")
	}
	return err
}

func (w *inboxWatch) relay(ctx, life context.Context) error {
	begin := w.showOpen
	if w.resume {
		begin = w.confirmStore
	}
	if err := begin(ctx); err != nil {
		return err
	}
	f := w.followAll(w.query, w.after)
	defer func() { f.Close() }()
	turns := w.turns(life)
	defer turns.close()
	for {
		if errors.Is(context.Cause(life), errDraining) {
			return draining()
		}
		turn := turns.next(w.out.last)
		changed, err := f.Next(turn)
		switch {
		case err == nil:
			err := w.pass(ctx, changed)
			w.room.End()
			if errors.Is(err, errBehind) {
				f.Close() // what was not taken is read again
				if err := w.out.wait(ctx); err != nil {
					return err
				}
				f = w.followAll(w.query, w.after)
			} else if err != nil {
				return err
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case context.Cause(turn) == nil:
			return err
		}
		if time.Since(w.out.last) >= w.heartbeat {
			if err := w.confirmStore(ctx); err != nil {
				return err
			}
			if err := w.bookmark(ctx); err != nil {
				return err
			}
		}
	}
}

// showOpen sends the questions that wait for an answer. Changes made meanwhile
// are not missed: following begins where the changes ended before.
func (w *inboxWatch) showOpen(ctx context.Context) error {
	start, err := w.newest(ctx)
	if err != nil {
		return err
	}
	w.room.End()
	q := w.query
	if len(q.States) == 0 {
		q.States = []checkpoint.InterruptState{checkpoint.InterruptOpen}
	}
	q.Limit = maxPage
	for {
		open, err := w.page(ctx, q)
		if err != nil {
			return err
		}
		more := checkpoint.IsPart(open, q.Limit, (*checkpoint.Interrupt).Size)
		err = w.passOpen(ctx, &q, open)
		w.room.End() // what was not taken is read again
		switch {
		case errors.Is(err, errBehind):
			if err := w.out.awaitRoom(ctx, largeFrame, w.stall, errStalled); err != nil {
				return err
			}
		case err != nil:
			return err
		case !more:
			w.after = start
			return w.bookmark(ctx)
		}
	}
}

// passOpen sends questions, until the client does not take one soon. Until all are
// sent a broken stream has to begin again.
func (w *inboxWatch) passOpen(ctx context.Context, q *checkpoint.InterruptQuery, open []checkpoint.Interrupt) error {
	for i := range open {
		f, err := encode(&graphdv1.InterruptChange{Interrupt: interruptOut(open[i])})
		if err != nil {
			return err
		}
		if err := w.out.offer(ctx, f); err != nil {
			return err
		}
		q.After = checkpoint.InterruptPosition{
			Created: open[i].Created, Thread: open[i].Thread, ID: open[i].ID,
		}
	}
	return nil
}

// confirmStore asks for one question, which a store that was replaced refuses. When
// asked for changes it has none, and a watch of it would be silent for ever.
func (w *inboxWatch) confirmStore(ctx context.Context) error {
	defer w.room.End()
	_, err := w.engine.Interrupts(ctx, checkpoint.InterruptQuery{
		States: []checkpoint.InterruptState{checkpoint.InterruptOpen}, Limit: 1,
	})
	return err
}

// newest is latestChange, read in turn.
func (w *inboxWatch) newest(ctx context.Context) (uint64, error) {
	begun, err := w.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer begun()
	return latestChange(ctx, w.engine)
}

// page is one page of questions, read in turn.
func (w *inboxWatch) page(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	begun, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer begun()
	return w.engine.Interrupts(ctx, q)
}

// latestChange finds the number of the newest change by asking, for a growing
// number and then between two, whether there is a change after it.
func latestChange(ctx context.Context, inbox Inbox) (uint64, error) {
	next := func(after uint64) (uint64, error) {
		found, err := inbox.Interrupts(ctx, checkpoint.InterruptQuery{
			ByChange: true, After: checkpoint.InterruptPosition{Change: after}, Limit: 1,
		})
		if err != nil || len(found) == 0 {
			return 0, err
		}
		return found[0].Change, nil
	}
	var low uint64 // there is a change of this number, or it is 0
	for step := uint64(1); ; step *= 2 {
		change, err := next(low + step - 1)
		if err != nil {
			return 0, err
		}
		if change == 0 {
			return between(low, low+step-1, next)
		}
		low = change
	}
}

// between finds the newest change in [low, high], where there is none after
// high.
func between(low, high uint64, next func(uint64) (uint64, error)) (uint64, error) {
	for low < high {
		middle := low + (high-low)/2
		change, err := next(middle)
		switch {
		case err != nil:
			return 0, err
		case change == 0:
			high = middle
		default:
			low = change
		}
	}
	return high, nil
}

// pass sends changes, until the client does not take one soon.
func (w *inboxWatch) pass(ctx context.Context, changed []checkpoint.Interrupt) error {
	for i := range changed {
		before := w.after
		w.after = max(w.after, changed[i].Change)
		m, err := w.message(interruptOut(changed[i]))
		if err != nil {
			return err
		}
		f, err := encode(m)
		if err != nil {
			return err
		}
		if err := w.out.offer(ctx, f); err != nil {
			w.after = before
			return err
		}
	}
	return nil
}

// message is a question, or a bookmark, with the token to go on from.
func (w *inboxWatch) message(q *graphdv1.Interrupt) (*graphdv1.InterruptChange, error) {
	token, err := w.tokens.make(w.list, w.after)
	return &graphdv1.InterruptChange{Interrupt: q, ResumeToken: token, Bookmark: q == nil}, err
}

// bookmark sends where to go on from.
func (w *inboxWatch) bookmark(ctx context.Context) error {
	m, err := w.message(nil)
	if err != nil {
		return err
	}
	f, err := encode(m)
	if err != nil {
		return err
	}
	return w.out.send(ctx, f)
}
