package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// One timer announces all tasks, each when it has run for long enough.
func TestATaskThatRunsForLongIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, Options{Slots: 8})
		begin := func(token string) *attempt {
			s.mu.Lock()
			defer s.mu.Unlock()
			a := &attempt{session: s, token: []byte(token), begun: time.Now()}
			s.attempts[token] = a
			s.scheduleAnnouncement(announceAfter)
			return a
		}
		announced := func() (tokens []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for token, a := range s.attempts {
				if a.needsAnnounce {
					tokens = append(tokens, token)
				}
			}
			return tokens
		}
		pass := func(d time.Duration) { // in the time of the test
			<-time.NewTimer(d).C
			synctest.Wait()
		}
		begin("short").hasReturned = true
		begin("long")
		pass(60 * time.Millisecond)
		begin("later")
		pass(39 * time.Millisecond)
		require.Empty(t, announced())
		pass(time.Millisecond)
		require.Equal(t, []string{"long"}, announced())
		require.Len(t, s.wake, 1, "the sender is woken")
		pass(59 * time.Millisecond)
		require.Equal(t, []string{"long"}, announced())
		pass(time.Millisecond)
		require.ElementsMatch(t, []string{"long", "later"}, announced())

		delete(s.attempts, "long")
		delete(s.attempts, "later")
		pass(time.Hour)
		begin("at last")
		pass(announceAfter)
		require.Equal(t, []string{"at last"}, announced())
	})
}
