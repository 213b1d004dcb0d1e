package pubsub

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server may follow a thread while the answer is under way that no server
// did.
func TestAnnouncementOutlastsEarlierAcknowledgement(t *testing.T) {
	v := &publisher{name: "1", hasListeners: true, lastNumber: 5, lastEventTime: time.Now()}
	s := &Subscriber{publishers: map[string]*publisher{"t": v}, followed: map[string]*followedThread{}}
	v.enqueueMessage("five")
	_, last := s.PendingText("t")
	v.enqueuePosition()
	s.AcknowledgeMessages("t", last, 0)
	require.True(t, v.hasListeners)
	text, last := s.PendingText("t")
	require.Equal(t, "p5:1 5 1", text)
	s.AcknowledgeMessages("t", last, 1)
	text, _ = s.PendingText("t")
	require.Empty(t, text)
	require.Zero(t, v.pendingBytes)
}
