package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEndedSessionsAreBounded(t *testing.T) {
	e, began := newEndedSessions(), time.Unix(1000, 0)
	for i := range maxEnded + 10 {
		e.add(fmt.Sprint(i), began)
	}
	require.Len(t, e.byID, maxEnded)
	require.Len(t, e.order, maxEnded)
	require.False(t, e.has("9", began), "the first are forgotten")
	require.True(t, e.has("10", began))
	require.False(t, e.has("10", began.Add(time.Second)), "one that was begun later")
	for range 5 {
		e.add("10", began.Add(time.Minute))
	}
	e.add("x", began.Add(MaxAge+time.Second))
	require.True(t, e.has("10", began), "it has ended once more")
	require.Len(t, e.byID, 2)
	e.add("y", began.Add(2*MaxAge+time.Hour))
	require.Len(t, e.byID, 1)
	require.Len(t, e.order, 1)
}
