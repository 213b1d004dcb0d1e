package redis_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

func TestLostAnswerIsFoundByItsOp(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t))
	s := openStore(t, proxy.URL())
	applySupersteps(t, s, "t", 1, 1)
	for n := range uint64(5) {
		proxy.LoseAnswers(2)
		applySupersteps(t, s, "t", n+2, n+2)
	}
	require.EqualValues(t, 10, proxy.LostAnswers())
	events, err := s.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, events, 12, "applied once each")
}

func TestPersistentLossIsReportedAndFoundLater(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t))
	s := openStore(t, proxy.URL())
	applySupersteps(t, s, "t", 1, 1)
	c := newSuperstep("t", 2, []payload.JSON{"1", "2"})
	proxy.LoseAnswers(1000)
	_, err := s.Apply(t.Context(), c)
	require.ErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
	proxy.LoseAnswers(0)
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	require.EqualValues(t, 2, h.Revision, "it was applied all the same")
	r, err := s.Apply(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, h.LeaseExpires, r.LeaseExpires)
}

// TestLostAnswerIsNoConflict is about a change that can't be known again: it
// has no name, or another change follows before it is repeated.
func TestLostAnswerIsNoConflict(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	s := openStore(t, proxy.URL())
	applySupersteps(t, s, "t", 1, 1)
	c := newSuperstep("t", 2, []payload.JSON{"1", "2"})
	c.Op = ""
	proxy.LoseAnswers(1)
	_, err := s.Apply(t.Context(), c)
	require.ErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, checkpoint.ErrConflict)
	_, err = s.Apply(t.Context(), c)
	require.ErrorIs(t, err, checkpoint.ErrConflict, "asked anew, the caller knows that it is a second attempt")

	// The head says that it never saw the op: another server wrote after
	// it.
	next := newSuperstep("t", 3, []payload.JSON{"1", "2", "3"})
	proxy.LoseAnswers(1)
	key := server.Client.Keys(t.Context(), "graphd{*}:h:t").Val()[0]
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default: // as if another replica had gone on at once
				if server.Client.HGet(t.Context(), key, "rev").Val() == "3" {
					server.Client.HSet(t.Context(), key, "op", "another", "rev", "4")
					return
				}
			}
		}
	}()
	_, err = s.Apply(t.Context(), next)
	close(stop)
	<-done
	if err != nil { // else the repetition came before the other change
		require.ErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, checkpoint.ErrConflict)
	}
}

// A store that was replaced after the answer to a change was lost refuses the
// repetition. The change may be in the one before.
func TestARefusalAfterALostAnswerIsNotTheOutcome(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	s := openStore(t, proxy.URL())
	applySupersteps(t, s, "t", 1, 1)
	head := keyOfThread(t, server, "h", "t")
	mark := server.Client.Keys(t.Context(), "graphd{*}:store").Val()
	before := server.Client.HGet(t.Context(), head, "n").Val()
	var once sync.Once
	proxy.LoseWhen(func() (lose bool) {
		if server.Client.HGet(t.Context(), head, "n").Val() != before {
			once.Do(func() {
				lose = true
				for _, key := range mark {
					assert.NoError(t, server.Client.Set(t.Context(), key, "3 16 "+strings.Repeat("0", 32), 0).Err())
				}
			})
		}
		return lose
	})
	c := newSuperstep("t", 2, []payload.JSON{"1", "2"})
	_, err := s.Apply(t.Context(), c)
	require.EqualValues(t, 1, proxy.LostAnswers())
	require.ErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
	_, err = s.Apply(t.Context(), newSuperstep("t", 3, []payload.JSON{"1", "2", "3"}))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.NotErrorIs(t, err, checkpoint.ErrOutcomeUnknown, "this one was not made")
}

// Of a change of graphs whose answer is lost the server can't tell whether it was made.
func TestLostAnswerOfAGraph(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	s := openStore(t, proxy.URL())
	g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: "1", Created: time.Unix(1, 0)}
	loseFrom := func(graphs int64) {
		proxy.LoseWhen(func() bool { return server.Client.HLen(t.Context(), "graphd{meta}:graphs").Val() == graphs })
	}
	for _, change := range []struct {
		do     func() error
		graphs int64
		again  error
	}{
		{func() error { return s.PutGraph(t.Context(), g, checkpoint.GraphCondition{}) }, 1, nil},
		{func() error { return s.DeleteGraph(t.Context(), "g", "1", checkpoint.GraphCondition{}) }, 0, checkpoint.ErrGraphNotFound},
	} {
		loseFrom(change.graphs)
		require.ErrorIs(t, change.do(), checkpoint.ErrOutcomeUnknown)
		proxy.LoseWhen(nil)
		require.ErrorIs(t, change.do(), change.again)
	}
	proxy.LoseWhen(func() bool { return true })
	err := s.PutGraph(t.Context(), g, checkpoint.GraphCondition{})
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.NotErrorIs(t, err, checkpoint.ErrOutcomeUnknown, "nothing was sent that changes something")
}
