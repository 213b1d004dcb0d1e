package redis_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

func TestNotifier(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runSignalSuite(t, server.URL)
	t.Run("come back when connections break", func(t *testing.T) {
		newPair(t, server.URL("shared=true&prefix=cut")).requireReconnect(func() {
			require.NoError(t, server.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
		})
	})
	t.Run("come back when Redis is restarted", func(t *testing.T) {
		newPair(t, server.URL("shared=true&prefix=restarted")).requireReconnect(server.Restart)
	})
}

func TestNotifierOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, "--appendfsync", "no")
	t.Run("come back when a slot moves", func(t *testing.T) {
		p := newPair(t, c.Nodes[0].URL(""))
		slot := slotOfThread(t, c, "t")
		for i := range 2 {
			p.requireReconnect(func() {
				at, err := c.SlotOwner(t.Context(), slot)
				require.NoError(t, err)
				to := c.Nodes[i]
				if at == to {
					to = c.Nodes[2]
				}
				require.NoError(t, c.MoveSlot(t.Context(), slot, to, 0))
			})
		}
	})
	runSignalSuite(t, c.Nodes[1].URL)
}

func TestNotifierOnSentinel(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	url := func(query string) string { return group.URL() + "&" + query }
	runSignalSuite(t, url)
	t.Run("come back with a new master", func(t *testing.T) {
		p := newPair(t, url("shared=true&prefix=failover"))
		p.requireReconnect(func() {
			waitReplicated(t, group.Master.Client)
			require.NoError(t, group.Lose(t.Context()))
		})
	})
}

// runSignalSuite runs the suite, each case under keys of its own.
func runSignalSuite(t *testing.T, url func(query string) string) {
	t.Helper()
	var n atomic.Int32
	checkpointtest.RunNotifier(t, func(t *testing.T) (here, there checkpointtest.NotifyingStore) {
		t.Helper()
		at := url(fmt.Sprintf("shared=true&prefix=case%d", n.Add(1)))
		return openStore(t, at), openStore(t, at)
	})
}

// storePair is two stores on the same server, and what the second one is told.
type storePair struct {
	*testing.T

	local, remote *redis.Store
	publisher     checkpoint.Subscription
	signals       chan checkpoint.Signal
	supersteps    uint64 // supersteps of thread t
}

func newPair(t *testing.T, url string) *storePair {
	t.Helper()
	p := &storePair{T: t, local: openStore(t, url), remote: openStore(t, url), signals: make(chan checkpoint.Signal, 4096)}
	p.publisher = p.local.Subscribe(func(checkpoint.Signal) {})
	tuner := p.remote.Subscribe(func(s checkpoint.Signal) { p.signals <- s })
	p.applyNext()
	tuner.Follow("t")
	p.waitForSignal(checkpoint.SignalConnected)
	return p
}

// applyNext makes a change of the thread, as often as it takes.
func (p *storePair) applyNext() {
	p.Helper()
	p.supersteps++
	w := &threadDriver{store: p.local, thread: "t", supersteps: p.supersteps - 1}
	w.applyNext(p.T)
}

// waitForSignal waits for one of some kinds of signals and lists what came before.
func (p *storePair) waitForSignal(kinds ...checkpoint.SignalKind) (got checkpoint.SignalKind, before []checkpoint.SignalKind) {
	p.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case s := <-p.signals:
			if slices.Contains(kinds, s.Kind) {
				return s.Kind, before
			}
			before = append(before, s.Kind)
		case <-timer.C:
			require.Fail(p, "it was not told", "%s, only %v", kinds, before)
		}
	}
}

// changeUntilTold makes changes until one is told, and lists the signals since it was made. A slot
// that moves can end a subscription more than once. What changes meanwhile is not told: a follower
// reads it in the log when it hears that the subscription is back.
func (p *storePair) changeUntilTold() (before []checkpoint.SignalKind) {
	p.Helper()
	for {
		p.applyNext()
		got, before := p.waitForSignal(checkpoint.SignalEvents, checkpoint.SignalConnected)
		if got == checkpoint.SignalEvents {
			return before
		}
	}
}

// requireDelivery makes a change and publishes an event: both must arrive.
func (p *storePair) requireDelivery() {
	p.Helper()
	p.changeUntilTold()
	for _, k := range p.changeUntilTold() {
		require.Equal(p, checkpoint.SignalGap, k, "the publisher has heard that a subscriber listens again")
	}
	token := checkpoint.Event{Seq: 2 * p.supersteps, Kind: checkpoint.EventCustom, Name: "token", Value: "1"}
	// The publisher may learn a moment later that the thread is followed
	// again.
	require.Eventually(p, func() bool {
		p.publisher.PublishEphemeral("t", token)
		select {
		case s := <-p.signals:
			return s.Kind == checkpoint.SignalEvents && s.Events[0].Ephemeral
		default:
			return false
		}
	}, time.Minute, 5*time.Millisecond)
}

// requireReconnect harms the connections: the loss is reported, and so is the
// new subscription.
func (p *storePair) requireReconnect(harm func()) {
	p.Helper()
	p.requireDelivery()
	harm()
	began := time.Now()
	_, before := p.waitForSignal(checkpoint.SignalDisconnected)
	require.Contains(p, before, checkpoint.SignalGap, "tokens may be missing")
	p.waitForSignal(checkpoint.SignalConnected)
	p.Logf("heard again after %v", time.Since(began))
	p.requireDelivery()
}

// TestWithoutPubSubPermission gives servers a user who may not use channels, or
// not the commands for them. The store works, says so once, and asks rarely
// whether that has changed.
func TestWithoutPubSubPermission(t *testing.T) {
	for name, rights := range map[string]string{"no channels": "resetchannels", "no commands": "-@pubsub"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "quiet", "on", ">secret", "~*", "&*", "+@all", rights).Err())
			s := openStore(t, "redis://quiet:secret@"+server.Addr()+"/0")
			require.Len(t, s.Warnings(), 1)
			require.Contains(t, s.Warnings()[0], "may not publish or subscribe")
			require.Contains(t, s.Warnings()[0], "&graphd* +@pubsub")
			var heard atomic.Int32
			tuner := s.Subscribe(func(checkpoint.Signal) { heard.Add(1) })
			tuner.Follow("t")
			w := &threadDriver{store: s, thread: "t"}
			for range 20 {
				tuner.PublishEphemeral("t", checkpoint.Event{Seq: 2 * w.supersteps, Kind: checkpoint.EventCustom, Value: "1"})
				tuner.WakeServers("", "t")
				w.applyNext(t)
			}
			w.requireComplete(t)
			require.Zero(t, w.unavailable)
			log, err := server.Client.Do(t.Context(), "ACL", "LOG").Slice()
			require.NoError(t, err)
			require.NotEmpty(t, log)
			calls := readStats(t, server)["total_connections_received"]
			rest := time.NewTimer(500 * time.Millisecond)
			<-rest.C
			require.Equal(t, calls, readStats(t, server)["total_connections_received"], "it is not tried again and again")
			require.Zero(t, heard.Load())
		})
	}
}

// TestAGapSaysHowManyEventsAreMissing publishes faster than events are sent: what arrives and what
// gaps report is everything.
func TestAGapSaysHowManyEventsAreMissing(t *testing.T) {
	p := newPair(t, redistest.Start(t).URL(""))
	p.requireDelivery()
	publish := func(name string) {
		p.publisher.PublishEphemeral("t", checkpoint.Event{Seq: 2 * p.supersteps, Kind: checkpoint.EventCustom, Name: name, Value: "1"})
	}
	readUntil := func(last string) (arrived, missing int) {
		for {
			s := <-p.signals
			missing += int(s.Missing)
			for _, e := range s.Events {
				if e.Name == last {
					return arrived, missing
				}
				arrived++
			}
		}
	}
	publish("first")
	readUntil("first")
	for range 20_000 {
		publish("many")
	}
	publish("last")
	arrived, missing := readUntil("last")
	require.Equal(t, 20_000, arrived+missing, "%d arrived", arrived)
	require.NotZero(t, missing)
}
