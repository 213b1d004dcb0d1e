package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// A result that waits for the next stream is not taken by the sender of the one that has ended.
func TestAnEndedStreamTakesNothing(t *testing.T) {
	s := New(nil, Options{Slots: 1})
	ended, present := &sender{session: s}, &sender{session: s}
	s.results = []*graphdv1.CompleteTaskRequest{{LeaseToken: []byte("one")}}
	s.sendNow() // between two streams
	require.Empty(t, ended.collect(true))
	s.sender = present
	require.Empty(t, ended.collect(true))
	require.Len(t, present.collect(false), 1)
}
