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
	reader   *changeReader
	memory   *runtime.CallMemory // of the call that follows; nil = none
	query    checkpoint.InterruptQuery
	after    uint64
	lastRead time.Time
	isBusy   bool      // the last read found changes
	returned time.Time // when Next returned changes last, zero = it was called again
	// whole is the last moment of which is known that all has been returned, newest that of the
	// last read: a store may leave out of a read what changes meanwhile, and the next read has it.
	whole, newest time.Time
	wake          chan struct{}
	// unfollow ends the subscription to other processes; nil = there is none.
	unfollow func()
}

// interruptPollInterval is the interval at which an interrupt follower reads the
// store without signals. minInterruptInterval is the shortest interval with them.
const (
	interruptPollInterval = 200 * time.Millisecond
	minInterruptInterval  = 10 * time.Millisecond
)

// Bounds of the interval after a read that found changes: people read interrupts. Between them it
// is busyRestFactor times as long as the changes took their reader, and followerInterval times the
// number of followers, so that many followers leave the processors to those who ask and answer.
const (
	minBusyInterval  = 50 * time.Millisecond
	maxBusyInterval  = 200 * time.Millisecond
	busyRestFactor   = 8
	followerInterval = 2 * time.Millisecond
)

// changePageSize is the number of changed interrupts in one read of the store.
const changePageSize = 256

// FollowInterrupts begins to read the changes after a cursor, which is the Change of
// an interrupt. The conditions of the query apply. Reads are reserved in the memory of
// a call; nil = none. The caller must close the follower.
func (f *Feed) FollowInterrupts(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) *InterruptFollower {
	q.ByChange, q.After = true, checkpoint.InterruptPosition{}
	follower := &InterruptFollower{feed: f, memory: memory, query: q, after: after, wake: make(chan struct{}, 1)}
	follower.reader = f.interruptFollowers.addFollower(follower)
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

// After returns the change up to which the follower has looked at all changes.
func (f *InterruptFollower) After() uint64 { return f.after }

// WholeUntil returns a moment, by the store's clock: Next has returned each interrupt as it was
// then, or as it became later. Zero means that there is none yet.
func (f *InterruptFollower) WholeUntil() time.Time { return f.whole }

// Next waits for changes that the query selects, or may have selected before, and returns at
// least one change. The changes are shared: the caller must not change them. Errors: the cause
// of ctx, and those of Options.ListInterrupts.
func (f *InterruptFollower) Next(ctx context.Context) ([]*checkpoint.Interrupt, error) {
	busyInterval := f.takeBusyInterval()
	for {
		if f.isBusy {
			if err := f.waitSinceRead(ctx, busyInterval); err != nil {
				return nil, err
			}
		}
		f.lastRead = time.Now()
		began := f.feed.opts.Now()
		list, isAll, err := f.reader.ReadChanges(ctx, f.memory, f.after)
		if err != nil {
			return nil, err
		}
		if isAll {
			f.whole, f.newest = f.newest, began
		}
		if len(list) == 0 {
			f.isBusy = false
			if err := f.waitForChange(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if wanted := f.takeChanges(list); len(wanted) > 0 {
			f.returned = time.Now()
			return wanted, nil
		}
	}
}

// takeChanges takes the changes of a read, and those that others have read behind them, up to a page
// of changes: a follower that is behind does not rest after each of their reads.
func (f *InterruptFollower) takeChanges(list []checkpoint.Interrupt) (wanted []*checkpoint.Interrupt) {
	looked := 0
	for len(list) > 0 {
		wanted = f.selectInterrupts(wanted, list)
		f.after = list[len(list)-1].Change
		if looked += len(list); looked >= changePageSize {
			break
		}
		list = f.reader.FindKept(f.after)
	}
	f.isBusy = looked < changePageSize
	return wanted
}

// takeBusyInterval returns the interval after a read that found changes.
func (f *InterruptFollower) takeBusyInterval() time.Duration {
	if f.returned.IsZero() {
		return minBusyInterval
	}
	took := time.Since(f.returned)
	f.returned = time.Time{}
	return computeBusyInterval(took, f.feed.interruptFollowers.countFollowers())
}

// computeBusyInterval returns the interval after a read whose changes took their reader so long,
// beside so many followers.
func computeBusyInterval(took time.Duration, followers int) time.Duration {
	share := time.Duration(followers) * followerInterval
	return min(max(busyRestFactor*took, share, minBusyInterval), maxBusyInterval)
}

// selectInterrupts appends the changes that the query selects, and those of interrupts that it may
// have selected before.
func (f *InterruptFollower) selectInterrupts(wanted []*checkpoint.Interrupt, list []checkpoint.Interrupt) []*checkpoint.Interrupt {
	for i := range list {
		if f.query.MatchesInterrupt(&list[i]) || f.query.MayHaveSelected(&list[i]) {
			wanted = append(wanted, &list[i])
		}
	}
	return wanted
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
	return f.waitSinceRead(ctx, minInterruptInterval)
}

// waitSinceRead waits until a time has passed since the last read.
func (f *InterruptFollower) waitSinceRead(ctx context.Context, interval time.Duration) error {
	early := interval - time.Since(f.lastRead)
	if early <= 0 {
		return nil
	}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// interruptFollowers wakes the followers of the interrupts of all threads.
type interruptFollowers struct {
	mu          sync.Mutex
	followers   map[*InterruptFollower]struct{}
	readers     map[string]*changeReader // by tenant, of those that have followers
	isConnected bool                     // this process receives signals of the other processes
}

// addFollower adds a follower, and returns the reader of its tenant.
func (i *interruptFollowers) addFollower(f *InterruptFollower) *changeReader {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.followers == nil {
		i.followers, i.readers = make(map[*InterruptFollower]struct{}), make(map[string]*changeReader)
	}
	i.followers[f] = struct{}{}
	owner := f.query.Tenant
	if i.readers[owner] == nil {
		i.readers[owner] = &changeReader{list: f.feed.opts.ListInterrupts, owner: owner}
	}
	i.readers[owner].followers++
	return i.readers[owner]
}

func (i *interruptFollowers) removeFollower(f *InterruptFollower) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, has := i.followers[f]; has {
		delete(i.followers, f)
		if f.reader.followers--; f.reader.followers == 0 {
			delete(i.readers, f.query.Tenant)
		}
	}
	if len(i.followers) == 0 {
		i.isConnected = false
	}
}

// countFollowers returns how many followers there are.
func (i *interruptFollowers) countFollowers() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.followers)
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
