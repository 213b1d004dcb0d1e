package endpoint

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/graphd-dev/graphd/internal/backoff"
)

// pacedCredentials are credentials for an endpoint that pause between connections
// that end early. gRPC itself reconnects at once after a connection that has
// worked, however briefly.
type pacedCredentials struct {
	credentials.TransportCredentials

	history *connectionHistory
}

func newPacedCredentials(c credentials.TransportCredentials) pacedCredentials {
	return pacedCredentials{c, &connectionHistory{}}
}

// connectionHistory records the connections to an endpoint so far.
type connectionHistory struct {
	mu               sync.Mutex
	shortConnections int       // consecutive connections that ended early
	nextAllowed      time.Time // when there may be another connection
}

// shortLifetime is the lifetime below which a connection counts as ended early.
const shortLifetime = 5 * time.Second

// reconnectPolicy returns the pauses after connections in a row that have ended
// early.
func reconnectPolicy() backoff.Policy {
	return backoff.Policy{First: 50 * time.Millisecond, Max: 5 * time.Second}
}

// recordEnd records how long a connection has lasted.
func (c *connectionHistory) recordEnd(lasted time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lasted >= shortLifetime {
		c.shortConnections = 0
		return
	}
	if pause := reconnectPolicy().Delay(c.shortConnections + 1); now.Add(pause).After(c.nextAllowed) {
		c.nextAllowed = now.Add(pause)
	}
	c.shortConnections++
}

// remainingPause returns the time that the next connection has to wait.
func (c *connectionHistory) remainingPause(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextAllowed.Sub(now)
}

// ClientHandshake waits until a connection is allowed, and makes its handshake. It
// returns ctx's error when ctx ends first.
func (p pacedCredentials) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	if pause := p.history.remainingPause(time.Now()); pause > 0 {
		if err := backoff.Sleep(ctx, pause); err != nil {
			return nil, nil, err
		}
	}
	conn, info, err := p.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return conn, info, err
	}
	return &timedConn{Conn: conn, openedAt: time.Now(), history: p.history}, info, nil
}

// Clone makes a copy, for the same endpoint.
func (p pacedCredentials) Clone() credentials.TransportCredentials {
	return pacedCredentials{p.TransportCredentials.Clone(), p.history}
}

// timedConn is a connection that records how long it has lasted.
type timedConn struct {
	net.Conn

	openedAt time.Time
	history  *connectionHistory
	once     sync.Once
}

// Close ends the connection.
func (t *timedConn) Close() error {
	t.once.Do(func() {
		now := time.Now()
		t.history.recordEnd(now.Sub(t.openedAt), now)
	})
	return t.Conn.Close()
}
