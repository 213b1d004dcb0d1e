package chaos_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is the network between a worker and its server: a TCP relay whose
// connections can be cut, held up or refused.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	moved   *sync.Cond // held or links changed
	held    [2]bool    // by direction: nothing is passed on, nothing is closed
	refuses bool
	links   map[*link]struct{}
	wg      sync.WaitGroup
}

// The directions of a link.
const (
	toServer = iota
	toWorker
)

type link struct {
	ends   [2]net.Conn // by the direction that writes to it
	closed bool
}

func newProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &proxy{listener: listener, target: target, links: make(map[*link]struct{})}
	p.moved = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		require.NoError(tb, listener.Close())
		p.hold(false, false)
		p.refuse(true)
		p.wg.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		worker, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.wg.Go(func() { p.connect(worker) })
	}
}

func (p *proxy) connect(worker net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(worker)
		return
	}
	l := &link{ends: [2]net.Conn{toServer: server, toWorker: worker}}
	p.mu.Lock()
	p.links[l] = struct{}{}
	refused := p.refuses
	p.mu.Unlock()
	if refused {
		p.cutLink(l)
		return
	}
	p.wg.Go(func() { p.relay(l, toServer) })
	p.relay(l, toWorker)
}

// relay passes on what comes in one direction until the link is cut.
func (p *proxy) relay(l *link, direction int) {
	defer p.cutLink(l)
	from, to := l.ends[1-direction], l.ends[direction]
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if !p.pass(l, direction) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while the direction is held. It reports false when the link is cut.
func (p *proxy) pass(l *link, direction int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held[direction] && !l.closed {
		p.moved.Wait()
	}
	return !l.closed
}

// hold stops or lets go each direction; connections stay open.
func (p *proxy) hold(server, worker bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = [2]bool{toServer: server, toWorker: worker}
	p.moved.Broadcast()
}

// cut resets every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	var all []*link
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		p.cutLink(l)
	}
}

// refuse cuts all connections and takes no new ones, or takes them again.
func (p *proxy) refuse(yes bool) {
	p.mu.Lock()
	p.refuses = yes
	p.mu.Unlock()
	if yes {
		p.cut()
	}
}

func (p *proxy) cutLink(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	delete(p.links, l)
	p.moved.Broadcast()
	for _, end := range l.ends {
		reset(end)
	}
}

// reset closes a connection so that the other side sees it break.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

func TestTheProxyHoldsAndCuts(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = echo.Close() })
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	p := newProxy(t, echo.Addr().String())
	c, err := net.Dial("tcp", p.address())
	require.NoError(t, err)
	say := func(text string) {
		_, err := c.Write([]byte(text))
		require.NoError(t, err)
	}
	hear := func(text string) {
		buffer := make([]byte, len(text))
		_, err := io.ReadFull(c, buffer)
		require.NoError(t, err)
		require.Equal(t, text, string(buffer))
	}
	say("one")
	hear("one")
	p.hold(true, false)
	say("two")
	p.hold(false, true)
	p.hold(false, false)
	hear("two")
	p.cut()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	p.refuse(true)
	if c, err = net.Dial("tcp", p.address()); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	require.Error(t, err)
}
