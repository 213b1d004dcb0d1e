package redistest

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between a client and a server and can break what passes.
type Proxy struct {
	tb     testing.TB
	to     string
	listen net.Listener
	mute   atomic.Int32
	lost   atomic.Int32
	wg     sync.WaitGroup
}

// StartProxy starts a proxy to a server. It ends with the test.
func StartProxy(tb testing.TB, to *Server) *Proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{tb: tb, to: to.Addr(), listen: l}
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

// Lost counts the answers that were lost.
func (p *Proxy) Lost() int32 { return p.lost.Load() }

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
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	defer func() {
		_ = client.Close()
		_ = server.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if p.mute.Load() > 0 && p.mute.Add(-1) >= 0 {
			p.lost.Add(1)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
