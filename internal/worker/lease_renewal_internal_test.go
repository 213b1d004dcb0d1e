package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// A beat and the end of a lease come at the same moment, and the beat is the first to be
// handled: its worker is told that it keeps the task.
func TestALeaseThatIsRenewedWhileItsTimerFiresGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{LeaseTTL: 30 * time.Second})
		s, _, err := h.OpenSession(message.Hello{
			Worker: "w1", Capabilities: []message.Capability{{Graph: "g"}}, Credit: message.Credit{Total: 1},
		})
		require.NoError(t, err)
		go h.Execute(t.Context(), &runtime.Task{
			Thread: "t", ID: "t1", Attempt: 1, Graph: &graph.Graph{Name: "g", Version: "1"}, Node: &graph.Node{Name: "n", Kind: graph.KindRemote},
		})
		m, err := s.NextMessage(t.Context())
		require.NoError(t, err)
		a, ok := m.(message.Assignment)
		require.True(t, ok)
		<-time.NewTimer(15 * time.Second).C
		s.HandleHeartbeat(1, nil) // the session stays

		d := h.dispatcher
		d.mu.Lock()
		<-time.NewTimer(15 * time.Second).C // the timer of the lease fires, and waits for mu
		l, ok := d.signer.ParseToken(a.Token)
		require.True(t, ok)
		c, _ := d.claimLease(s, l)
		require.Equal(t, claimGranted, c)
		d.mu.Unlock()
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		require.NotNil(t, d.jobsByLease[a.Token])
		require.Zero(t, h.WorkerLosses())
	})
}

// A worker comes back at the moment at which the time of its undecided lease ends, and is
// told that it keeps the lease.
func TestAnUndecidedLeaseThatIsClaimedWhileItsTimerFiresGoesOn(t *testing.T) {
	for name, isDetached := range map[string]bool{"the worker comes back": false, "its stream breaks again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 30 * time.Second
				h := New(Options{LeaseTTL: timeout, ReclaimTimeout: timeout})
				d, s := h.dispatcher, &Session{}
				task := &runtime.Task{Thread: "t", ID: "t1", Attempt: 1}
				l := d.signer.SignLease(task, lease.KeyOf(task), "")
				d.mu.Lock()
				d.reclaims.Add(nil, l)
				<-time.NewTimer(timeout).C // the timer of the lease fires, and waits for mu
				require.True(t, d.reclaims.Claim(d.reclaims.FindPlace(l.Place()), s, l, timeout))
				if isDetached {
					d.reclaims.Detach(s, timeout)
				}
				d.mu.Unlock()
				synctest.Wait()
				d.mu.Lock()
				require.True(t, d.isUndecided(l))
				d.mu.Unlock()
				<-time.NewTimer(timeout + time.Second).C
				synctest.Wait()
				d.mu.Lock()
				defer d.mu.Unlock()
				require.False(t, d.isUndecided(l))
			})
		})
	}
}

// A beat comes at the moment at which its worker counts as silent, and is answered.
func TestASessionThatIsHeardOfWhileItsTimerFiresGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{HeartbeatInterval: 5 * time.Second})
		s, _, err := h.OpenSession(message.Hello{Worker: "w1", Credit: message.Credit{Total: 1}})
		require.NoError(t, err)
		d := h.dispatcher
		d.mu.Lock()
		<-time.NewTimer(15 * time.Second).C // the timer of the session fires, and waits for mu
		s.renewLeases(1, nil, nil)
		d.mu.Unlock()
		synctest.Wait()
		select {
		case <-s.Ended():
			require.Fail(t, "the session has ended")
		default:
		}
		<-time.NewTimer(15*time.Second + time.Millisecond).C
		<-s.Ended()
	})
}
