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

// Signalled is a store that tells other processes what it does.
type Signalled interface {
	Store
	checkpoint.Signals
}

// RunSignals runs the cases of checkpoint.Signals. open makes two stores of two
// processes that keep the same threads, none at first.
func RunSignals(t *testing.T, open func(t *testing.T) (here, there Signalled)) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(p *party)
	}{
		{"changes are told in the order of the log", signalChanges},
		{"what this process does itself is not told", signalNotSelf},
		{"a thread that is not followed is not heard", signalUnfollowed},
		{"a thread is heard until the last has left", signalReferences},
		{"ephemeral events come before the change that is made later", signalOrder},
		{"ephemeral events of the past are missing, and that is told", signalMissed},
		{"events that are too long to be told are looked for", signalLong},
		{"a deleted thread is told of", signalDeleted},
		{"a process is woken by its name", signalWake},
		{"all processes are woken at once", signalWakeAll},
		{"changed questions of all threads are told", signalQuestions},
		{"who has closed hears nothing", signalClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := open(t)
			p := &party{env: &env{T: t, ctx: t.Context(), store: here}, there: there}
			p.here, p.heardHere = p.tune(here)
			p.far, p.heard = p.tune(there)
			p.meet()
			c.run(p)
		})
	}
}

// party is two processes: one does things, the other one hears of them.
type party struct {
	*env
	there     Signalled
	here, far checkpoint.Tuner
	heardHere chan checkpoint.Signal
	heard     chan checkpoint.Signal
}

// enough is how many signals a case may hear before it reads them.
const enough = 4096

func (p *party) tune(s Signalled) (checkpoint.Tuner, chan checkpoint.Signal) {
	heard := make(chan checkpoint.Signal, enough)
	tuner := s.Tune(func(s checkpoint.Signal) { heard <- s })
	p.Cleanup(tuner.Close)
	return tuner, heard
}

// meet waits until both hear each other.
func (p *party) meet() {
	p.Helper()
	for _, side := range []struct {
		from checkpoint.Tuner
		to   chan checkpoint.Signal
	}{{p.here, p.heard}, {p.far, p.heardHere}} {
		require.Eventually(p, func() bool {
			side.from.Wake("hello", "hello")
			return len(side.to) > 0
		}, time.Minute, 10*time.Millisecond)
		side.from.Wake("met", "met")
		for p.next(side.to).Owner != "met" {
		}
	}
}

// next is what is heard next.
func (p *party) next(heard chan checkpoint.Signal) checkpoint.Signal {
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

// follow begins to listen there, and waits until that has begun. Both sides
// know of each other then.
func (p *party) follow(thread string) (stop func()) {
	p.Helper()
	stop = p.far.Follow(thread)
	require.Equal(p, checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalTuned}, p.next(p.heard))
	return stop
}

// fence makes sure that what was told before was heard or will not be.
func (p *party) fence() {
	p.Helper()
	p.here.Wake("fence", "fence")
	for {
		if s := p.next(p.heard); s.Kind == checkpoint.SignalWake && s.Owner == "fence" {
			return
		}
		require.Fail(p, "something else was heard")
	}
}

// durable reads signals until so many durable events were told, in their order.
func (p *party) durable(thread string, after, last uint64) {
	p.Helper()
	for after < last {
		s := p.next(p.heard)
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
		require.Equal(p, thread, s.Thread)
		stored, err := p.store.Events(p.ctx, thread, after, len(s.Events))
		require.NoError(p, err)
		require.Equal(p, stored, s.Events)
		after += uint64(len(s.Events))
	}
}

func signalChanges(p *party) {
	th := p.thread("t")
	th.apply(events(1))
	p.follow("t")
	for range 50 {
		th.apply(events(3))
	}
	th.apply() // nothing to tell
	p.durable("t", 1, 151)
	p.fence()
}

func signalNotSelf(p *party) {
	stop := p.here.Follow("t")
	defer stop()
	require.Equal(p, checkpoint.SignalTuned, p.next(p.heardHere).Kind)
	p.follow("t")
	p.thread("t").apply(events(1))
	p.here.Tell("t", whisper(1, "0"))
	p.here.Wake("", "t")
	p.far.Wake("fence", "fence")
	require.Equal(p, checkpoint.Signal{Thread: "fence", Owner: "fence", Kind: checkpoint.SignalWake}, p.next(p.heardHere))
}

func signalUnfollowed(p *party) {
	p.follow("other")
	th := p.thread("t")
	th.apply(events(1))
	p.here.Tell("t", whisper(1, "0"))
	th.apply(events(1))
	p.fence()
}

func signalReferences(p *party) {
	th := p.thread("t")
	first, second := p.follow("t"), p.follow("t") // the second is heard at once
	first()
	first() // says nothing new
	th.apply(events(1))
	p.durable("t", 0, 1)
	second()
	third := p.follow("t")
	th.apply(events(1))
	p.durable("t", 1, 2)
	third()
}

// whisper is an ephemeral event after a number of the log.
func whisper(after uint64, value string) checkpoint.Event {
	return checkpoint.Event{
		Seq: after, Ephemeral: true, Time: day(1), Kind: checkpoint.EventCustom, Run: "r", Node: "n", Name: "token",
		Value: payload.JSON(value),
	}
}

func signalOrder(p *party) {
	th := p.thread("t")
	p.follow("t")
	said := 0
	for range 40 {
		for range 7 {
			p.here.Tell("t", whisper(th.head.LastEvent, fmt.Sprint(said)))
			said++
		}
		th.apply(events(2))
	}
	var after uint64
	for heard := 0; heard < said || after < th.head.LastEvent; {
		s := p.next(p.heard)
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
		for _, e := range s.Events {
			if !e.Ephemeral {
				require.Equal(p, after+1, e.Seq)
				require.Equal(p, 7*int((after+2)/2), heard, "what was told before event %d", e.Seq)
				after++
				continue
			}
			require.Equal(p, whisper(after, fmt.Sprint(heard)), e, "once, and in order")
			heard++
		}
	}
	p.here.Hush("t")
	p.fence()
}

func signalMissed(p *party) {
	th := p.thread("t")
	th.apply(events(1))
	for i := range 5 {
		p.here.Tell("t", whisper(1, fmt.Sprint(i)))
	}
	th.apply(events(1)) // nobody listens to it
	p.follow("t")
	require.Equal(p, checkpoint.SignalGap, p.next(p.heard).Kind, "though nothing more is told")
	p.here.Tell("t", whisper(2, "5"))
	require.Equal(p, []checkpoint.Event{whisper(2, "5")}, p.next(p.heard).Events, "there is no second gap")
}

func signalLong(p *party) {
	th := p.thread("t")
	p.follow("t")
	th.apply(func(c *checkpoint.Change) {
		c.Head.LastEvent++
		c.Events = append(c.Events, checkpoint.Event{
			Seq: 1, Time: day(1), Kind: checkpoint.EventCustom, Value: payload.JSON(`"` + strings.Repeat("x", 4<<20) + `"`),
		})
	})
	require.Contains(p, []checkpoint.SignalKind{checkpoint.SignalLook, checkpoint.SignalEvents}, p.next(p.heard).Kind)
	th.apply(events(1))
	p.durable("t", 1, 2)
}

func signalDeleted(p *party) {
	th := p.thread("t")
	th.apply(events(1))
	p.follow("t")
	th.apply(func(c *checkpoint.Change) { c.Delete = true })
	require.Equal(p, checkpoint.Signal{Thread: "t", Kind: checkpoint.SignalDeleted}, p.next(p.heard))
}

func signalWake(p *party) {
	p.follow("other") // both listen
	p.here.Wake("a server/1 k5:x", "thread 1:x")
	require.Equal(p, checkpoint.Signal{Thread: "thread 1:x", Owner: "a server/1 k5:x", Kind: checkpoint.SignalWake}, p.next(p.heard))
}

func signalWakeAll(p *party) {
	p.follow("other")
	p.here.Wake("", "t")
	p.here.Wake("", "u")
	for _, thread := range []string{"t", "u"} {
		require.Equal(p, checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake}, p.next(p.heard))
	}
	p.far.Wake("", "v")
	require.Equal(p, checkpoint.Signal{Thread: "v", Kind: checkpoint.SignalWake}, p.next(p.heardHere))
}

func signalQuestions(p *party) {
	p.follow(checkpoint.AllThreads)
	look := checkpoint.Signal{Thread: checkpoint.AllThreads, Kind: checkpoint.SignalLook}
	th := p.thread("t")
	th.apply(events(1))
	p.fence()
	q := question("t", "q", "c")
	for range 3 {
		th.apply(func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{q} })
		require.Equal(p, look, p.next(p.heard))
	}
}

func signalClosed(p *party) {
	th := p.thread("t")
	p.follow("t")
	p.far.Close()
	again, heard := p.tune(p.there)
	th.apply(events(1))
	again.Follow("t")
	for s := p.next(heard); s.Kind != checkpoint.SignalTuned; s = p.next(heard) {
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
	}
	p.here.Wake("", "t")
	for s := p.next(heard); s.Kind != checkpoint.SignalWake; s = p.next(heard) {
		require.Equal(p, checkpoint.SignalEvents, s.Kind)
	}
	require.Empty(p, p.heard)
}
