package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// InterruptFollower reads changes of questions over all threads, in order. It
// is for one goroutine.
type InterruptFollower struct {
	engine *Engine
	query  checkpoint.InterruptQuery
	looked time.Time
	wake   chan struct{}
	// unfollow ends the listening to other processes; nil when there are none.
	unfollow func()
}

// inboxPoll is how often a watcher of the inbox looks at the store when nobody
// tells it of changes, and inboxPace how often at most when somebody does: an
// inbox is for people.
const (
	inboxPoll = 200 * time.Millisecond
	inboxPace = 10 * time.Millisecond
)

// FollowInterrupts begins to read the changes after a cursor, which is the
// Change of a question; the query's filters apply. The follower must be closed.
func (e *Engine) FollowInterrupts(q checkpoint.InterruptQuery, after uint64) *InterruptFollower {
	q.ByChange, q.After = true, checkpoint.InterruptPosition{Change: after}
	if q.Limit == 0 {
		q.Limit = readBatch
	}
	f := &InterruptFollower{engine: e, query: q, wake: make(chan struct{}, 1)}
	e.inbox.join(f)
	if e.tuner != nil {
		f.unfollow = e.tuner.Follow(checkpoint.AllThreads)
	}
	return f
}

// Close ends the reading.
func (f *InterruptFollower) Close() {
	if f.unfollow != nil {
		f.unfollow()
	}
	f.engine.inbox.leave(f)
}

// Next waits for changes and returns at least one. It returns the cause of ctx
// when ctx ends.
func (f *InterruptFollower) Next(ctx context.Context) ([]checkpoint.Interrupt, error) {
	for {
		f.looked = time.Now()
		list, err := f.engine.listQuestions(ctx, forever, f.query)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			f.query.After.Change = list[len(list)-1].Change
			return list, nil
		}
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// wait returns when there may be something new.
func (f *InterruptFollower) wait(ctx context.Context) error {
	timer := time.NewTimer(f.engine.inbox.every())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.wake:
	}
	if early := inboxPace - time.Since(f.looked); early > 0 {
		return pause(ctx, early)
	}
	return nil
}

// inbox wakes those who follow the questions of all threads.
type inbox struct {
	mu        sync.Mutex
	followers map[*InterruptFollower]struct{}
	heard     bool // what other processes change is told
}

func (i *inbox) join(f *InterruptFollower) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.followers == nil {
		i.followers = make(map[*InterruptFollower]struct{})
	}
	i.followers[f] = struct{}{}
}

func (i *inbox) leave(f *InterruptFollower) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.followers, f)
	if len(i.followers) == 0 {
		i.heard = false
	}
}

// hear takes in what another process tells of all threads.
func (i *inbox) hear(k checkpoint.SignalKind) {
	i.mu.Lock()
	switch k {
	case checkpoint.SignalTuned:
		i.heard = true
	case checkpoint.SignalDeaf:
		i.heard = false
	default: // there is something to look at, as there may be now
	}
	i.mu.Unlock()
	i.ring()
}

// ring says that questions have changed.
func (i *inbox) ring() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for f := range i.followers {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// every is how often a follower looks when nobody rings.
func (i *inbox) every() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.heard {
		return rarely
	}
	return inboxPoll
}
