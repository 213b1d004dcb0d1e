package feed

import (
	"context"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// InterruptFollower reads changes of interrupts over all threads, in order.
// One goroutine uses it.
type InterruptFollower struct {
	feed     *Feed
	memory   *runtime.CallMemory // of the call that follows; nil = none
	query    checkpoint.InterruptQuery
	lastRead time.Time
	wake     chan struct{}
	// unfollow ends the subscription to other processes; nil = there is none.
	unfollow func()
}

// interruptPollInterval is the interval at which an interrupt follower reads the
// store without signals. minInterruptInterval is the shortest interval with them:
// people read interrupts.
const (
	interruptPollInterval = 200 * time.Millisecond
	minInterruptInterval  = 10 * time.Millisecond
)

// changePageSize is the number of changed interrupts in one read of the store.
const changePageSize = 256

// FollowInterrupts begins to read the changes after a cursor, which is the Change of
// an interrupt. The filters of the query apply. Reads are reserved in the memory of
// a call; nil = none. The caller must close the follower.
func (f *Feed) FollowInterrupts(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) *InterruptFollower {
	q.ByChange, q.After = true, checkpoint.InterruptPosition{Change: after}
	if q.Limit == 0 {
		q.Limit = changePageSize
	}
	follower := &InterruptFollower{feed: f, memory: memory, query: q, wake: make(chan struct{}, 1)}
	f.interruptFollowers.addFollower(follower)
	if f.subscription != nil {
		follower.unfollow = f.subscription.Follow(checkpoint.AllThreads)
	}
	return follower
}

// Close ends the reading.
func (f *InterruptFollower) Close() {
	if f.unfollow != nil {
		f.unfollow()
	}
	f.feed.interruptFollowers.removeFollower(f)
}

// Next waits for changes and returns at least one change. Errors: the cause of ctx, and
// those of Options.ListInterrupts.
func (f *InterruptFollower) Next(ctx context.Context) ([]checkpoint.Interrupt, error) {
	for {
		f.lastRead = time.Now()
		list, err := f.feed.opts.ListInterrupts(ctx, f.memory, f.query)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			f.query.After.Change = list[len(list)-1].Change
			return list, nil
		}
		if err := f.waitForChange(ctx); err != nil {
			return nil, err
		}
	}
}

// waitForChange returns when there may be something new.
func (f *InterruptFollower) waitForChange(ctx context.Context) error {
	timer := time.NewTimer(f.feed.interruptFollowers.pollInterval())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.wake:
	}
	if early := minInterruptInterval - time.Since(f.lastRead); early > 0 {
		timer.Reset(early)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// interruptFollowers wakes the followers of the interrupts of all threads.
type interruptFollowers struct {
	mu          sync.Mutex
	followers   map[*InterruptFollower]struct{}
	isConnected bool // this process receives signals of the other processes
}

func (i *interruptFollowers) addFollower(f *InterruptFollower) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.followers == nil {
		i.followers = make(map[*InterruptFollower]struct{})
	}
	i.followers[f] = struct{}{}
}

func (i *interruptFollowers) removeFollower(f *InterruptFollower) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.followers, f)
	if len(i.followers) == 0 {
		i.isConnected = false
	}
}

// handleSignal handles a signal of another process for all threads.
func (i *interruptFollowers) handleSignal(k checkpoint.SignalKind) {
	i.mu.Lock()
	switch k {
	case checkpoint.SignalConnected:
		i.isConnected = true
	case checkpoint.SignalDisconnected:
		i.isConnected = false
	default: // a wake-up is pending already
	}
	i.mu.Unlock()
	i.wakeFollowers(func(string) bool { return true }) // the signal names no thread
}

// wakeFollowers wakes the followers of some tenants, "" among them for those that follow all.
func (i *interruptFollowers) wakeFollowers(isMeant func(owner string) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for f := range i.followers {
		if !isMeant(f.query.Tenant) {
			continue
		}
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// pollInterval returns the interval at which a follower reads the store
// without signals.
func (i *interruptFollowers) pollInterval() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isConnected {
		return connectedPollInterval
	}
	return interruptPollInterval
}
