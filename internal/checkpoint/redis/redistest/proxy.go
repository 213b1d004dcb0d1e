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
	tb     testing.TB
	to     string
	listen net.Listener
	mute   atomic.Int32
	when   atomic.Pointer[func() bool]
	slow   atomic.Pointer[span]
	lost   atomic.Int32
	wg     sync.WaitGroup
	gate   sync.RWMutex // locked: nothing passes

	mu    sync.Mutex
	links map[net.Conn]*link // by client
}

// link is a connection of a client and the one to the server behind it.
type link struct {
	server net.Conn
	dead   atomic.Bool // what is sent vanishes, in both directions
}

// span is between which times an answer is kept back.
type span struct{ low, high time.Duration }

// StartProxy starts a proxy to a server. It ends with the test.
func StartProxy(tb testing.TB, to *Server) *Proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{tb: tb, to: to.Addr(), listen: l, links: make(map[net.Conn]*link)}
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		_ = l.Close()
		p.wg.Wait()
	})
	return p
}

// URL is what graphd is given.
func (p *Proxy) URL() string { return "redis://" + p.listen.Addr().String() }

// Port is where the proxy listens.
func (p *Proxy) Port() string {
	_, port, err := net.SplitHostPort(p.listen.Addr().String())
	if err != nil {
		p.tb.Fatal(err)
	}
	return port
}

// LoseAnswers lets the next n answers of the server be lost together with
// their connections: what was asked for has been done.
func (p *Proxy) LoseAnswers(n int32) { p.mute.Store(n) }

// LoseWhen lets an answer be lost when the function says so, which is asked of
// each before it passes; nil = none.
func (p *Proxy) LoseWhen(when func() bool) { p.when.Store(&when) }

// Lost counts the answers that were lost.
func (p *Proxy) Lost() int32 { return p.lost.Load() }

// Hold lets nothing pass, and closes nothing, until Release. No second Hold
// may come before.
func (p *Proxy) Hold() { p.gate.Lock() }

// Release lets pass what was held.
func (p *Proxy) Release() { p.gate.Unlock() }

// Cut resets every connection. New ones are taken.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, l := range p.links {
		reset(client)
		reset(l.server)
	}
}

// Orphan leaves every connection half open: nobody is told that it ended, and
// what is sent on it vanishes. New ones work.
func (p *Proxy) Orphan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.dead.Store(true)
	}
}

// Delay keeps each answer of the server back for a time between low and high;
// 0 for none.
func (p *Proxy) Delay(low, high time.Duration) {
	if high <= low {
		p.slow.Store(nil)
		return
	}
	p.slow.Store(&span{low, high})
}

// reset closes a connection so that the other side sees it break.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(p.tb.Context(), "tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{server: server}
	p.mu.Lock()
	p.links[client] = l
	p.mu.Unlock()
	p.wg.Go(func() {
		p.relay(client, server, func() bool { return true }, l)
		_ = server.Close()
	})
	p.relay(server, client, p.answer, l)
	_ = client.Close()
	_ = server.Close()
	p.mu.Lock()
	delete(p.links, client)
	p.mu.Unlock()
}

// answer reports whether an answer may pass, or is to be lost.
func (p *Proxy) answer() bool {
	when := p.when.Load()
	if p.mute.Load() > 0 && p.mute.Add(-1) >= 0 || when != nil && *when != nil && (*when)() {
		p.lost.Add(1)
		return false
	}
	return true
}

// relay passes on what comes until one end is closed or pass says no.
func (p *Proxy) relay(from, to net.Conn, pass func() bool, l *link) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass() {
			return
		}
		if from == l.server {
			p.dawdle()
		}
		p.gate.RLock()
		if !l.dead.Load() {
			_, err = to.Write(buf[:n])
		}
		p.gate.RUnlock()
		if err != nil {
			return
		}
	}
}

// dawdle waits for as long as an answer is to be kept back.
func (p *Proxy) dawdle() {
	s := p.slow.Load()
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
