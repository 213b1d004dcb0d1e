package ledger_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// relay passes the connections of a worker on to a server, and breaks them.
type relay struct {
	address string

	mu     sync.Mutex
	server string
	links  map[*link]struct{}
}

// link is a connection from the worker, and the one to the server.
type link struct {
	worker, server net.Conn
	isMuted        atomic.Bool // what the worker says does not arrive
}

func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{address: listener.Addr().String(), server: server, links: make(map[*link]struct{})}
	t.Cleanup(func() {
		_ = listener.Close()
		r.cutLinks()
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go r.relayConnection(near)
		}
	}()
	return r
}

func (r *relay) relayConnection(near net.Conn) {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	far, err := net.Dial("tcp", server)
	if err != nil {
		_ = near.Close()
		return
	}
	l := &link{worker: near, server: far}
	r.mu.Lock()
	r.links[l] = struct{}{}
	r.mu.Unlock()
	go l.relayBytes(near, far, &l.isMuted)
	l.relayBytes(far, near, new(atomic.Bool))
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
}

// relayBytes passes bytes on until one side ends.
func (l *link) relayBytes(from, to net.Conn, muted *atomic.Bool) {
	defer l.closeBoth()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !muted.Load() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) closeBoth() {
	_ = l.worker.Close()
	_ = l.server.Close()
}

// muteWorkers keeps what the worker says on its connections from its server, for as long
// as they last.
func (r *relay) muteWorkers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.isMuted.Store(true)
	}
}

// redirectTo has the next connections go to a server, and reports whether that is
// another one than before.
func (r *relay) redirectTo(to string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	isOther := r.server != to
	r.server = to
	return isOther
}

// cutLinks breaks all connections.
func (r *relay) cutLinks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.closeBoth()
	}
}
