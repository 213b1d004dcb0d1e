// Package network breaks the connections between the processes of a test.
package network

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Direction is one of the two directions of a connection.
type Direction int

// The directions, seen from the proxy.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy is a TCP relay between clients and a server whose connections can be cut,
// held, muted or refused.
type Proxy struct {
	listener   net.Listener
	inspect    atomic.Pointer[func(Direction) bool]
	goroutines sync.WaitGroup

	mu         sync.Mutex
	changed    *sync.Cond // isHeld or isClosed of a link changed
	target     string
	isHeld     [2]bool // by Direction
	isRefusing bool
	links      map[*link]struct{}
}

// link is a connection of a client and the one to the server behind it.
type link struct {
	ends     [2]net.Conn // by the Direction that writes to it
	isMuted  [2]bool     // by Direction
	isClosed bool
}

// NewProxy starts a proxy to the address of a server. It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, links: make(map[*link]struct{})}
	p.changed = sync.NewCond(&p.mu)
	p.goroutines.Go(p.acceptClients)
	tb.Cleanup(p.Close)
	return p
}

// Close ends the proxy and its connections, and waits until it relays nothing.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Refuse(true)
	p.goroutines.Wait()
}

// Address returns the address of the proxy for clients.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Inspect sets a function that is called before bytes are relayed; it may take its
// time. If it returns false, the bytes are lost together with their connection. nil
// removes the function.
func (p *Proxy) Inspect(allow func(Direction) bool) {
	if allow == nil {
		p.inspect.Store(nil)
		return
	}
	p.inspect.Store(&allow)
}

// Hold stops or releases each direction. Connections stay open, and bytes sent
// meanwhile are relayed later.
func (p *Proxy) Hold(toServer, toClient bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isHeld = [2]bool{ToServer: toServer, ToClient: toClient}
	p.changed.Broadcast()
}

// Mute drops the bytes that are sent on the present connections. They stay open,
// and new ones work.
func (p *Proxy) Mute(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		for _, d := range directions {
			l.isMuted[d] = true
		}
	}
}

// Redirect sends new connections to another address, and reports whether it differs
// from the one before.
func (p *Proxy) Redirect(target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	isOther := p.target != target
	p.target = target
	return isOther
}

// Refuse cuts all connections and accepts no new ones, or accepts them again.
func (p *Proxy) Refuse(yes bool) {
	p.mu.Lock()
	p.isRefusing = yes
	p.mu.Unlock()
	if yes {
		p.Cut()
	}
}

// Cut resets every connection. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.closeLink(l, resetConnection)
	}
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
		p.goroutines.Go(func() { p.serveClient(client) })
	}
}

func (p *Proxy) serveClient(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		resetConnection(client)
		return
	}
	l := &link{ends: [2]net.Conn{ToServer: server, ToClient: client}}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.isRefusing {
		p.closeLink(l, resetConnection)
	}
	p.mu.Unlock()
	p.goroutines.Go(func() { p.relayBytes(l, ToServer) })
	p.relayBytes(l, ToClient)
}

// relayBytes relays the bytes of one direction until the link ends.
func (p *Proxy) relayBytes(l *link, d Direction) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closeLink(l, closeConnection)
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.ends[1-d].Read(buffer)
		if n > 0 && !p.writeBytes(l, d, buffer[:n]) || err != nil {
			return
		}
	}
}

// writeBytes writes bytes when the direction is not held. It reports false when the
// link ends.
func (p *Proxy) writeBytes(l *link, d Direction, bytes []byte) bool {
	if allow := p.inspect.Load(); allow != nil && !(*allow)(d) {
		return false
	}
	isMuted, isOpen := p.waitUntilReleased(l, d)
	if !isOpen || isMuted {
		return isOpen
	}
	_, err := l.ends[d].Write(bytes)
	return err == nil
}

// waitUntilReleased waits while the direction is held.
func (p *Proxy) waitUntilReleased(l *link, d Direction) (isMuted, isOpen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.isHeld[d] && !l.isClosed {
		p.changed.Wait()
	}
	return l.isMuted[d], !l.isClosed
}

// closeLink ends both connections of a link. The caller holds the lock.
func (p *Proxy) closeLink(l *link, by func(net.Conn)) {
	if l.isClosed {
		return
	}
	l.isClosed = true
	delete(p.links, l)
	p.changed.Broadcast()
	for _, end := range l.ends {
		by(end)
	}
}

func closeConnection(c net.Conn) { _ = c.Close() }

// resetConnection closes a connection so that the other side gets a reset.
func resetConnection(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
