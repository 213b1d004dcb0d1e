package transport

import (
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
)

// endpoint is a connection to a node service.
type endpoint struct {
	conn   *grpc.ClientConn
	client graphdv1.NodeServiceClient

	calls int       // that use the connection; guarded by endpoints.mu
	idle  time.Time // since when there are none

	mu        sync.Mutex
	described *description // nil = not asked yet
}

// endpoints are the connections to node services, one for each. Graphs name
// endpoints at will, so what no call uses is closed after a while, and there is
// a limit to how many are open.
type endpoints struct {
	opts EndpointOptions

	mu      sync.Mutex
	conns   map[graph.RemoteSpec]*endpoint
	waiting []chan struct{} // calls that wait for a place, the first one first
	granted int             // places that were given to waiting calls, not taken yet
	sweep   *time.Timer     // closes what is idle; nil = nothing was idle yet
	closed  bool
}

func newEndpoints(o EndpointOptions) *endpoints {
	return &endpoints{opts: o, conns: make(map[graph.RemoteSpec]*endpoint)}
}

// acquire returns the connection to an endpoint, which release gives back.
// When all connections are in use it waits for one, and calls full first.
func (p *endpoints) acquire(ctx context.Context, spec graph.RemoteSpec, full func()) (*endpoint, error) {
	for granted := false; ; granted = true {
		e, place, err := p.take(spec, granted)
		if e != nil || err != nil {
			return e, err
		}
		if !granted {
			full()
		}
		select {
		case <-place:
		case <-ctx.Done():
			p.leave(place)
			return nil, context.Cause(ctx)
		}
	}
}

// take finds or makes a connection. Without room for one it returns a channel
// that is closed when a place is granted, which the next take uses.
func (p *endpoints) take(spec graph.RemoteSpec, granted bool) (*endpoint, chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if granted {
		p.granted--
	}
	defer p.grantNext()
	e := p.conns[spec]
	if e == nil {
		if !p.makeRoom() {
			place := make(chan struct{})
			p.waiting = append(p.waiting, place)
			return nil, place, nil
		}
		conn, err := p.dial(spec)
		if err != nil {
			return nil, nil, err
		}
		e = &endpoint{conn: conn, client: graphdv1.NewNodeServiceClient(conn)}
		p.conns[spec] = e
	}
	e.calls++
	return e, nil, nil
}

// makeRoom reports whether one more connection may be made, and closes for it
// the one that was not used for the longest time.
func (p *endpoints) makeRoom() bool {
	if p.room() {
		return true
	}
	if oldest, found := p.oldestIdle(); found {
		p.drop(oldest)
	}
	return p.room()
}

func (p *endpoints) room() bool { return len(p.conns)+p.granted < p.opts.MaxConns }

func (p *endpoints) oldestIdle() (oldest graph.RemoteSpec, found bool) {
	for spec, e := range p.conns {
		if e.calls == 0 && (!found || e.idle.Before(p.conns[oldest].idle)) {
			oldest, found = spec, true
		}
	}
	return oldest, found
}

// release gives a connection back that acquire returned.
func (p *endpoints) release(e *endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.calls--
	if e.calls > 0 {
		return
	}
	e.idle = time.Now()
	p.grantNext()
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.opts.Idle, p.contained(p.closeIdle))
	}
}

// crowded reports whether calls wait for a place.
func (p *endpoints) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

// leave takes back the waiting for a place. A place that was granted meanwhile
// goes to the next one.
func (p *endpoints) leave(place chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, place); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return
	}
	p.granted--
	p.grantNext()
}

// grantNext gives a place to the call that waits for the longest time, if
// there is one.
func (p *endpoints) grantNext() {
	if len(p.waiting) > 0 && p.makeRoom() {
		p.granted++
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}

// closeIdle closes the connections that were not used for long enough, and
// comes back when the next one may be due.
func (p *endpoints) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep = nil
	if p.closed {
		return
	}
	now, next := time.Now(), time.Duration(0)
	for spec, e := range p.conns {
		if e.calls > 0 {
			continue
		}
		if left := e.idle.Add(p.opts.Idle).Sub(now); left <= 0 {
			p.drop(spec)
		} else if next == 0 || left < next {
			next = left
		}
	}
	if next > 0 {
		p.sweep = time.AfterFunc(next, p.contained(p.closeIdle))
	}
}

// contained is f for a timer: a panic ends f alone.
func (p *endpoints) contained(f func()) func() {
	return contain.Func(f, contain.Log(p.opts.Log, "closing idle connections panicked"))
}

// drop closes a connection. The caller holds mu; closing does not wait for the
// network.
func (p *endpoints) drop(spec graph.RemoteSpec) {
	if err := p.conns[spec].conn.Close(); err != nil {
		p.opts.Log.Debug("closing a connection", zap.String("endpoint", spec.Endpoint), zap.Error(err))
	}
	delete(p.conns, spec)
}

// close ends all connections.
func (p *endpoints) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	for spec := range p.conns {
		p.drop(spec)
	}
}

// serviceConfig spreads calls over all addresses of a name, and leaves out
// those that say they are not healthy.
const serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}],` +
	`"healthCheckConfig":{"serviceName":"graphd.v1.NodeService"}}`

// What gRPC takes of an endpoint before it is looked at: of headers or trailers,
// in which the details of errors are, and of a call.
const (
	maxAnswerHeaders = 64 << 10
	answerWindow     = 256 << 10
)

func (p *endpoints) dial(spec graph.RemoteSpec) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if spec.TLS {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if p.opts.TLS != nil {
			config = p.opts.TLS.Clone()
		}
		creds = credentials.NewTLS(config)
	}
	return grpc.NewClient(spec.Endpoint, append([]grpc.DialOption{
		grpc.WithTransportCredentials(newReconnecting(creds)), grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(), // one of the name's owner could have gRPC repeat calls that have begun
		grpc.WithStatsHandler(departures{}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithMaxHeaderListSize(maxAnswerHeaders),
		grpc.WithStaticStreamWindowSize(answerWindow), grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newFraming()),
			grpc.MaxCallRecvMsgSize(p.opts.MaxMessageBytes), grpc.MaxCallSendMsgSize(p.opts.MaxMessageBytes+64<<10),
			grpc.WaitForReady(true)),
	}, p.opts.Dial...)...)
}
