package redis

import (
	"context"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// subscriber exchanges signals with other servers. Each thread has a shard
// channel with the name of its head key; scripts publish their changes there.
// One connection serves all threads; in a cluster, one per partition with
// followed threads.
type subscriber struct {
	store      *Store
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
	flushNeeded    chan struct{} // a message is pending
}

// followedThread is a thread that this process follows.
type followedThread struct {
	followers   int
	subscribed  bool              // the Redis server has confirmed the subscription
	lastNumbers map[string]uint64 // number of the newest ephemeral event, by publisher
}

func newSubscriber(ctx context.Context, s *Store) *subscriber {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // ended by close
	r := &subscriber{
		store: s, ctx: ctx, stop: stop, subscriptions: make(map[*subscription]struct{}),
		followed: make(map[string]*followedThread), connections: make(map[int]*connection),
		publishers: make(map[string]*publisher), broadcasts: broadcasts{hasInterruptFollowers: true}, flushNeeded: make(chan struct{}, 1),
	}
	r.goroutines.Go(s.containPanics(ctx, r.keepFlushing))
	return r
}

func (r *subscriber) closeAll() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.goroutines.Wait()
}

// subscription implements checkpoint.Subscription.
type subscription struct {
	subscriber *subscriber
	deliver    func(checkpoint.Signal)
}

var _ checkpoint.Notifier = (*Store)(nil)

// Subscribe opens a subscription to the signals of other servers. Signals that
// are sent through this store are not delivered.
func (s *Store) Subscribe(handleSignal func(checkpoint.Signal)) checkpoint.Subscription {
	t := &subscription{subscriber: s.subscriber, deliver: handleSignal}
	s.subscriber.mu.Lock()
	defer s.subscriber.mu.Unlock()
	s.subscriber.subscriptions[t] = struct{}{}
	s.subscriber.connectionFor(noPartition).setWanted(s.keys.AnnouncementChannel(), true)
	return t
}

// Close ends the subscription.
func (t *subscription) Close() {
	t.subscriber.mu.Lock()
	defer t.subscriber.mu.Unlock()
	delete(t.subscriber.subscriptions, t)
}

// Follow delivers the signals of a thread.
func (t *subscription) Follow(thread string) (stop func()) {
	if t.subscriber.followThread(thread) {
		t.deliver(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalConnected})
	}
	return sync.OnceFunc(func() { t.subscriber.unfollowThread(thread) })
}

// followThread subscribes to a thread and reports whether the subscription is
// confirmed already.
func (r *subscriber) followThread(thread string) (subscribed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	f := r.followed[thread]
	if f == nil {
		f = &followedThread{}
		r.followed[thread] = f
	}
	f.followers++
	if f.followers == 1 {
		r.connectionFor(r.store.keys.PartitionOf(thread)).setWanted(r.store.keys.ThreadChannel(thread), true)
	}
	return f.subscribed
}

func (r *subscriber) unfollowThread(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.followed[thread]
	f.followers--
	if f.followers == 0 {
		delete(r.followed, thread)
		r.connectionFor(r.store.keys.PartitionOf(thread)).setWanted(r.store.keys.ThreadChannel(thread), false)
	}
}

// connectionFor finds the connection for a partition. The caller holds mu.
func (r *subscriber) connectionFor(partition int) *connection {
	if _, many := r.store.client.(*goredis.ClusterClient); !many {
		partition = 0
	}
	l := r.connections[partition]
	if l == nil {
		l = newConnection(r)
		r.connections[partition] = l
		if !r.closed {
			r.goroutines.Go(r.store.containPanics(r.ctx, l.keepListening))
		}
	}
	return l
}

// noPartition is the connection of the announcement channel.
const noPartition = -1

// setSubscribed records that the subscription to a thread is confirmed or lost,
// and reports it to the followers.
func (r *subscriber) setSubscribed(thread string, subscribed bool) {
	r.mu.Lock()
	f := r.followed[thread]
	if f == nil || (!subscribed && !f.subscribed) {
		r.mu.Unlock()
		return
	}
	f.subscribed = subscribed
	missing := !subscribed && len(f.lastNumbers) > 0 // they may publish events that are missed now
	r.mu.Unlock()
	if missing {
		r.deliverSignal(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalGap})
	}
	kind := checkpoint.SignalDisconnected
	if subscribed {
		kind = checkpoint.SignalConnected
		r.announceThread(thread)
	}
	r.deliverSignal(checkpoint.Signal{Thread: thread, Kind: kind})
}

// recordEphemeral records the number of an ephemeral event. It reports whether
// the event is new, and whether earlier events are missing.
func (r *subscriber) recordEphemeral(thread, publisherID string, n uint64) (isNew, gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.followed[thread]
	if f == nil {
		return false, false
	}
	last, known := f.lastNumbers[publisherID]
	if known && n <= last {
		return false, false
	}
	f.setLastNumber(publisherID, n)
	return true, n > last+1 // of a new publisher: events before the first follower
}

// recordPosition records the newest number of a publisher. It reports whether
// events were missed.
func (r *subscriber) recordPosition(thread, publisherID string, n uint64, published bool) (gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.followed[thread]
	if f == nil {
		return false
	}
	last, known := f.lastNumbers[publisherID]
	if known && n <= last {
		return false
	}
	f.setLastNumber(publisherID, n)
	return known || published
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
func (r *subscriber) deliverSignal(s checkpoint.Signal) {
	r.mu.Lock()
	all := make([]*subscription, 0, len(r.subscriptions))
	for t := range r.subscriptions {
		all = append(all, t)
	}
	r.mu.Unlock()
	for _, t := range all {
		t.deliver(s)
	}
}
