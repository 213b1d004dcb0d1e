package transport

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// reconnecting are the credentials towards an endpoint that keep it from being
// connected to over and over without a pause: gRPC connects anew at once when a
// connection ends that has worked, if only for a moment.
type reconnecting struct {
	credentials.TransportCredentials

	past *connecting
}

func newReconnecting(c credentials.TransportCredentials) reconnecting {
	return reconnecting{c, &connecting{}}
}

// connecting is how it went with the connections to an endpoint so far.
type connecting struct {
	mu    sync.Mutex
	brief int       // connections that ended early, one after the other
	next  time.Time // when there may be another one
}

// The pause after a connection that has ended early, doubled with each further one.
const (
	briefly      = 5 * time.Second
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// ended notes how long a connection has lasted.
func (c *connecting) ended(lasted time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lasted >= briefly {
		c.brief = 0
		return
	}
	if pause := min(firstPause<<min(c.brief, 10), longestPause); now.Add(pause).After(c.next) {
		c.next = now.Add(pause)
	}
	c.brief++
}

// pause is how long the next connection has to wait.
func (c *connecting) pause(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next.Sub(now)
}

// ClientHandshake waits until there may be a connection, and begins it.
func (r reconnecting) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	if pause := r.past.pause(time.Now()); pause > 0 {
		if err := wait(ctx, pause); err != nil {
			return nil, nil, err
		}
	}
	conn, info, err := r.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return conn, info, err
	}
	return &lasting{Conn: conn, since: time.Now(), past: r.past}, info, nil
}

// Clone makes a copy, for the same endpoint.
func (r reconnecting) Clone() credentials.TransportCredentials {
	return reconnecting{r.TransportCredentials.Clone(), r.past}
}

// lasting is a connection that tells how long it has lasted.
type lasting struct {
	net.Conn

	since time.Time
	past  *connecting
	once  sync.Once
}

// Close ends the connection.
func (l *lasting) Close() error {
	l.once.Do(func() {
		now := time.Now()
		l.past.ended(now.Sub(l.since), now)
	})
	return l.Conn.Close()
}
