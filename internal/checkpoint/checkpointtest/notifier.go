package checkpointtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// NotifyingStore is a store that sends signals to other processes.
type NotifyingStore interface {
	Store
	checkpoint.Notifier
}

// RunNotifier runs the cases of checkpoint.Notifier. open makes two stores of two
// processes that keep the same threads, none at first.
func RunNotifier(t *testing.T, open func(t *testing.T) (here, there NotifyingStore)) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(p *processPair)
	}{
		{"changes are told in the order of the log", notifyChanges},
		{"what this process does itself is not told", notifyNotSelf},
		{"a thread that is not followed is not heard", notifyUnfollowed},
		{"a thread is heard until the last has left", notifyReferences},
		{"ephemeral events come before the change that is made later", notifyOrder},
		{"ephemeral events of the past are missing, and that is told", notifyMissed},
		{"events that are too long to be told are looked for", notifyLong},
		{"a deleted thread is announced", notifyDeleted},
		{"a process is woken by its name", notifyWake},
		{"all processes are woken at once", notifyWakeAll},
		{"changed questions of all threads are told", notifyInterrupts},
		{"who has closed hears nothing", notifyClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := open(t)
			p := &processPair{env: &env{T: t, ctx: t.Context(), store: here}, remoteStore: there}
			p.local, p.localSignals = p.subscribeTo(here)
			p.remote, p.remoteSignals = p.subscribeTo(there)
			p.waitConnected()
			c.run(p)
		})
	}
}

// processPair is two processes: the first makes changes, the second receives
// signals.
type processPair struct {
	*env
	remoteStore   NotifyingStore
	local, remote checkpoint.Subscription
	localSignals  chan checkpoint.Signal
	remoteSignals chan checkpoint.Signal
}

// signalBuffer is how many signals a case may receive before it reads them.
const signalBuffer = 4096

func (p *processPair) subscribeTo(s NotifyingStore) (checkpoint.Subscription, chan checkpoint.Signal) {
	heard := make(chan checkpoint.Signal, signalBuffer)
	subscription := s.Subscribe(func(s checkpoint.Signal) { heard <- s })
	p.Cleanup(subscription.Close)
	return subscription, heard
}

// waitConnected waits until both receive signals of the other.
func (p *processPair) waitConnected() {
	p.Helper()
	for _, side := range []struct {
		from checkpoint.Subscription
		to   chan checkpoint.Signal
	}{{p.local, p.remoteSignals}, {p.remote, p.localSignals}} {
		require.Eventually(p, func() bool {
			side.from.WakeServers("hello", "hello")
			return len(side.to) > 0
		}, time.Minute, 10*time.Millisecond)
		side.from.WakeServers("met", "met")
		for p.nextSignal(side.to).Owner != "met" {
		}
	}
}

// nextSignal returns the next signal.
func (p *processPair) nextSignal(heard chan checkpoint.Signal) checkpoint.Signal {
	p.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case s := <-heard:
		return s
	case <-timer.C:
		require.Fail(p, "nothing was heard")
		return checkpoint.Signal{}
	}
}

// followRemotely begins to listen there, and waits until that has begun. Both sides
// know of each other then.
func (p *processPair) followRemotely(thread string) (stop func()) {
	p.Helper()
	stop = p.remote.Follow(thread)
	require.Equal(p, checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalConnected}, p.nextSignal(p.remoteSignals))
	return stop
}

// requireNoOtherSignal checks that no signal but its own marker arrives.
func (p *processPair) requireNoOtherSignal() {
	p.Helper()
	p.local.WakeServers("fence", "fence")
	for {
		if s := p.nextSignal(p.remoteSignals); s.Kind == checkpoint.SignalWake && s.Owner == "fence" {
			return
		}
		require.Fail(p, "something else was heard")
	}
}

// requireDurableEvents reads signals until the durable events up to a number
// arrived in order.
func (p *processPair) requireDurableEvents(thread string, after, last uint64) {
	p.Helper()
	for after < last {
		s := p.nextSignal(p.remoteSignals)
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
		require.Equal(p, thread, s.Thread)
		stored, err := p.store.Events(p.ctx, thread, after, len(s.Events))
		require.NoError(p, err)
		require.Equal(p, stored, s.Events)
		after += uint64(len(s.Events))
	}
}

func notifyChanges(p *processPair) {
	th := p.newThread("t")
	th.applyEdits(addEvents(1))
	p.followRemotely("t")
	for range 50 {
		th.applyEdits(addEvents(3))
	}
	th.applyEdits() // nothing to tell
	p.requireDurableEvents("t", 1, 151)
	p.requireNoOtherSignal()
}

func notifyNotSelf(p *processPair) {
	stop := p.local.Follow("t")
	defer stop()
	require.Equal(p, checkpoint.SignalConnected, p.nextSignal(p.localSignals).Kind)
	p.followRemotely("t")
	p.newThread("t").applyEdits(addEvents(1))
	p.local.PublishEphemeral("t", newEphemeral(1, "0"))
	p.local.WakeServers("", "t")
	p.remote.WakeServers("fence", "fence")
	require.Equal(p, checkpoint.Signal{Thread: "fence", Owner: "fence", Kind: checkpoint.SignalWake}, p.nextSignal(p.localSignals))
}

func notifyUnfollowed(p *processPair) {
	p.followRemotely("other")
	th := p.newThread("t")
	th.applyEdits(addEvents(1))
	p.local.PublishEphemeral("t", newEphemeral(1, "0"))
	th.applyEdits(addEvents(1))
	p.requireNoOtherSignal()
}

func notifyReferences(p *processPair) {
	th := p.newThread("t")
	first, second := p.followRemotely("t"), p.followRemotely("t") // the second is connected at once
	first()
	first() // says nothing new
	th.applyEdits(addEvents(1))
	p.requireDurableEvents("t", 0, 1)
	second()
	third := p.followRemotely("t")
	th.applyEdits(addEvents(1))
	p.requireDurableEvents("t", 1, 2)
	third()
}

// newEphemeral is an ephemeral event after a number of the log.
func newEphemeral(after uint64, value string) checkpoint.Event {
	return checkpoint.Event{
		Seq: after, Ephemeral: true, Time: testDay(1), Kind: checkpoint.EventCustom, Run: "r", Node: "n", Name: "token",
		Value: payload.JSON(value),
	}
}

func notifyOrder(p *processPair) {
	th := p.newThread("t")
	p.followRemotely("t")
	said := 0
	for range 40 {
		for range 7 {
			p.local.PublishEphemeral("t", newEphemeral(th.head.LastEvent, fmt.Sprint(said)))
			said++
		}
		th.applyEdits(addEvents(2))
	}
	var after uint64
	for heard := 0; heard < said || after < th.head.LastEvent; {
		s := p.nextSignal(p.remoteSignals)
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
		for _, e := range s.Events {
			if !e.Ephemeral {
				require.Equal(p, after+1, e.Seq)
				require.Equal(p, 7*int((after+2)/2), heard, "what was told before event %d", e.Seq)
				after++
				continue
			}
			require.Equal(p, newEphemeral(after, fmt.Sprint(heard)), e, "once, and in order")
			heard++
		}
	}
	p.local.StopPublishing("t")
	p.requireNoOtherSignal()
}

func notifyMissed(p *processPair) {
	th := p.newThread("t")
	th.applyEdits(addEvents(1))
	for i := range 5 {
		p.local.PublishEphemeral("t", newEphemeral(1, fmt.Sprint(i)))
	}
	th.applyEdits(addEvents(1)) // without followers
	for range 2 {               // what is sent a second time, beside the change, goes with the messages before these
		p.requireNoOtherSignal()
	}
	p.followRemotely("t")
	require.Equal(p, checkpoint.SignalGap, p.nextSignal(p.remoteSignals).Kind, "though nothing more is told")
	p.local.PublishEphemeral("t", newEphemeral(2, "5"))
	require.Equal(p, []checkpoint.Event{newEphemeral(2, "5")}, p.nextSignal(p.remoteSignals).Events, "there is no second gap")
}

func notifyLong(p *processPair) {
	th := p.newThread("t")
	p.followRemotely("t")
	th.applyEdits(func(c *checkpoint.Change) {
		c.Head.LastEvent++
		c.Events = append(c.Events, checkpoint.Event{
			Seq: 1, Time: testDay(1), Kind: checkpoint.EventCustom, Value: payload.JSON(`"` + strings.Repeat("x", 4<<20) + `"`),
		})
	})
	require.Contains(p, []checkpoint.SignalKind{checkpoint.SignalRefresh, checkpoint.SignalEvents}, p.nextSignal(p.remoteSignals).Kind)
	th.applyEdits(addEvents(1))
	p.requireDurableEvents("t", 1, 2)
}

func notifyDeleted(p *processPair) {
	th := p.newThread("t")
	th.applyEdits(addEvents(1))
	p.followRemotely("t")
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	require.Equal(p, checkpoint.Signal{Thread: "t", Kind: checkpoint.SignalDeleted}, p.nextSignal(p.remoteSignals))
}

func notifyWake(p *processPair) {
	p.followRemotely("other") // both listen
	p.local.WakeServers("a server/1 k5:x", "thread 1:x")
	require.Equal(p, checkpoint.Signal{Thread: "thread 1:x", Owner: "a server/1 k5:x", Kind: checkpoint.SignalWake}, p.nextSignal(p.remoteSignals))
}

func notifyWakeAll(p *processPair) {
	p.followRemotely("other")
	p.local.WakeServers("", "t")
	p.local.WakeServers("", "u")
	for _, thread := range []string{"t", "u"} {
		require.Equal(p, checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake}, p.nextSignal(p.remoteSignals))
	}
	p.remote.WakeServers("", "v")
	require.Equal(p, checkpoint.Signal{Thread: "v", Kind: checkpoint.SignalWake}, p.nextSignal(p.localSignals))
}

func notifyInterrupts(p *processPair) {
	p.followRemotely(checkpoint.AllThreads)
	look := checkpoint.Signal{Thread: checkpoint.AllThreads, Kind: checkpoint.SignalRefresh}
	th := p.newThread("t")
	th.applyEdits(addEvents(1))
	p.requireNoOtherSignal()
	q := newInterrupt("t", "q", "c")
	for range 3 {
		th.applyEdits(func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{q} })
		require.Equal(p, look, p.nextSignal(p.remoteSignals))
	}
}

func notifyClosed(p *processPair) {
	th := p.newThread("t")
	p.followRemotely("t")
	p.remote.Close()
	again, heard := p.subscribeTo(p.remoteStore)
	th.applyEdits(addEvents(1))
	again.Follow("t")
	for s := p.nextSignal(heard); s.Kind != checkpoint.SignalConnected; s = p.nextSignal(heard) {
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
	}
	p.local.WakeServers("", "t")
	for s := p.nextSignal(heard); s.Kind != checkpoint.SignalWake; s = p.nextSignal(heard) {
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
	}
	require.Empty(p, p.remoteSignals)
}
