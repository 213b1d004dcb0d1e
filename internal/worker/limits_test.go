package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/attempt"
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

var errTooMany = &runtime.Error{Reason: runtime.ReasonTooManyRequests}

func TestSoManyWorkersMayBeConnected(t *testing.T) {
	h := worker.New(worker.Options{MaxWorkers: 2})
	first := openSession(t, h, newHello("w1", 1))
	openSession(t, h, newHello("w2", 1))
	_, _, err := h.OpenSession(newHello("w3", 1))
	require.ErrorIs(t, err, errTooMany)
	again := openSession(t, h, newHello("w1", 1)) // takes the place of the first one
	<-first.Ended()
	first.Close()
	_, _, err = h.OpenSession(newHello("w3", 1))
	require.ErrorIs(t, err, errTooMany)
	again.Close()
	openSession(t, h, newHello("w3", 1))
}

// What workers say of themselves counts while they are connected, however often
// they come back.
func TestWhatWorkersServeIsBounded(t *testing.T) {
	h := worker.New(worker.Options{MaxProfileBytes: 100_000})
	large := newHello("large", 1)
	for i := range 300 {
		large.Capabilities = append(large.Capabilities, message.Capability{Graph: "g", Node: fmt.Sprint(i)})
	}
	var last *worker.Session
	for range 100 {
		last = openSession(t, h, large)
	}
	second := large
	second.Worker = "second"
	s := openSession(t, h, second)
	third := large
	third.Worker = "third"
	_, _, err := h.OpenSession(third)
	require.ErrorIs(t, err, errTooMany)
	credit := message.Credit{Total: 1, Revision: 1, PerNode: make(map[string]int)}
	for i := range 1000 {
		credit.PerNode[fmt.Sprint("g/", i)] = 1
	}
	s.HandleCredit(credit)
	<-s.Ended()
	_, err = s.NextMessage(t.Context())
	require.ErrorIs(t, err, errTooMany)
	s.Close()
	s = openSession(t, h, third)
	s.Close()
	last.Close()
	openSession(t, h, second)
	openSession(t, h, third)
}

// A million bytes count as much as a thousand events.
func TestLargeTokensAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{MaxEventBytes: 8 << 20})
		s := openSession(t, h, newHello("w1", 1))
		slow := &taskRun{emitGate: make(chan struct{})}
		r := executeAsync(t.Context(), h, newTask("t1", slow))
		a := nextAssignment(t, s)
		token := runtime.Emission{Value: payload.JSON(`"` + strings.Repeat("x", 1<<20) + `"`)}
		for range 100 {
			s.HandleEvents(a.Token, []runtime.Emission{token}, 0)
			synctest.Wait()
		}
		close(slow.emitGate)
		completeTask(t, h, a, "1")
		<-r
		require.LessOrEqual(t, len(slow.emitted), 3, "one that is handed on, and a quarter of all")
		require.NotZero(t, slow.gaps)
	})
}

func newDurableEvent(n int) runtime.Emission {
	return runtime.Emission{Value: payload.JSON(`"` + strings.Repeat("x", n) + `"`), Durable: true}
}

// Durable events of an endpoint wait until there is room; none is lost.
func TestLargeDurableEventsOfAnEndpointWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{MaxEventBytes: 8 << 20})
		slow := &taskRun{emitGate: make(chan struct{})}
		loan := h.LeaseToEndpoint(t.Context(), newTask("t1", slow), 1, false, &attempt.Memos{})
		flooded, taken := false, 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ; taken < 50 && !flooded; taken++ {
				flooded = loan.EmitEvents(t.Context(), []runtime.Emission{newDurableEvent(1 << 20)}, 0)
			}
		}()
		synctest.Wait()
		sleepVirtual(time.Minute)
		require.LessOrEqual(t, taken, 3)
		close(slow.emitGate)
		<-done
		require.False(t, flooded)
		loan.End(t.Context())
		require.Len(t, slow.emitted, 50)
	})
}

// Those of a worker wait for a heartbeat interval; then their task has failed, and
// the worker is read again.
func TestLargeDurableEventsOfAWorkerFailItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{MaxEventBytes: 8 << 20})
		s := openSession(t, h, newHello("w1", 1))
		slow := &taskRun{emitGate: make(chan struct{})}
		r := executeAsync(t.Context(), h, newTask("t1", slow))
		a := nextAssignment(t, s)
		for range 5 {
			s.HandleEvents(a.Token, []runtime.Emission{newDurableEvent(1 << 20)}, 0)
		}
		close(slow.emitGate)
		require.Equal(t, "EmitFlood", (<-r).Failure.Type)
	})
}

// Events of a task that has failed by them count until they are handed on, and no
// longer: those of other tasks have their room.
func TestAFloodGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{MaxEventBytes: 1 << 20})
		s := openSession(t, h, newHello("w1", 2))
		r := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		events := make([]runtime.Emission, 5000)
		for i := range events {
			events[i] = newDurableEvent(500)
		}
		s.HandleEvents(nextAssignment(t, s).Token, events, 0)
		require.Equal(t, "EmitFlood", (<-r).Failure.Type)
		other := &taskRun{}
		executeAsync(t.Context(), h, newTask("t2", other))
		s.HandleEvents(nextAssignment(t, s).Token, []runtime.Emission{{Value: payload.JSON(`1`)}}, 0)
		synctest.Wait()
		require.Len(t, other.emitted, 1)
	})
}

// The beats of a worker stand behind its events: those hold them up for one beat at
// most, however many there are.
func TestEventsHoldUpNoBeatForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{MaxEventBytes: 8 << 20})
		s := openSession(t, h, newHello("w1", 1))
		slow := &taskRun{emitGate: make(chan struct{})}
		r := executeAsync(t.Context(), h, newTask("t1", slow))
		a := nextAssignment(t, s)
		for number := uint64(1); number < 10; number++ {
			began := time.Now()
			for range 4 {
				s.HandleEvents(a.Token, []runtime.Emission{newDurableEvent(100 << 10)}, 0)
			}
			require.LessOrEqual(t, time.Since(began), 10*time.Second)
			s.HandleHeartbeat(number, []string{a.Token})
			sleepVirtual(5 * time.Second)
		}
		select {
		case lost := <-r:
			require.Equal(t, "EmitFlood", lost.Failure.Type)
		default:
		}
		close(slow.emitGate)
	})
}

// Results that came on a stream and wait hold no more than they may; others are to
// come by a call, which is held back before it is read.
func TestResultsThatWaitBesideTheirStreamAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{MaxWaitingResultBytes: 1 << 20})
		s := openSession(t, h, newHello("w1", 1))
		r := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		c := message.Completion{Token: a.Token, Result: newResult("1"), EventsOnStream: 1, Bytes: 600 << 10}
		for range 3 {
			s.HandleCompletion(t.Context(), c) // waits for an event that never comes
		}
		for range 2 {
			require.ErrorIs(t, nextReply(t, s).Err, errTooMany)
		}
		require.NoError(t, nextReply(t, s).Err)
		require.Equal(t, newResult("1"), <-r)
		s.HandleCompletion(t.Context(), c)
		require.True(t, nextReply(t, s).Receipt.IsDuplicate)
	})
}

// A heartbeat is answered for leases that were given, each once, and for some others.
func TestHeartbeatsNameLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		executeAsync(ctx, h, newTask("a1", &taskRun{}))
		token := nextAssignment(t, s).Token
		names := slices.Repeat([]string{token, "forged"}, 50_000)
		s.HandleHeartbeat(1, names)
		m, err := s.NextMessage(ctx)
		require.NoError(t, err)
		require.Equal(t, message.HeartbeatAck{Number: 1, LostLeases: []string{"forged"}}, m)
		for i := range 1001 {
			names[i] = fmt.Sprint("forged", i)
		}
		s.HandleHeartbeat(2, names)
		<-s.Ended()
		_, err = s.NextMessage(ctx)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInvalidField})
		require.ErrorContains(t, err, "beat.running names 1002 leases")
	})
}

// A worker that refuses task after task is given no more until it may be asked again.
func TestRefusingWorkerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1000))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 100 {
			executeAsync(ctx, h, newTask(fmt.Sprint("a", i), &taskRun{}))
		}
		gone, leave := context.WithCancel(ctx)
		leave()
		refused := 0
		refuse := func() {
			synctest.Wait()
			var given []string
			for {
				m, err := s.NextMessage(gone) // what is there already
				if err != nil {
					break
				}
				a, ok := m.(message.Assignment)
				require.True(t, ok)
				given = append(given, a.Token)
			}
			for _, token := range given {
				s.HandleNack(token, "no", 20*time.Second, nil)
				refused++
			}
		}
		refuse()
		require.Equal(t, 100, refused, "what it was given before")
		executeAsync(ctx, h, newTask("b", &taskRun{}))
		refuse()
		require.Equal(t, 100, refused)
		sleepVirtual(25 * time.Second)
		refuse()
		require.Equal(t, 201, refused)
	})
}

// Many workers that do not read are not many times one.
func TestWhatAllWorkersLeaveUnreadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		forged := make([]string, 1000)
		for i := range forged {
			forged[i] = fmt.Sprintf("%03d", i) + strings.Repeat("x", 997)
		}
		var sessions []*worker.Session
		for i := range 10 {
			sessions = append(sessions, openSession(t, h, newHello(fmt.Sprint("w", i), 1)))
		}
		left := make(map[*worker.Session]int) // megabytes
		for range 12 {
			for _, s := range sessions {
				s.HandleHeartbeat(1, forged)
				left[s]++
				select {
				case <-s.Ended():
					left[s] = 0
				default:
				}
			}
			sum := 0
			for _, n := range left {
				sum += n
			}
			require.LessOrEqual(t, sum, 75)
		}
		s := openSession(t, h, newHello("honest", 1))
		s.HandleHeartbeat(1, forged)
		_, err := s.NextMessage(t.Context())
		require.NoError(t, err)
	})
}

// A coverage takes what one of its entries takes.
func TestCoverageIsThatOfItsEntries(t *testing.T) {
	pick := func(from ...string) string { return from[rand.IntN(len(from))] }
	for range 2000 {
		var list []message.Capability
		for range rand.IntN(20) {
			list = append(list, message.Capability{Graph: pick("g", "h"), Version: pick("", "1", "2"), Node: pick("", "a", "b", "c")})
		}
		if len(list) > 12 && rand.IntN(2) == 0 { // so that something is left out
			list = list[:9]
		}
		covers := coverage.NewCoverage(list)
		for _, graph := range []string{"g", "h", "i"} {
			for _, version := range []string{"", "1", "2", "3"} {
				for _, node := range []string{"", "a", "b", "c", "d"} {
					need := message.Capability{Graph: graph, Version: version, Node: node}
					want := false
					for _, s := range list {
						want = want || s.Covers(need)
					}
					require.Equal(t, want, covers.Covers(need), "%v of %v", need, list)
				}
			}
		}
	}
}
