package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Somebody may begin to listen while it is under way that nobody heard an event.
func TestAGreetingOutlastsTheAnswerToWhatCameBefore(t *testing.T) {
	v := &voice{name: "1", listens: true, n: 5, spoke: time.Now()}
	r := &ear{voices: map[string]*voice{"t": v}, threads: map[string]*followed{}}
	v.say("five")
	_, last := r.untold("t")
	v.greet()
	r.told("t", last, 0)
	require.True(t, v.listens)
	text, last := r.untold("t")
	require.Equal(t, "p5:1 5 1", text, "where the voice stands")
	r.told("t", last, 1)
	text, _ = r.untold("t")
	require.Empty(t, text)
	require.Zero(t, v.size)
}
