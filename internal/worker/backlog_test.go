package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// A worker that talks and does not read would get tasks and not know of them.
func TestAWorkerThatDoesNotReadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{HeartbeatInterval: time.Second, LeaseTTL: time.Hour})
		s := openSession(t, h, newHello("deaf", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		for range 5 {
			synctest.Wait()
			sleepVirtual(time.Second)
			s.HandleHeartbeat(1, nil)
		}
		<-s.Ended()
		_, err := s.NextMessage(t.Context())
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerSilent})
		require.ErrorContains(t, err, "does not read")
		s.Close()
		require.Equal(t, "t1", nextAssignment(t, openSession(t, h, newHello("w2", 1))).Task.ID)
	})
}

func TestAWorkerThatReadsSlowlyIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{HeartbeatInterval: time.Second, LeaseTTL: time.Hour})
		s := openSession(t, h, newHello("slow", 0))
		for n := range 20 {
			s.HandleHeartbeat(uint64(n), nil)
			s.HandleHeartbeat(uint64(n), nil)
			sleepVirtual(2 * time.Second)
			m, err := s.NextMessage(t.Context())
			require.NoError(t, err)
			require.IsType(t, message.HeartbeatAck{}, m)
		}
	})
}

// What waits for a worker is bounded, however fast it asks for answers.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("deaf", 1))
		forged := make([]string, 1000)
		for i := range forged {
			forged[i] = fmt.Sprintf("%03d", i) + strings.Repeat("x", 997)
		}
		taken := 0
		for ; taken < 1000; taken++ {
			select {
			case <-s.Ended():
			default:
				s.HandleHeartbeat(1, forged)
				continue
			}
			break
		}
		require.InDelta(t, 17, taken, 1, "each answer names a megabyte of leases")
		_, err := s.NextMessage(t.Context())
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerSilent})
	})
}
