package agentserver

import (
	"context"
	"errors"
	"io"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
)

// threadFollower follows a thread across its runs, for one client.
type threadFollower struct {
	call   *call
	thread string
	out    *sseWriter
	life   *time.Ticker
}

// newThreadFollower returns a follower, and what ends it.
func newThreadFollower(c *call, thread string) (f *threadFollower, end func()) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.ctx = ctx
	f = &threadFollower{call: c, thread: thread, out: &sseWriter{call: c}, life: time.NewTicker(lifeInterval)}
	return f, func() {
		f.life.Stop()
		cancel()
	}
}

// findThread returns a thread, nil when there is none.
func (c *call) findThread(id string) (*graphdv1.Thread, error) {
	of, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: id})
	if reasonOf(err) == "THREAD_NOT_FOUND" {
		return nil, nil //nolint:nilnil // there is none
	}
	return of, err
}

// Bounds of the time between two looks for a thread that is not there yet.
const (
	firstLook  = 50 * time.Millisecond
	latestLook = time.Second
)

// awaitThread waits until there is a thread. It is nil when the client leaves before.
func (f *threadFollower) awaitThread() (*graphdv1.Thread, error) {
	pause := firstLook
	look := time.NewTimer(pause)
	defer look.Stop()
	for {
		select {
		case <-f.call.ctx.Done():
			return nil, nil //nolint:nilnil // the client has left
		case <-f.life.C:
			if err := f.out.writeLife(); err != nil {
				return nil, err
			}
		case <-look.C:
			of, err := f.call.findThread(f.thread)
			if err != nil {
				return nil, errBrokenOff // the client connects again, and learns why
			}
			if of != nil {
				return of, nil
			}
			pause = min(pause+pause/8, latestLook) // one that has just opened sees its thread soon
			look.Reset(pause)
		}
	}
}

// relayEvents shows the events of one stream of graphd. It returns how that has ended, nil when the
// client has left.
func (f *threadFollower) relayEvents(source eventSource, show func(*graphdv1.Event) error) (*graphdv1.EndOfStream, error) {
	events := make(chan received)
	go contain.Func(func() { receiveAll(f.call.ctx, source, events) }, f.call.server.opts.OnPanic)()
	var end *graphdv1.EndOfStream
	for {
		select {
		case <-f.call.ctx.Done():
			return nil, nil //nolint:nilnil // the client has left
		case <-f.life.C:
			if err := f.out.writeLife(); err != nil {
				return nil, err
			}
		case got := <-events:
			if errors.Is(got.err, io.EOF) {
				return end, nil
			}
			if got.err != nil {
				return nil, errBrokenOff // the client connects again
			}
			if got.event.GetEnd() != nil {
				end = got.event.GetEnd()
			}
			f.life.Reset(lifeInterval)
			if err := show(got.event); err != nil {
				return nil, err
			}
		}
	}
}

// tryWatch begins a stream of graphd, and reads how it was opened.
func (f *threadFollower) tryWatch(request *graphdv1.WatchRequest) (eventSource, *graphdv1.StreamOpened, error) {
	source, err := f.call.graphs.Watch(f.call.ctx, request)
	if err != nil {
		return nil, nil, err
	}
	first, err := source.Recv()
	return source, first.GetOpened(), err
}
