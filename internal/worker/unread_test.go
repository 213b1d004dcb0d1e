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
)

// A worker that talks and does not read would get tasks and not know of them.
func TestAWorkerThatDoesNotReadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{Beat: time.Second, LeaseTTL: time.Hour})
		s := open(t, h, hello("deaf", 1))
		execute(t.Context(), h, task("t1", &run{}))
		for range 5 {
			synctest.Wait()
			pass(time.Second)
			s.Beat(1, nil)
		}
		<-s.Ended()
		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerSilent})
		require.ErrorContains(t, err, "does not read")
		s.Close()
		require.Equal(t, "t1", next(t, open(t, h, hello("w2", 1))).Task.ID)
	})
}

func TestAWorkerThatReadsSlowlyIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{Beat: time.Second, LeaseTTL: time.Hour})
		s := open(t, h, hello("slow", 0))
		for n := range 20 {
			s.Beat(uint64(n), nil)
			s.Beat(uint64(n), nil)
			pass(2 * time.Second)
			m, err := s.Next(t.Context())
			require.NoError(t, err)
			require.IsType(t, worker.Ack{}, m)
		}
	})
}

// What waits for a worker is bounded, however fast it asks for answers.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("deaf", 1))
		forged := make([]string, 1000)
		for i := range forged {
			forged[i] = fmt.Sprintf("%03d", i) + strings.Repeat("x", 997)
		}
		taken := 0
		for ; taken < 1000; taken++ {
			select {
			case <-s.Ended():
			default:
				s.Beat(1, forged)
				continue
			}
			break
		}
		require.InDelta(t, 17, taken, 1, "each answer names a megabyte of leases")
		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerSilent})
	})
}
