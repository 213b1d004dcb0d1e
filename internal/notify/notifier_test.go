package notify_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/trail"
)

var mail = notify.Endpoint{Name: "mail"}

// inTime runs a test in a time of its own.
func inTime(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

func TestEachEntryIsSentOnceAndInOrder(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		w.start(mail, r)
		wait(time.Second)
		w.ask("a")
		wait(time.Second)
		require.Equal(t, want("a", "asked"), r.all())
		w.change("a", answer)
		wait(time.Second)
		w.change("a", use)
		wait(time.Second)
		require.Equal(t, want("a", "asked", "answered", "used"), r.all())

		// Changes that are collapsed, of a question that keeps a trail.
		w.ask("b", func(q *checkpoint.Interrupt) { q.Policy = &approval.Policy{Approvals: 1} })
		w.change("b", comment)
		w.change("b", comment)
		w.change("b", answer)
		w.change("b", use)
		wait(time.Second)
		require.Equal(t, want("b", "asked", "commented", "commented", "answered", "used"), of(r.all(), "b"))
		require.Len(t, r.all(), 8)
	})
}

func TestANewEndpointIsToldOfWhatHappensFromThenOn(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.ask("old")
		wait(time.Hour)
		r := &receiver{}
		w.start(mail, r)
		wait(time.Minute)
		require.Empty(t, r.all())
		w.change("old", answer)
		wait(time.Minute)
		require.Equal(t, []string{"old/q/2 answered"}, r.all())
	})
}

func TestARestartRepeatsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		s := w.start(mail, r)
		wait(time.Second)
		w.ask("a")
		w.ask("b")
		wait(time.Hour)
		w.ask("c") // a change by which the place moves
		wait(time.Second)
		s.stop()
		w.change("a", answer)
		wait(time.Minute)
		w.start(mail, r)
		wait(time.Minute)
		w.change("b", answer)
		wait(time.Minute)
		require.Equal(t, want("a", "asked", "answered"), of(r.all(), "a"))
		require.Equal(t, want("b", "asked", "answered"), of(r.all(), "b"))
	})
}

// A server that crashes after the request and before the place is stored has it sent again, under
// the same ids.
func TestACrashRepeatsWithEqualIDs(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		s := w.start(mail, r)
		wait(time.Second)
		s.keeper.fail(errDown)
		w.ask("a")
		w.change("a", comment)
		wait(500 * time.Millisecond)
		require.Equal(t, want("a", "asked", "commented"), r.all())
		s.crash()
		w.change("a", answer)
		next := w.start(mail, r)
		wait(time.Second)
		require.Len(t, r.all(), 2, "another server may be sending")
		wait(2 * hold)
		require.Equal(t, want("a", "asked", "commented", "answered"), r.first())
		require.Equal(t, r.first(), r.all()[2:])
		require.Zero(t, next.seen.countOf(notify.Failed))
	})
}

func TestAnEndpointIsDownForTwoDaysAndServersRestart(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		s := w.start(mail, r)
		wait(time.Second)
		r.refuseBy(refuseAll)
		began := time.Now()
		for i := range 3 {
			for j := range 40 {
				thread := fmt.Sprintf("t%d-%d", i, j)
				w.ask(thread)
				w.change(thread, comment)
			}
			wait(16 * time.Hour)
			if i < 2 {
				s.stop()
				s = w.start(mail, r)
			}
		}
		require.Empty(t, r.all())
		require.True(t, began.Equal(s.OldestUnsent()))
		r.refuseBy(nil)
		wait(3 * time.Hour)
		for i := range 3 {
			for j := range 40 {
				thread := fmt.Sprintf("t%d-%d", i, j)
				require.Equal(t, want(thread, "asked", "commented"), of(r.all(), thread))
			}
		}
		require.Zero(t, s.OldestUnsent())
		require.Zero(t, s.seen.countOf(notify.GivenUp))
	})
}

func TestADeadEndpointGetsTheLastDays(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		s := w.start(mail, r)
		wait(time.Second)
		r.refuseBy(refuseAll)
		for day := range 7 {
			w.ask(fmt.Sprint("day", day))
			wait(24 * time.Hour)
		}
		require.Equal(t, notify.StateDead, s.seen.currentState())
		require.Equal(t, 4, s.seen.countOf(notify.GivenUp))
		s.stop()
		require.Equal(t, notify.StateLive, s.seen.currentState(), "it sends to nobody")
		s = w.start(mail, r)
		wait(time.Second)
		require.Equal(t, notify.StateDead, s.seen.currentState())
		r.refuseBy(nil)
		wait(2 * time.Hour)
		require.ElementsMatch(t, []string{"day4/q/1 asked", "day5/q/1 asked", "day6/q/1 asked"}, r.all())
		require.Equal(t, notify.StateLive, s.seen.currentState())
	})
}

func TestADeadEndpointDelaysNoOther(t *testing.T) {
	for name, dead := range map[string]*receiver{
		"it refuses at once": {refuse: refuseAll},
		"it never answers":   {took: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, w *world) {
				live := &receiver{}
				w.start(notify.Endpoint{Name: "dead"}, dead)
				w.start(mail, live)
				wait(time.Second)
				for i := range 200 {
					w.ask(fmt.Sprint("t", i))
				}
				wait(time.Second)
				require.Len(t, live.all(), 200)
				w.ask("late")
				wait(time.Second)
				require.Len(t, live.all(), 201)
				require.Empty(t, dead.all())
			})
		})
	}
}

// An event that the endpoint never takes holds up its own question only.
func TestAnEventThatIsNeverTakenHoldsUpItsQuestion(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		r.refuseBy(func(e *notify.Event) error {
			if e.ID == "bad/q/1" {
				return errDown
			}
			return nil
		})
		s := w.start(mail, r)
		wait(time.Second)
		w.ask("bad")
		w.change("bad", answer)
		for i := range 3 * notify.MaxInFlight {
			w.ask(fmt.Sprint("t", i))
		}
		wait(time.Minute)
		require.Len(t, r.all(), 3*notify.MaxInFlight)
		require.Empty(t, of(r.all(), "bad"))
		wait(80 * time.Hour)
		require.Equal(t, []string{"bad/q/2 answered"}, of(r.all(), "bad"))
		require.Equal(t, 1, s.seen.countOf(notify.GivenUp))
	})
}

func TestAnEndpointThatIsGoneIsLeftAlone(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		r := &receiver{}
		attempts := 0
		r.refuseBy(func(*notify.Event) error {
			attempts++
			return notify.ErrGone
		})
		one := w.start(mail, r)
		wait(time.Second)
		other := w.start(mail, r)
		w.ask("a")
		wait(time.Hour)
		require.Equal(t, 2, attempts, "each server hears it once")
		require.Equal(t, notify.StateOff, one.seen.currentState())
		require.Equal(t, notify.StateOff, other.seen.currentState())
		r.refuseBy(nil)
		w.start(mail, r)
		wait(time.Minute)
		require.Equal(t, want("a", "asked"), r.all())
	})
}

// Of two servers one sends at a time, also while the first one can't reach the store.
func TestOneServerSendsAtATime(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		one, other := &receiver{took: time.Second}, &receiver{took: time.Second}
		first := w.start(mail, one)
		wait(time.Second)
		second := w.start(mail, other)
		asked := 0
		for i := range 90 {
			w.ask(fmt.Sprint("t", asked))
			asked++
			wait(time.Second)
			if i == 30 {
				first.keeper.fail(errDown)
			}
			require.False(t, isSending(first) && isSending(second))
		}
		wait(time.Minute)
		require.NotEmpty(t, one.all())
		require.NotEmpty(t, other.all())
		all := map[string]bool{}
		for _, e := range append(one.all(), other.all()...) {
			all[e] = true
		}
		require.Len(t, all, asked)
	})
}

func isSending(s *server) bool { return !s.OldestUnsent().IsZero() }

func TestFilters(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		of := func(e notify.Endpoint) *receiver {
			r := &receiver{}
			w.start(e, r)
			return r
		}
		acme := of(notify.Endpoint{Name: "acme", Tenant: "acme"})
		graphs := of(notify.Endpoint{Name: "graphs", Graphs: []string{"g"}})
		groups := of(notify.Endpoint{Name: "groups", Groups: []string{"finance"}})
		kinds := of(notify.Endpoint{Name: "kinds", Kinds: []trail.Kind{trail.Answered}})
		wait(time.Second)
		w.ask("acme@t", func(q *checkpoint.Interrupt) { q.Graph = "acme@g" })
		w.ask("other", func(q *checkpoint.Interrupt) { q.Graph = "h" })
		w.ask("finance", func(q *checkpoint.Interrupt) {
			q.Graph, q.Policy = "h", &approval.Policy{Groups: []string{"finance"}, Approvals: 1}
		})
		w.ask("later", func(q *checkpoint.Interrupt) {
			q.Graph, q.Changes = "h", &checkpoint.PropertyChanges{AddedGroups: []string{"finance"}}
		})
		w.ask("pause", func(q *checkpoint.Interrupt) { q.Reason = checkpoint.ReasonBreakpoint })
		w.change("other", answer)
		wait(time.Second)
		require.Equal(t, []string{"acme/t/q/1 asked"}, acme.all())
		require.Equal(t, []string{"acme/t/q/1 asked"}, graphs.all())
		require.ElementsMatch(t, []string{"finance/q/1 asked", "later/q/1 asked"}, groups.all())
		require.Equal(t, []string{"other/q/2 answered"}, kinds.all())
	})
}

// Whatever crashes and fails, each entry arrives, those of a question in order.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inTime(t, func(t *testing.T, w *world) { loseNothing(t, w, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func loseNothing(t *testing.T, w *world, random *rand.Rand) {
	t.Helper()
	r := &receiver{took: 50 * time.Millisecond}
	servers := []*server{w.start(mail, r), w.start(mail, r)}
	wait(time.Second)
	kinds := map[string][]string{}
	isDown := false
	for i := range 400 {
		thread := fmt.Sprint("t", random.IntN(40))
		switch events := kinds[thread]; {
		case len(events) == 0:
			w.ask(thread)
			kinds[thread] = []string{"asked"}
		case events[len(events)-1] == "answered":
			w.change(thread, use)
			kinds[thread] = append(events, "used")
		case events[len(events)-1] == "used":
		case random.IntN(3) == 0:
			w.change(thread, answer)
			kinds[thread] = append(events, "answered")
		default:
			w.change(thread, comment)
			kinds[thread] = append(events, "commented")
		}
		switch n := random.IntN(40); {
		case n == 0:
			k := random.IntN(2)
			servers[k].crash()
			servers[k] = w.start(mail, r)
		case n == 1:
			k := random.IntN(2)
			servers[k].stop()
			servers[k] = w.start(mail, r)
		case n == 2:
			isDown = !isDown
			if r.refuseBy(nil); isDown {
				r.refuseBy(refuseAll)
			}
		case i%3 == 0:
			wait(time.Duration(random.Int64N(int64(10 * time.Second))))
		case n == 3:
			wait(time.Duration(random.Int64N(int64(5 * time.Hour))))
		}
	}
	r.refuseBy(nil)
	wait(3 * time.Hour)
	for thread, list := range kinds {
		require.Equal(t, want(thread, list...), of(r.first(), thread))
	}
}
