// Package pubsub exchanges signals between the servers of a store, over sharded
// publish and subscribe: events of threads, wake-ups, and the membership. Signals are
// best effort; the log of a thread is complete.
package pubsub

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/contain"
)

// Config is the part of its store that a subscriber needs.
type Config struct {
	Client goredis.UniversalClient
	Keys   *layout.Keys
	// Box opens and seals the records of events.
	Box *seal.Box
	// Origin distinguishes the messages of this process from those of others;
	// OriginLen characters.
	Origin string
	// Membership is the script that exchanges the entries of members.
	Membership *goredis.Script
	// Epoch identifies the store: in another store nothing is written.
	Epoch string
	// Heartbeat is how often a member publishes its entry.
	Heartbeat time.Duration
	Log       *zap.Logger
}

// Subscriber exchanges signals with other servers. Each thread has a shard
// channel with the name of its head key; scripts publish their changes there.
// One connection serves all threads; in a cluster, one per partition with
// followed threads.
type Subscriber struct {
	config     Config
	ctx        context.Context //nolint:containedctx // lives as long as the store
	stop       context.CancelFunc
	goroutines sync.WaitGroup

	mu            sync.Mutex
	subscriptions map[*subscription]struct{}
	followed      map[string]*followedThread
	connections   map[int]*connection
	closed        bool

	publishers     map[string]*publisher // by thread
	publisherCount uint64                // publishers so far
	broadcasts     broadcasts
	registrations  registrations
	flushNeeded    chan struct{} // a message is pending
}

// followedThread is a thread that this process follows.
type followedThread struct {
	followers   int
	subscribed  bool              // the Redis server has confirmed the subscription
	lastNumbers map[string]uint64 // number of the newest ephemeral event, by publisher
}

// New makes the subscriber of a store. It outlives ctx; Close ends it.
func New(ctx context.Context, config Config) *Subscriber {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Subscriber{
		config: config, ctx: ctx, stop: stop, subscriptions: make(map[*subscription]struct{}),
		followed: make(map[string]*followedThread), connections: make(map[int]*connection),
		publishers: make(map[string]*publisher), broadcasts: broadcasts{hasInterruptFollowers: true}, flushNeeded: make(chan struct{}, 1),
	}
	s.goroutines.Go(s.containPanics(ctx, s.keepFlushing))
	return s
}

// Close sends pending messages and ends all subscriptions and registrations.
func (s *Subscriber) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.goroutines.Wait()
}

// subscription implements checkpoint.Subscription.
type subscription struct {
	subscriber *Subscriber
	deliver    func(checkpoint.Signal)
}

// Subscribe opens a subscription to the signals of other servers. Signals that
// are sent through this subscriber are not delivered.
func (s *Subscriber) Subscribe(handleSignal func(checkpoint.Signal)) checkpoint.Subscription {
	t := &subscription{subscriber: s, deliver: handleSignal}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions[t] = struct{}{}
	s.connectionFor(noPartition).setWanted(s.config.Keys.AnnouncementChannel(), true)
	return t
}

// Close ends the subscription.
func (s *subscription) Close() {
	s.subscriber.mu.Lock()
	defer s.subscriber.mu.Unlock()
	delete(s.subscriber.subscriptions, s)
}

// Follow delivers the signals of a thread.
func (s *subscription) Follow(thread string) (stop func()) {
	if s.subscriber.followThread(thread) {
		s.deliver(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalConnected})
	}
	return sync.OnceFunc(func() { s.subscriber.unfollowThread(thread) })
}

// followThread subscribes to a thread and reports whether the subscription is
// confirmed already.
func (s *Subscriber) followThread(thread string) (subscribed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	f := s.followed[thread]
	if f == nil {
		f = &followedThread{}
		s.followed[thread] = f
	}
	f.followers++
	if f.followers == 1 {
		s.connectionFor(s.config.Keys.PartitionOf(thread)).setWanted(s.config.Keys.ThreadChannel(thread), true)
	}
	return f.subscribed
}

func (s *Subscriber) unfollowThread(thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[thread]
	f.followers--
	if f.followers == 0 {
		delete(s.followed, thread)
		s.connectionFor(s.config.Keys.PartitionOf(thread)).setWanted(s.config.Keys.ThreadChannel(thread), false)
	}
}

// connectionFor finds the connection for a partition. The caller holds mu.
func (s *Subscriber) connectionFor(partition int) *connection {
	if _, many := s.config.Client.(*goredis.ClusterClient); !many {
		partition = 0
	}
	c := s.connections[partition]
	if c == nil {
		c = newConnection(s)
		s.connections[partition] = c
		if !s.closed {
			s.goroutines.Go(s.containPanics(s.ctx, c.keepListening))
		}
	}
	return c
}

// noPartition is the connection of the announcement channel.
const noPartition = -1

// setSubscribed records that the subscription to a thread is confirmed or lost,
// and reports it to the followers.
func (s *Subscriber) setSubscribed(thread string, subscribed bool) {
	s.mu.Lock()
	f := s.followed[thread]
	if f == nil || (!subscribed && !f.subscribed) {
		s.mu.Unlock()
		return
	}
	f.subscribed = subscribed
	missing := !subscribed && len(f.lastNumbers) > 0 // they may publish events that are missed now
	s.mu.Unlock()
	if missing {
		s.deliverSignal(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalGap})
	}
	kind := checkpoint.SignalDisconnected
	if subscribed {
		kind = checkpoint.SignalConnected
		s.announceThread(thread)
	}
	s.deliverSignal(checkpoint.Signal{Thread: thread, Kind: kind})
}

// gap is a number of ephemeral events that did not arrive.
type gap struct {
	isThere bool
	missing uint64 // 0 = not known
}

// recordEphemeral records the number of an ephemeral event. It reports whether
// the event is new, and which gap is before it.
func (s *Subscriber) recordEphemeral(thread, publisherID string, n uint64) (isNew bool, before gap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[thread]
	if f == nil {
		return false, gap{}
	}
	last, known := f.lastNumbers[publisherID]
	if known && n <= last {
		return false, gap{}
	}
	f.setLastNumber(publisherID, n)
	if !known { // those before it may be from before the first follower
		return true, gap{isThere: n > 1}
	}
	return true, gap{n > last+1, n - last - 1}
}

// recordPosition records the newest number of a publisher. It returns the gap up to there.
func (s *Subscriber) recordPosition(thread, publisherID string, n uint64, published bool) gap {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[thread]
	if f == nil {
		return gap{}
	}
	last, known := f.lastNumbers[publisherID]
	if known && n <= last {
		return gap{}
	}
	f.setLastNumber(publisherID, n)
	if !known {
		return gap{isThere: published}
	}
	return gap{true, n - last}
}

// setLastNumber records the newest number of a publisher.
func (f *followedThread) setLastNumber(publisherID string, n uint64) {
	if _, known := f.lastNumbers[publisherID]; !known && len(f.lastNumbers) >= maxPublishers {
		clear(f.lastNumbers)
	}
	if f.lastNumbers == nil {
		f.lastNumbers = make(map[string]uint64, 1)
	}
	f.lastNumbers[publisherID] = n
}

// maxPublishers bounds the publishers that are remembered per thread.
const maxPublishers = 8

// deliverSignal hands a signal to every subscription of this process.
func (s *Subscriber) deliverSignal(signal checkpoint.Signal) {
	s.mu.Lock()
	all := make([]*subscription, 0, len(s.subscriptions))
	for t := range s.subscriptions {
		all = append(all, t)
	}
	s.mu.Unlock()
	for _, t := range all {
		t.deliver(signal)
	}
}

// containPanics wraps f for a goroutine that lives until ctx ends: after a panic, f
// starts again a moment later.
func (s *Subscriber) containPanics(ctx context.Context, f func(context.Context)) func() {
	caught := contain.LogPanic(s.config.Log, "a connection to the other servers panicked; it begins anew")
	return contain.Func(func() {
		for {
			p := contain.Call(func() { f(ctx) })
			if p == nil {
				return
			}
			caught(p)
			if !script.SleepContext(ctx, time.Second) {
				return
			}
		}
	}, caught)
}

// CheckAccess tries to publish and to subscribe, as the user of a client.
func CheckAccess(ctx context.Context, client goredis.UniversalClient, keys *layout.Keys, origin string) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	channel := keys.AnnouncementChannel()
	if err := client.SPublish(ctx, channel, origin).Err(); err != nil {
		return err
	}
	listening := client.SSubscribe(ctx, channel)
	defer func() { _ = listening.Close() }()
	_, err := listening.Receive(ctx)
	return err
}
