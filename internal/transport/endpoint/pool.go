package endpoint

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // endpoints are asked for their health, if they report it
	"google.golang.org/grpc/keepalive"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// endpoint is a connection to a node service.
type endpoint struct {
	conn   *grpc.ClientConn
	client graphdv1.NodeServiceClient
	dialer *checkedDialer
	tls    *tlsCredentials // nil = plain text

	activeCalls int       // that use the connection; guarded by endpointPool.mu
	isForgotten bool      // further calls get another connection; guarded by endpointPool.mu
	idleSince   time.Time // when the last call ended

	mu          sync.Mutex
	description *endpointDescription // nil = not asked yet
}

// endpointPool holds the connections to node services, one for each. Graphs may
// name any number of endpoints. The pool therefore closes idle connections, and
// bounds the number of open connections.
type endpointPool struct {
	opts Options

	mu           sync.Mutex
	bySpec       map[graph.RemoteSpec]*endpoint
	waiters      []chan struct{} // calls that wait for a slot, the oldest first
	grantedSlots int             // slots that were granted to waiting calls, not taken yet
	idleTimer    *time.Timer     // closes idle connections; nil = none was idle yet
	isClosed     bool
}

func newEndpointPool(o Options) *endpointPool {
	return &endpointPool{opts: o, bySpec: make(map[graph.RemoteSpec]*endpoint)}
}

// acquireEndpoint returns the connection to an endpoint, for releaseEndpoint to
// release. When all connections are in use it calls full and waits.
func (p *endpointPool) acquireEndpoint(ctx context.Context, spec graph.RemoteSpec, full func()) (*endpoint, error) {
	for granted := false; ; granted = true {
		e, slot, err := p.tryAcquire(spec, granted)
		if e != nil || err != nil {
			return e, err
		}
		if !granted {
			full()
		}
		select {
		case <-slot:
		case <-ctx.Done():
			p.cancelWaiting(slot)
			return nil, context.Cause(ctx)
		}
	}
}

// tryAcquire finds or makes a connection. Without a free slot it returns a channel
// that is closed when a slot is granted, which the next call uses.
func (p *endpointPool) tryAcquire(spec graph.RemoteSpec, granted bool) (*endpoint, chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if granted {
		p.grantedSlots--
	}
	defer p.grantNext()
	e := p.bySpec[spec]
	if e == nil {
		if !p.makeRoom() {
			slot := make(chan struct{})
			p.waiters = append(p.waiters, slot)
			return nil, slot, nil
		}
		made, err := p.dialEndpoint(spec)
		if err != nil {
			return nil, nil, err
		}
		e = made
		p.bySpec[spec] = e
	}
	e.activeCalls++
	return e, nil, nil
}

// makeRoom reports whether one more connection may be made. To make room it closes
// the connection that was idle for the longest time.
func (p *endpointPool) makeRoom() bool {
	if p.hasRoom() {
		return true
	}
	if oldest, found := p.findOldestIdle(); found {
		p.closeEndpoint(oldest)
	}
	return p.hasRoom()
}

func (p *endpointPool) hasRoom() bool { return len(p.bySpec)+p.grantedSlots < p.opts.MaxConns }

func (p *endpointPool) findOldestIdle() (oldest graph.RemoteSpec, found bool) {
	for spec, e := range p.bySpec {
		if e.activeCalls == 0 && (!found || e.idleSince.Before(p.bySpec[oldest].idleSince)) {
			oldest, found = spec, true
		}
	}
	return oldest, found
}

// releaseEndpoint releases a connection that acquireEndpoint returned.
func (p *endpointPool) releaseEndpoint(e *endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.activeCalls--
	if e.activeCalls > 0 {
		return
	}
	if e.isForgotten {
		p.closeConn(e)
		return
	}
	e.idleSince = time.Now()
	p.grantNext()
	if p.idleTimer == nil {
		p.idleTimer = time.AfterFunc(p.opts.IdleTimeout, p.containPanics(p.closeIdle))
	}
}

// forgetEndpoint gives further calls another connection to the endpoint, because
// the addresses of this one are refused. The name may lead elsewhere by then. The
// caller holds the connection.
func (p *endpointPool) forgetEndpoint(spec graph.RemoteSpec, e *endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bySpec[spec] == e {
		e.isForgotten = true
		delete(p.bySpec, spec)
		p.grantNext()
	}
}

// hasWaiters reports whether calls wait for a slot.
func (p *endpointPool) hasWaiters() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters) > 0
}

// cancelWaiting ends the wait for a slot. A slot that was granted meanwhile goes to
// the next call.
func (p *endpointPool) cancelWaiting(slot chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiters, slot); at >= 0 {
		p.waiters = slices.Delete(p.waiters, at, at+1)
		return
	}
	p.grantedSlots--
	p.grantNext()
}

// grantNext grants a slot to the call that waits for the longest time, if any
// waits.
func (p *endpointPool) grantNext() {
	if len(p.waiters) > 0 && p.makeRoom() {
		p.grantedSlots++
		close(p.waiters[0])
		p.waiters = p.waiters[1:]
	}
}

// closeIdle closes the connections that were idle for long enough, and sets the
// timer for the next connection.
func (p *endpointPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idleTimer = nil
	if p.isClosed {
		return
	}
	now, next := time.Now(), time.Duration(0)
	for spec, e := range p.bySpec {
		if e.activeCalls > 0 {
			continue
		}
		if left := e.idleSince.Add(p.opts.IdleTimeout).Sub(now); left <= 0 {
			p.closeEndpoint(spec)
		} else if next == 0 || left < next {
			next = left
		}
	}
	if next > 0 {
		p.idleTimer = time.AfterFunc(next, p.containPanics(p.closeIdle))
	}
}

// containPanics wraps f for a timer: a panic ends f alone.
func (p *endpointPool) containPanics(f func()) func() {
	return contain.Func(f, contain.LogPanic(p.opts.Log, "closing idle connections panicked"))
}

// closeEndpoint closes a connection. The caller holds mu; closing does not wait for the
// network.
func (p *endpointPool) closeEndpoint(spec graph.RemoteSpec) {
	p.closeConn(p.bySpec[spec])
	delete(p.bySpec, spec)
}

func (p *endpointPool) closeConn(e *endpoint) {
	if err := e.conn.Close(); err != nil {
		p.opts.Log.Debug("closing a connection", zap.String("endpoint", e.conn.Target()), zap.Error(err))
	}
}

// closeAll ends all connections.
func (p *endpointPool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	if p.idleTimer != nil {
		p.idleTimer.Stop()
	}
	for spec := range p.bySpec {
		p.closeEndpoint(spec)
	}
}

// serviceConfig spreads calls over all addresses of a name, except those that
// report that they are not healthy.
const serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}],` +
	`"healthCheckConfig":{"serviceName":"graphd.v1.NodeService"}}`

// Limits of the data that gRPC accepts from an endpoint before graphd checks it:
// the headers or trailers, which hold the details of errors, and the unread bytes
// of a call.
const (
	maxResponseHeaderSize = 64 << 10
	responseWindowSize    = 256 << 10
)

// dialEndpoint makes the connection to an endpoint. It gets neither proxies of the
// environment nor unchecked addresses: both come with gRPC's own dialer.
func (p *endpointPool) dialEndpoint(spec graph.RemoteSpec) (*endpoint, error) {
	target, dialer, err := p.admitEndpoint(spec.Endpoint)
	if err != nil {
		return nil, err
	}
	e := &endpoint{dialer: dialer}
	creds := insecure.NewCredentials()
	if spec.TLS {
		secure := newTLSCredentials(p.opts.TLS, p.opts.Log.With(zap.String("endpoint", spec.Endpoint)))
		creds, e.tls = secure, secure
	}
	e.conn, err = grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithContextDialer(dialer.dialAddress), grpc.WithNoProxy(),
		grpc.WithTransportCredentials(newPacedCredentials(creds)), grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(), // a service config from DNS could make gRPC repeat calls that have begun
		grpc.WithStatsHandler(sentMarker{}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: flow.PingInterval, Timeout: flow.PingTimeout}),
		grpc.WithMaxHeaderListSize(maxResponseHeaderSize),
		grpc.WithStaticStreamWindowSize(responseWindowSize), grpc.WithStaticConnWindowSize(flow.ConnectionWindowSize),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(flow.NewCodec()),
			grpc.MaxCallRecvMsgSize(p.opts.MaxMessageBytes), grpc.MaxCallSendMsgSize(p.opts.MaxMessageBytes+64<<10),
			grpc.WaitForReady(true)),
	}, p.opts.DialOptions...)...)
	if err != nil {
		return nil, err
	}
	e.client = graphdv1.NewNodeServiceClient(e.conn)
	return e, nil
}
