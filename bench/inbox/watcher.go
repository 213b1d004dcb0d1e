package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// watchers follow the questions while others are asked and answered. Every second one has a
// filter that selects few.
type watchers struct {
	inbox *inbox
	pause time.Duration // before they connect again, 0 = they stay

	ready     sync.WaitGroup // all have caught up
	ended     sync.WaitGroup
	changes   atomic.Int64 // that they have seen
	connected atomic.Int64 // how often they have connected
}

// startWatchers returns when so many watchers have caught up. Their first error ends ctx by
// fail.
func (b *inbox) startWatchers(ctx context.Context, count int, pause time.Duration, fail context.CancelCauseFunc) *watchers {
	all := &watchers{inbox: b, pause: pause}
	all.ready.Add(count)
	for lane := range count {
		w := &watcher{watchers: all, lane: lane, ready: sync.OnceFunc(all.ready.Done)}
		if lane%2 == 0 {
			w.filter = filter("assignee", ana)
		}
		all.ended.Go(func() {
			defer w.ready()
			if err := w.follow(ctx); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
	}
	all.ready.Wait()
	return all
}

var errSawNothing = errors.New("the watchers saw no change")

// changePatience is how long watchers may take to see a change.
const changePatience = 30 * time.Second

// awaitChange returns when the watchers have seen more changes than so many. On a busy machine a short
// sample may end before they do.
func (all *watchers) awaitChange(ctx context.Context, seen int64) error {
	for end := time.Now().Add(changePatience); all.changes.Load() == seen; {
		if time.Now().After(end) {
			return errSawNothing
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// watcher is one client.
type watcher struct {
	*watchers

	lane   int
	filter string
	ready  func()
	token  []byte // where to go on
}

// follow watches until ctx ends. A stream that its client reads too slowly goes on from the last
// token, and so does a watcher without a filter that connects again. One with a filter begins
// anew then, with all questions that it selects.
func (w *watcher) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		request, err := w.request()
		if err != nil {
			return err
		}
		w.connected.Add(1)
		err = w.inbox.watching.Stream(ctx, w.lane, interrupts+"WatchInterrupts", request, w.see)
		if err != nil && status.Code(err) != codes.ResourceExhausted && status.Code(err) != codes.Unavailable {
			return err
		}
		if err := pause(ctx, w.pause); err != nil {
			return nil //nolint:nilerr // the watchers are not needed any more
		}
	}
	return nil
}

func (w *watcher) request() ([]byte, error) {
	r := &graphdv1.WatchInterruptsRequest{Filter: w.filter, MaxChanges: maxChanges}
	beginsAnew := w.pause > 0 && w.filter != ""
	switch {
	case beginsAnew:
	case w.token == nil:
		r.StartNow = true
	default:
		r.ResumeToken = string(w.token)
	}
	return proto.Marshal(r)
}

// maxChanges is how many changes a watcher takes in one message.
const maxChanges = 256

// The fields of a message of changes that are looked at.
const (
	tokenField   = 2
	changesField = 5
)

// see notes a change. A watcher that connects again and again leaves with the first token.
func (w *watcher) see(message []byte) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		_, _, head := protowire.ConsumeTag(message)
		switch {
		case number == tokenField && kind == protowire.BytesType:
			token, _ := protowire.ConsumeBytes(message[head:n])
			w.token = append(w.token[:0], token...)
		case number == changesField:
			w.changes.Add(1)
		}
		message = message[n:]
	}
	if len(w.token) == 0 {
		return nil // of the questions that were open at the beginning
	}
	w.ready()
	if w.pause > 0 {
		return io.EOF
	}
	return nil
}
