package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between a client and a server and can break what passes.
type Proxy struct {
	tb            testing.TB
	serverAddr    string
	listener      net.Listener
	answersToLose atomic.Int32
	loseWhen      atomic.Pointer[func() bool]
	delay         atomic.Pointer[delayRange]
	lostAnswers   atomic.Int32
	wg            sync.WaitGroup
	gate          sync.RWMutex // locked: nothing passes

	mu    sync.Mutex
	links map[net.Conn]*link // by client
}

// link is a connection of a client and the one to the server behind it.
type link struct {
	server net.Conn
	isDead atomic.Bool // what is sent vanishes, in both directions
}

// delayRange is between which times an answer is kept back.
type delayRange struct{ low, high time.Duration }

// StartProxy starts a proxy to a server. It ends with the test.
func StartProxy(tb testing.TB, to *Server) *Proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{tb: tb, serverAddr: to.Addr(), listener: l, links: make(map[net.Conn]*link)}
	p.wg.Go(p.acceptClients)
	tb.Cleanup(func() {
		_ = l.Close()
		p.wg.Wait()
	})
	return p
}

// URL is what graphd is given.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() }

// Port is where the proxy listens.
func (p *Proxy) Port() string {
	_, port, err := net.SplitHostPort(p.listener.Addr().String())
	if err != nil {
		p.tb.Fatal(err)
	}
	return port
}

// LoseAnswers lets the next n answers of the server be lost together with
// their connections: what was asked for has been done.
func (p *Proxy) LoseAnswers(n int32) { p.answersToLose.Store(n) }

// LoseWhen lets an answer be lost when the function says so, which is asked of
// each before it passes; nil = none.
func (p *Proxy) LoseWhen(when func() bool) { p.loseWhen.Store(&when) }

// LostAnswers counts the answers that were lost.
func (p *Proxy) LostAnswers() int32 { return p.lostAnswers.Load() }

// Pause lets nothing pass, and closes nothing, until Release. No second Hold
// may come before.
func (p *Proxy) Pause() { p.gate.Lock() }

// Resume lets pass what was held.
func (p *Proxy) Resume() { p.gate.Unlock() }

// ResetConnections resets every connection. New ones are taken.
func (p *Proxy) ResetConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, l := range p.links {
		resetConnection(client)
		resetConnection(l.server)
	}
}

// DropSilently leaves every connection half open: neither side learns that it
// ended, and what is sent on it vanishes. New ones work.
func (p *Proxy) DropSilently() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.isDead.Store(true)
	}
}

// DelayAnswers keeps each answer of the server back for a time between low and high;
// 0 for none.
func (p *Proxy) DelayAnswers(low, high time.Duration) {
	if high <= low {
		p.delay.Store(nil)
		return
	}
	p.delay.Store(&delayRange{low, high})
}

// resetConnection closes a connection so that the other side sees it break.
func resetConnection(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

func (p *Proxy) acceptClients() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.wg.Go(func() { p.serveClient(client) })
	}
}

func (p *Proxy) serveClient(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(p.tb.Context(), "tcp", p.serverAddr)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{server: server}
	p.mu.Lock()
	p.links[client] = l
	p.mu.Unlock()
	p.wg.Go(func() {
		p.relayBytes(client, server, func() bool { return true }, l)
		_ = server.Close()
	})
	p.relayBytes(server, client, p.allowAnswer, l)
	_ = client.Close()
	_ = server.Close()
	p.mu.Lock()
	delete(p.links, client)
	p.mu.Unlock()
}

// allowAnswer reports whether an answer may pass, or is to be lost.
func (p *Proxy) allowAnswer() bool {
	when := p.loseWhen.Load()
	if p.answersToLose.Load() > 0 && p.answersToLose.Add(-1) >= 0 || when != nil && *when != nil && (*when)() {
		p.lostAnswers.Add(1)
		return false
	}
	return true
}

// relayBytes passes on what comes until one end is closed or pass says no.
func (p *Proxy) relayBytes(from, to net.Conn, pass func() bool, l *link) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass() {
			return
		}
		if from == l.server {
			p.delayAnswer()
		}
		p.gate.RLock()
		if !l.isDead.Load() {
			_, err = to.Write(buf[:n])
		}
		p.gate.RUnlock()
		if err != nil {
			return
		}
	}
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
