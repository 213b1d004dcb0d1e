package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	signals(t, server.URL)
	t.Run("come back when connections break", func(t *testing.T) {
		newPair(t, server.URL("shared=true&prefix=cut")).comesBack(func() {
			require.NoError(t, server.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
		})
	})
	t.Run("come back when Redis is restarted", func(t *testing.T) {
		newPair(t, server.URL("shared=true&prefix=restarted")).comesBack(server.Restart)
	})
}

func TestSignalsOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, "--appendfsync", "no")
	t.Run("come back when a slot moves", func(t *testing.T) {
		p := newPair(t, c.Nodes[0].URL(""))
		slot := slotOf(t, c, "t")
		for i := range 2 {
			p.comesBack(func() {
				at, err := c.Owner(t.Context(), slot)
				require.NoError(t, err)
				to := c.Nodes[i]
				if at == to {
					to = c.Nodes[2]
				}
				require.NoError(t, c.Move(t.Context(), slot, to, 0))
			})
		}
	})
	signals(t, c.Nodes[1].URL)
}

func TestSignalsOnSentinel(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	url := func(query string) string { return group.URL() + "&" + query }
	signals(t, url)
	t.Run("come back with a new master", func(t *testing.T) {
		p := newPair(t, url("shared=true&prefix=failover"))
		p.comesBack(func() {
			replicated(t, group.Master.Client)
			require.NoError(t, group.Lose(t.Context()))
		})
	})
}

// signals runs the suite, each case under keys of its own.
func signals(t *testing.T, url func(query string) string) {
	t.Helper()
	var n atomic.Int32
	checkpointtest.RunSignals(t, func(t *testing.T) (here, there checkpointtest.Signalled) {
		t.Helper()
		at := url(fmt.Sprintf("shared=true&prefix=case%d", n.Add(1)))
		return open(t, at), open(t, at)
	})
}

// pair is two stores on the same server, and what the second one is told.
type pair struct {
	*testing.T

	here, there *redis.Store
	tell        checkpoint.Tuner
	heard       chan checkpoint.Signal
	n           uint64 // supersteps of thread t
}

func newPair(t *testing.T, url string) *pair {
	t.Helper()
	p := &pair{T: t, here: open(t, url), there: open(t, url), heard: make(chan checkpoint.Signal, 4096)}
	p.tell = p.here.Tune(func(checkpoint.Signal) {})
	tuner := p.there.Tune(func(s checkpoint.Signal) { p.heard <- s })
	p.step()
	tuner.Follow("t")
	p.until(checkpoint.SignalTuned)
	return p
}

// step makes a change of the thread, as often as it takes.
func (p *pair) step() {
	p.Helper()
	p.n++
	w := &writer{store: p.here, thread: "t", n: p.n - 1}
	w.step(p.T)
}

// until waits for a kind of signal and lists what came before.
func (p *pair) until(k checkpoint.SignalKind) (before []checkpoint.SignalKind) {
	p.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case s := <-p.heard:
			if s.Kind == k {
				return before
			}
			before = append(before, s.Kind)
		case <-timer.C:
			require.Fail(p, "it was not told", "%s, only %v", k, before)
		}
	}
}

// hears makes a change, and tells something: both must arrive.
func (p *pair) hears() {
	p.Helper()
	p.step()
	p.until(checkpoint.SignalEvents)
	p.step()
	for _, k := range p.until(checkpoint.SignalEvents) {
		require.Equal(p, checkpoint.SignalGap, k, "who speaks has heard that somebody listens again")
	}
	token := checkpoint.Event{Seq: 2 * p.n, Kind: checkpoint.EventCustom, Name: "token", Value: "1"}
	// Who tells may learn a moment later that somebody listens again.
	require.Eventually(p, func() bool {
		p.tell.Tell("t", token)
		select {
		case s := <-p.heard:
			return s.Kind == checkpoint.SignalEvents && s.Events[0].Ephemeral
		default:
			return false
		}
	}, time.Minute, 5*time.Millisecond)
}

// comesBack does something to the connections: that nothing is heard is told,
// and so is that it is heard again.
func (p *pair) comesBack(harm func()) {
	p.Helper()
	p.hears()
	harm()
	began := time.Now()
	require.Contains(p, p.until(checkpoint.SignalDeaf), checkpoint.SignalGap, "tokens may be missing")
	p.until(checkpoint.SignalTuned)
	p.Logf("heard again after %v", time.Since(began))
	p.hears()
}

// TestWithoutTheRightToTalk gives servers a user who may not use channels, or
// not the commands for them. The store works, says so once, and asks rarely
// whether that has changed.
func TestWithoutTheRightToTalk(t *testing.T) {
	for name, rights := range map[string]string{"no channels": "resetchannels", "no commands": "-@pubsub"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "quiet", "on", ">secret", "~*", "&*", "+@all", rights).Err())
			s := open(t, "redis://quiet:secret@"+server.Addr()+"/0")
			require.Len(t, s.Warnings(), 1)
			require.Contains(t, s.Warnings()[0], "may not publish or subscribe")
			require.Contains(t, s.Warnings()[0], "&graphd* +@pubsub")
			var heard atomic.Int32
			tuner := s.Tune(func(checkpoint.Signal) { heard.Add(1) })
			tuner.Follow("t")
			w := &writer{store: s, thread: "t"}
			for range 20 {
				tuner.Tell("t", checkpoint.Event{Seq: 2 * w.n, Kind: checkpoint.EventCustom, Value: "1"})
				tuner.Wake("", "t")
				w.step(t)
			}
			w.check(t)
			require.Zero(t, w.away)
			log, err := server.Client.Do(t.Context(), "ACL", "LOG").Slice()
			require.NoError(t, err)
			require.NotEmpty(t, log)
			calls := stats(t, server)["total_connections_received"]
			rest := time.NewTimer(500 * time.Millisecond)
			<-rest.C
			require.Equal(t, calls, stats(t, server)["total_connections_received"], "it is not tried again and again")
			require.Zero(t, heard.Load())
		})
	}
}
