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

	mu         sync.Mutex
	changed    *sync.Cond // held or links changed
	isHeld     [2]bool    // by direction: nothing is passed on, nothing is closed
	isRefusing bool
	links      map[*link]struct{}
	wg         sync.WaitGroup
}

// The directions of a link.
const (
	toServer = iota
	toWorker
)

type link struct {
	ends     [2]net.Conn // by the direction that writes to it
	isClosed bool
}

func newProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &proxy{listener: listener, target: target, links: make(map[*link]struct{})}
	p.changed = sync.NewCond(&p.mu)
	p.wg.Go(p.acceptWorkers)
	tb.Cleanup(func() {
		require.NoError(tb, listener.Close())
		p.setHeld(false, false)
		p.setRefusing(true)
		p.wg.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) acceptWorkers() {
	for {
		worker, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.wg.Go(func() { p.connectWorker(worker) })
	}
}

func (p *proxy) connectWorker(worker net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		resetConnection(worker)
		return
	}
	l := &link{ends: [2]net.Conn{toServer: server, toWorker: worker}}
	p.mu.Lock()
	p.links[l] = struct{}{}
	refused := p.isRefusing
	p.mu.Unlock()
	if refused {
		p.cutLink(l)
		return
	}
	p.wg.Go(func() { p.relayBytes(l, toServer) })
	p.relayBytes(l, toWorker)
}

// relayBytes passes on what comes in one direction until the link is cut.
func (p *proxy) relayBytes(l *link, direction int) {
	defer p.cutLink(l)
	from, to := l.ends[1-direction], l.ends[direction]
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if !p.waitNotHeld(l, direction) {
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

// waitNotHeld waits while the direction is held. It reports false when the link is cut.
func (p *proxy) waitNotHeld(l *link, direction int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.isHeld[direction] && !l.isClosed {
		p.changed.Wait()
	}
	return !l.isClosed
}

// setHeld stops or lets go each direction; connections stay open.
func (p *proxy) setHeld(server, worker bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isHeld = [2]bool{toServer: server, toWorker: worker}
	p.changed.Broadcast()
}

// cutLinks resets every connection.
func (p *proxy) cutLinks() {
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

// setRefusing cuts all connections and takes no new ones, or takes them again.
func (p *proxy) setRefusing(yes bool) {
	p.mu.Lock()
	p.isRefusing = yes
	p.mu.Unlock()
	if yes {
		p.cutLinks()
	}
}

func (p *proxy) cutLink(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.isClosed {
		return
	}
	l.isClosed = true
	delete(p.links, l)
	p.changed.Broadcast()
	for _, end := range l.ends {
		resetConnection(end)
	}
}

// resetConnection closes a connection so that the other side sees it break.
func resetConnection(c net.Conn) {
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
	p.setHeld(true, false)
	say("two")
	p.setHeld(false, true)
	p.setHeld(false, false)
	hear("two")
	p.cutLinks()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	p.setRefusing(true)
	if c, err = net.Dial("tcp", p.address()); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	require.Error(t, err)
}
