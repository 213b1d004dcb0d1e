package redistest

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphd-dev/graphd/internal/testkit/network"
)

// Proxy stands between a client and a server and can break their traffic.
type Proxy struct {
	tb            testing.TB
	network       *network.Proxy
	answersToLose atomic.Int32
	loseWhen      atomic.Pointer[func() bool]
	delay         atomic.Pointer[delayRange]
	lostAnswers   atomic.Int32
}

// delayRange is between which times an answer is kept back.
type delayRange struct{ low, high time.Duration }

// StartProxy starts a proxy to a server. It ends with the test.
func StartProxy(tb testing.TB, to *Server) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, network: network.NewProxy(tb, to.Addr())}
	p.network.Inspect(func(d network.Direction) bool { return d == network.ToServer || p.allowAnswer() })
	return p
}

// URL returns the URL for graphd.
func (p *Proxy) URL() string { return "redis://" + p.network.Address() }

// Port is where the proxy listens.
func (p *Proxy) Port() string {
	_, port, err := net.SplitHostPort(p.network.Address())
	if err != nil {
		p.tb.Fatal(err)
	}
	return port
}

// LoseAnswers makes the next n answers of the server be lost together with their
// connections: the server has run the commands.
func (p *Proxy) LoseAnswers(n int32) { p.answersToLose.Store(n) }

// LoseWhen lets an answer be lost when the function says so, which is asked of
// each before it passes; nil = none.
func (p *Proxy) LoseWhen(when func() bool) { p.loseWhen.Store(&when) }

// LostAnswers counts the answers that were lost.
func (p *Proxy) LostAnswers() int32 { return p.lostAnswers.Load() }

// Pause lets nothing pass, and closes nothing, until Resume.
func (p *Proxy) Pause() { p.network.Hold(true, true) }

// Resume passes on the held traffic.
func (p *Proxy) Resume() { p.network.Hold(false, false) }

// ResetConnections resets every connection. It accepts new connections.
func (p *Proxy) ResetConnections() { p.network.Cut() }

// DropSilently leaves every connection half open: neither side learns that it
// ended, and data sent on it vanishes. New connections work.
func (p *Proxy) DropSilently() { p.network.Mute(network.ToServer, network.ToClient) }

// DelayAnswers keeps each answer of the server back for a time between low and high;
// 0 for none.
func (p *Proxy) DelayAnswers(low, high time.Duration) {
	if high <= low {
		p.delay.Store(nil)
		return
	}
	p.delay.Store(&delayRange{low, high})
}

// allowAnswer reports whether an answer may pass, when it has been kept back for
// long enough, or is to be lost.
func (p *Proxy) allowAnswer() bool {
	when := p.loseWhen.Load()
	if p.answersToLose.Load() > 0 && p.answersToLose.Add(-1) >= 0 || when != nil && *when != nil && (*when)() {
		p.lostAnswers.Add(1)
		return false
	}
	p.delayAnswer()
	return true
}

// delayAnswer waits for as long as an answer is to be kept back.
func (p *Proxy) delayAnswer() {
	s := p.delay.Load()
	if s == nil {
		return
	}
	timer := time.NewTimer(s.low + rand.N(s.high-s.low))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.tb.Context().Done():
	}
}
