// Package feed delivers the events of threads to followers, from memory and, for
// older events, from the log.
package feed

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Store is the part of the store that a feed reads.
type Store interface {
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
	Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error)
}

// Options are the collaborators and limits of a feed.
type Options struct {
	Store Store
	// PollInterval is the interval at which a follower looks for the changes of
	// other processes, 0 = never.
	PollInterval time.Duration
	RecentBytes  int              // bytes of events kept for followers that have not read them
	Now          func() time.Time // the store's time
	Logger       *zap.Logger
	// IsLive reports whether a run of the thread is live in this process.
	IsLive func(thread string) bool
	// ListInterrupts lists interrupts. It waits for memory until ctx ends.
	ListInterrupts func(ctx context.Context, memory *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error)
	// ReserveMemory reserves bytes, in the memory of a call, for a value that is about
	// to be encoded.
	ReserveMemory func(ctx context.Context, memory *runtime.CallMemory, bytes int) error
}

// Feed delivers the events of threads, and the changes of interrupts, to the followers
// in this process.
type Feed struct {
	opts               Options
	hub                *eventHub
	interruptFollowers interruptFollowers
	readSlots          chan struct{}           // holds one value for each follower that reads the store
	largeReadSlots     chan struct{}           // as readSlots, for those that have met large events
	subscription       checkpoint.Subscription // nil when no other process writes to the store
}

// New makes a feed.
func New(opts Options) *Feed {
	return &Feed{
		opts: opts, hub: newEventHub(opts.RecentBytes),
		readSlots:      make(chan struct{}, maxConcurrentReads),
		largeReadSlots: make(chan struct{}, maxConcurrentLargeReads),
	}
}

// SetSubscription makes followers listen to other processes. It is called before the
// first follower comes.
func (f *Feed) SetSubscription(s checkpoint.Subscription) { f.subscription = s }

// AcquireTopic returns the topic of a thread and keeps it until ReleaseTopic.
func (f *Feed) AcquireTopic(thread string) *Topic { return f.hub.acquireTopic(thread) }

// ReleaseTopic releases a topic of AcquireTopic.
func (f *Feed) ReleaseTopic(t *Topic) { f.hub.releaseTopic(t) }

// NewDetachedTopic returns a topic that has no followers.
func (f *Feed) NewDetachedTopic(thread string) *Topic { return &Topic{hub: f.hub, thread: thread} }

// EndTopic reports to the followers of a thread that it was deleted.
func (f *Feed) EndTopic(thread string) { f.hub.endTopic(thread, f.opts.Now()) }

// InvalidateTopic makes the followers of a thread read the store: it may hold events
// that were not published, because the outcome of a change is unknown.
func (f *Feed) InvalidateTopic(thread string) { f.hub.invalidateTopic(thread) }

// PublishEvents publishes committed events of a thread that need not be driven here.
func (f *Feed) PublishEvents(thread string, events []checkpoint.Event) {
	if t := f.hub.findTopic(thread); t != nil {
		t.PublishEvents(events)
	}
}

// PublishEphemeral delivers one ephemeral event to the followers here and in other
// processes.
func (f *Feed) PublishEphemeral(t *Topic, e checkpoint.Event) { t.publishEphemeral(e, f.subscription) }

// StopPublishing records that this process publishes no more ephemeral events
// of a thread.
func (f *Feed) StopPublishing(thread string) {
	if f.subscription != nil {
		f.subscription.StopPublishing(thread)
	}
}

// WakeInterruptFollowers wakes the followers of interrupts after interrupts of a thread
// changed. Followers of other tenants sleep on.
func (f *Feed) WakeInterruptFollowers(thread string) {
	f.interruptFollowers.wakeFollowers(func(owner string) bool { return tenant.Contains(owner, thread) })
}

// TopicState is the part of one thread that a feed holds in memory.
type TopicState struct {
	Events      int    // in memory
	LastEvent   uint64 // the newest durable event that was published
	IsConnected bool   // this process receives signals of the other processes
}

// TopicState returns the state of a thread's topic. It is zero for a thread without a
// follower.
func (f *Feed) TopicState(thread string) TopicState {
	t := f.hub.findTopic(thread)
	if t == nil {
		return TopicState{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return TopicState{Events: t.eventCount, LastEvent: t.lastSeq, IsConnected: t.isConnected}
}

// CountTopics counts the threads that are driven or followed here.
func (f *Feed) CountTopics() int {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	return len(f.hub.topics)
}
