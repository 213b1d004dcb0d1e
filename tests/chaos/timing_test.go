package chaos_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// timing is how long things take: short times, so that many faults are found out
// and mended in one test, and as much longer as the machine is busy, so that a
// worker that lives is not lost all the time.
type timing struct {
	slowdown         float64
	heartbeat, lease time.Duration
}

// usualLoadTime is how long the interpreter takes to load the SDK on a quiet machine.
const usualLoadTime = 500 * time.Millisecond

// timingOf finds the pace of this machine. A program was loaded in took.
func timingOf(took time.Duration) timing {
	slower := max(1, float64(took)/float64(usualLoadTime))
	return timing{
		slowdown: slower, heartbeat: time.Duration(150 * slower * float64(time.Millisecond)),
		lease: time.Duration(600 * slower * float64(time.Millisecond)),
	}
}

// scaleDuration is a duration of a quiet machine on this one.
func (p timing) scaleDuration(d time.Duration) time.Duration {
	return time.Duration(p.slowdown * float64(d))
}

// measurePace finds the pace of the machine by how long an interpreter takes to load the SDK.
func measurePace(tb testing.TB) timing {
	tb.Helper()
	began := time.Now()
	process.Python(tb)
	return timingOf(time.Since(began))
}

// randomDelay draws a duration of so many leases.
func (p timing) randomDelay(r *rand.Rand, low, high float64) time.Duration {
	return time.Duration((low + r.Float64()*(high-low)) * float64(p.lease))
}
