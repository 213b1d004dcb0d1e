package session

import "time"

// certainty is how sure a worker can be that its tasks are still its own: for a while after the
// server has answered a beat or the hello. An answer would have named what is lost. A process that
// was paused, or cut off, is not sure until it has asked again.
type certainty struct {
	asked map[uint64]time.Time // by the number of the beat, 0 = the hello
	since time.Time            // when the question was asked that was answered last
	span  time.Duration
}

// maxAsked bounds the beats that wait for their answers: a stream whose beats have none ends before.
const maxAsked = 64

// share is the part of the time after which a server gives up on a silent worker.
const share = 0.8

// ask notes that a beat, or with number 0 the hello, leaves.
func (c *certainty) ask(number uint64, now time.Time) {
	if number == 0 || c.asked == nil || len(c.asked) >= maxAsked {
		c.asked = make(map[uint64]time.Time)
	}
	c.asked[number] = now
}

// answer notes that a beat was answered.
func (c *certainty) answer(number uint64) {
	if at, ok := c.asked[number]; ok {
		c.since = at
	}
	for n := range c.asked {
		if n <= number {
			delete(c.asked, n)
		}
	}
}

// disconnect notes that the stream is broken.
func (c *certainty) disconnect() { c.asked, c.since = nil, time.Time{} }

// setIntervals sets for how long the server waits.
func (c *certainty) setIntervals(beat, lease time.Duration) {
	c.span = time.Duration(share * float64(min(silentBeats*beat, lease)))
}

// isSure reports whether nothing can have been lost.
func (c *certainty) isSure(now time.Time) bool { return !c.since.IsZero() && now.Sub(c.since) < c.span }
