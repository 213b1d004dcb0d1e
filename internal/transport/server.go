package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/transport/workers"
	"github.com/graphd-dev/graphd/internal/worker"
)

// Options make a Server. Engine, Follow, FollowInterrupts, Registry, Assistants, Items, RunWebhooks
// and Crons must be set; other zero fields mean their defaults.
type Options struct {
	Engine Engine
	// Follow begins to read the events of a thread.
	Follow func(runtime.FollowRequest) stream.Follower
	// FollowInterrupts begins to read the changes of the interrupts that a query
	// selects, after one of the changes.
	FollowInterrupts func(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) InterruptFollower
	Registry         Registry
	Assistants       Assistants
	Items            Items
	RunWebhooks      RunWebhooks
	Crons            Crons
	Workers          Workers // nil = no workers can connect
	// Hub hands tasks to workers; with it Workers need not be set. nil = no
	// workers can connect.
	Hub  *worker.Hub
	Info Info

	Log *zap.Logger // nil = nothing is logged
	// Metrics registers the counters of calls, nil = not counted.
	Metrics prometheus.Registerer
	// StreamMetrics counts event streams, nil = not counted.
	StreamMetrics stream.Metrics
	// RefusalMetrics count refusals, nil = not counted.
	RefusalMetrics reason.RefusalMetrics
	// HandshakeMetrics count connections whose TLS handshake fails, nil = not counted.
	HandshakeMetrics handshake.RefusalCounter
	// CallTracer traces calls, nil = they are not traced.
	CallTracer stats.Handler
	// Authenticator tells who calls: every call but health checks needs credentials
	// then. nil = callers are not known.
	Authenticator interceptor.Authenticator
	// Auditor keeps the records of calls, nil = no call is recorded. AuditReads says
	// whether those that show values are recorded when they are not refused.
	Auditor    interceptor.Auditor
	AuditReads bool
	// Access decides what callers may do; it needs an Authenticator. nil = everything.
	Access *permission.Authorizer
	// Links make links by which people answer, nil = none are made.
	Links LinkMaker
	// Quotas refuse calls beyond the limits of their tenant or caller; nil = they have none.
	Quotas interceptor.Quotas
	// TLS encrypts connections, nil = plain text.
	TLS          *tls.Config
	NoReflection bool

	Limits          payload.Limits // of one payload; default 1 MiB, 128 deep
	MaxMessageBytes int            // of one message, both ways; default 8 MiB
	MaxStreams      int            // open at the same time, 0 = any number
	// MaxThreadStreams and MaxInboxStreams bound the watches of one thread, and
	// those of the interrupts of all threads; 0 = any number.
	MaxThreadStreams int
	MaxInboxStreams  int
	MaxConnections   int // open at the same time, 0 = any number
	// MaxCalls bounds the calls of one connection; a client that makes more waits.
	// 0 = any number.
	MaxCalls int
	// MaxOpenCalls bounds the calls of all connections, MaxIncoming the bytes of
	// requests that arrive or are served; 0 = any number, and 64 MiB. A request has
	// to arrive within RequestPatience; default 30 s.
	MaxOpenCalls    int
	MaxIncoming     int
	RequestPatience time.Duration
	Heartbeat       time.Duration // of a quiet stream; default 15 s
	// StallTimeout is the time that a client may leave a message unread before its
	// stream is ended; default 30 s.
	StallTimeout time.Duration
	// MaxConnectionAge closes connections so that clients spread over replicas
	// again, 0 = never. Streams are ended in order before.
	MaxConnectionAge time.Duration
	ConnectionGrace  time.Duration // after the age; default 30 s
	// ConnectionIdle closes connections that have had no call for this time;
	// default 5 min, less than 0 = never.
	ConnectionIdle time.Duration
	// MaxUnread bounds the bytes that wait for clients to read them,
	// MaxStreamUnread those of one stream, which then continues from the log;
	// default 64 MiB and 256 KiB, less than 0 = any number. While others wait, a
	// connection that reads nothing for UnreadPatience is closed; default 2 s.
	MaxUnread       int
	MaxStreamUnread int
	UnreadPatience  time.Duration
	// Now returns the time that streams show; nil = time.Now. The clock of a server
	// may be wrong; decisions use the store's.
	Now func() time.Time
	// TokenKey marks the page tokens of this service. All replicas need the same
	// key; the default is a fixed key, since tokens hold no secrets. With Access they
	// do, and are encrypted: the key must be set.
	TokenKey []byte
}

// Defaults of Options, and the pings that keep long streams alive through proxies.
const (
	defaultHeartbeat       = 15 * time.Second
	defaultStallTimeout    = 30 * time.Second
	defaultConnectionGrace = 30 * time.Second
	defaultConnectionIdle  = 5 * time.Minute
	defaultMaxUnread       = 64 << 20
	defaultUnreadPatience  = 2 * time.Second
	defaultMaxIncoming     = 64 << 20
	defaultRequestPatience = 30 * time.Second
	defaultTokenKey        = "graphd.v1 page tokens" //nolint:gosec // no secret, see Options.TokenKey

	defaultMaxStreamUnread = 256 << 10

	minPingInterval = 10 * time.Second

	// maxOpeningStreams is the number of watches that may read the store at the
	// same time to begin.
	maxOpeningStreams = 32
	// callWindowSize is the number of bytes that gRPC accepts of a call before a handler
	// reads.
	callWindowSize = 64 << 10
	// handshakeTimeout bounds the handshake of a connection.
	handshakeTimeout = 20 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Workers == nil && o.Hub != nil {
		o.Workers = o.Hub
	}
	o.Limits.MaxBytes = cmp.Or(o.Limits.MaxBytes, wire.DefaultMaxPayload)
	o.Limits.MaxDepth = cmp.Or(o.Limits.MaxDepth, wire.DefaultMaxDepth)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, wire.DefaultMaxMessage)
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	o.StallTimeout = cmp.Or(o.StallTimeout, defaultStallTimeout)
	o.ConnectionGrace = cmp.Or(o.ConnectionGrace, defaultConnectionGrace)
	o.ConnectionIdle = cmp.Or(o.ConnectionIdle, defaultConnectionIdle)
	o.MaxUnread = max(cmp.Or(o.MaxUnread, defaultMaxUnread), 0)
	o.MaxStreamUnread = max(cmp.Or(o.MaxStreamUnread, defaultMaxStreamUnread), 0)
	o.MaxIncoming = max(cmp.Or(o.MaxIncoming, defaultMaxIncoming), 0)
	o.RequestPatience = cmp.Or(o.RequestPatience, defaultRequestPatience)
	o.UnreadPatience = cmp.Or(o.UnreadPatience, defaultUnreadPatience)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.TokenKey) == 0 && o.Access == nil {
		o.TokenKey = []byte(defaultTokenKey)
	}
	return o
}

// Server serves graphd over gRPC.
type Server struct {
	grpc         *grpc.Server
	health       *health.Server
	streams      *stream.Registry
	hub          *worker.Hub
	drainOnce    sync.Once
	log          *zap.Logger
	storeRefusal atomic.Pointer[runtime.Error] // why the store takes no changes

	refusalMetrics reason.RefusalMetrics // nil = not counted

	maxConnections int
	interceptors   *interceptor.Interceptors
	unread         *flow.UnreadTracker
}

// NewServer makes a server; Serve starts it. The error names the option that is
// missing or can't be used.
func NewServer(o Options) (*Server, error) {
	o = o.withDefaults()
	if o.Engine == nil || o.Follow == nil || o.FollowInterrupts == nil || o.Registry == nil || o.Assistants == nil || o.Items == nil || o.RunWebhooks == nil || o.Crons == nil {
		return nil, fmt.Errorf("transport: Engine, Follow, FollowInterrupts, Registry, Assistants, Items, RunWebhooks and Crons must be set")
	}
	if o.Access != nil && (o.Authenticator == nil || len(o.TokenKey) == 0) {
		return nil, fmt.Errorf("transport: Access needs an Authenticator, and a TokenKey that is secret")
	}
	unread := flow.NewUnreadTracker(int64(o.MaxUnread), int64(o.MaxStreamUnread), o.UnreadPatience, o.Log)
	d := interceptor.New(reason.NewMapper(o.RefusalMetrics), unread, o.Authenticator, o.MaxMessageBytes, o.Log)
	if o.Access != nil {
		d.AuthorizeCalls(o.Access)
	}
	d.LimitCalls(o.Quotas)
	d.TraceCalls(o.CallTracer)
	incoming := flow.NewRequestTracker(flow.RequestLimits{
		MaxBytes: o.MaxIncoming, MaxCalls: o.MaxOpenCalls, ArrivalTimeout: o.RequestPatience,
	}, o.Log)
	d.BoundRequests(incoming)
	if o.Metrics != nil {
		if err := d.CountCalls(o.Metrics); err != nil {
			return nil, fmt.Errorf("transport: register metrics: %w", err)
		}
	}
	if o.Auditor != nil {
		if err := d.AuditCalls(o.Auditor, o.AuditReads); err != nil {
			return nil, fmt.Errorf("transport: audit: %w", err)
		}
	}
	s := &Server{
		grpc:   grpc.NewServer(append(grpcOptions(o, incoming), d.ServerOptions()...)...),
		health: health.NewServer(),
		log:    o.Log,
		streams: stream.NewRegistry(stream.Settings{
			HeartbeatInterval: o.Heartbeat, StallTimeout: o.StallTimeout, MaxStreams: int64(o.MaxStreams),
			MaxThreadStreams: o.MaxThreadStreams, MaxInterruptStreams: int64(o.MaxInboxStreams),
			MaxOpening: maxOpeningStreams, MaxMessageBytes: o.MaxMessageBytes, MaxLifetime: maxStreamLifetime(o),
			DirectBytes: stream.MaxDirectBytes,
		}),
		maxConnections: o.MaxConnections, unread: unread, refusalMetrics: o.RefusalMetrics,
	}
	s.recordStoreRefusal(nil)
	s.hub, s.interceptors = o.Hub, d
	s.registerServices(o, d.WrapRegistrar(s.grpc))
	incoming.RegisterMethods(s.grpc.GetServiceInfo())
	d.RegisterMethods(s.grpc.GetServiceInfo())
	return s, nil
}

// maxStreamLifetime returns the age of its connection at which a stream is ended.
// gRPC spreads the age by a tenth, asks the client to leave, and cuts the remaining
// calls after the grace.
func maxStreamLifetime(o Options) time.Duration {
	if o.MaxConnectionAge <= 0 {
		return 0
	}
	return o.MaxConnectionAge + o.MaxConnectionAge/10 + o.ConnectionGrace/2
}

func grpcOptions(o Options, incoming *flow.RequestTracker) []grpc.ServerOption {
	alive := keepalive.ServerParameters{Time: flow.PingInterval, Timeout: flow.PingTimeout}
	if o.ConnectionIdle > 0 {
		alive.MaxConnectionIdle = o.ConnectionIdle
	}
	if o.MaxConnectionAge > 0 {
		alive.MaxConnectionAge, alive.MaxConnectionAgeGrace = o.MaxConnectionAge, o.ConnectionGrace
	}
	list := []grpc.ServerOption{
		grpc.KeepaliveParams(alive),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(o.MaxMessageBytes),
		// A value that is too large is left out before; this only needs room for
		// the fields around it.
		grpc.MaxSendMsgSize(o.MaxMessageBytes + 64<<10),
		grpc.ForceServerCodecV2(flow.NewCodec()),
		grpc.ReadBufferSize(0), // the connection has a buffer
		grpc.InTapHandle(incoming.BeginCall),
		grpc.StaticStreamWindowSize(callWindowSize),
		grpc.StaticConnWindowSize(flow.ConnectionWindowSize),
		grpc.MaxHeaderListSize(interceptor.MaxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
	}
	protection := insecure.NewCredentials()
	if o.TLS != nil {
		protection = handshake.ReportRefusals(credentials.NewTLS(o.TLS), o.HandshakeMetrics, o.Log)
	}
	list = append(list, grpc.Creds(incoming.WrapCredentials(handshake.TakeRelayed(protection))))
	if o.MaxCalls > 0 {
		list = append(list, grpc.MaxConcurrentStreams(uint32(o.MaxCalls)))
	}
	if o.MaxConnectionAge > 0 { // a stats handler is called for each message
		list = append(list, grpc.StatsHandler(stream.ConnectionStart{}))
	}
	return list
}

func (s *Server) registerServices(o Options, at grpc.ServiceRegistrar) {
	common := &service{
		engine: o.Engine, follow: o.Follow, streams: s.streams, maxMessageBytes: o.MaxMessageBytes,
		log: o.Log,
		events: stream.NewStreamer(s.streams, stream.Sources{
			Engine: o.Engine, Follow: o.Follow, Log: o.Log, Metrics: o.StreamMetrics, Now: o.Now,
		}),
		tokens: listing.TokenCodec{Key: o.TokenKey, IsSealed: o.Access != nil}, limits: o.Limits, access: o.Access,
		readSlots: make(chan struct{}, maxStateReads),
	}
	graphdv1.RegisterGraphServiceServer(at, &graphService{service: common, webhooks: o.RunWebhooks})
	graphdv1.RegisterThreadServiceServer(at, &threadService{service: common})
	graphdv1.RegisterInterruptServiceServer(at, &interruptService{
		service: common, encoded: flow.NewEncodedCache[encodedChangeKey](), followInterrupts: o.FollowInterrupts, links: o.Links,
	})
	graphdv1.RegisterRegistryServiceServer(at, &registryService{
		service: common, graphs: o.Registry, changes: graphChanges{o.Access, o.Registry, o.Auditor != nil}, workers: o.Workers, info: o.Info,
	})
	graphdv1.RegisterItemServiceServer(at, &itemService{service: common, items: o.Items, searchSlots: make(chan struct{}, maxItemSearches)})
	graphdv1.RegisterAssistantServiceServer(at, &assistantService{service: common, assistants: o.Assistants})
	graphdv1.RegisterCronServiceServer(at, &cronService{service: common, crons: o.Crons})
	if o.Hub != nil {
		graphdv1.RegisterWorkerServiceServer(at, workers.New(workers.Options{
			Hub: o.Hub, Graphs: graphChanges{o.Access, o.Registry, o.Auditor != nil}, Access: o.Access,
			Limits: o.Limits, MaxMessageBytes: o.MaxMessageBytes, Version: o.Info.Version,
		}))
	}
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	s.health.SetServingStatus(readsServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(at, healthService{
		Server: s.health, streams: s.streams, storeRefusal: s.StoreRefusal, watchCount: new(atomic.Int64), maxWatches: int64(o.MaxOpenCalls+3) / 4,
	})
	if !o.NoReflection {
		reflection.Register(s.grpc)
	}
}

// Local returns a connection for doors of this server that do not speak gRPC.
func (s *Server) Local() *interceptor.LocalConn { return s.interceptors.NewLocalConn() }

// ClientConn is a connection of a client.
type ClientConn = grpc.ClientConnInterface

// ConnectProcess returns the connection of the program that has the server in it. inMemory is one to
// the same server, which that program closes.
func (s *Server) ConnectProcess(inMemory ClientConn) ClientConn {
	return s.interceptors.NewProcessConn(inMemory)
}

// ConnectRelayed returns the connection of a client of another door of this process, with the TLS of
// that client, nil = plain text. inMemory is one to the same server that ServeRelayed serves, for
// streams.
func (s *Server) ConnectRelayed(client net.Addr, secured *tls.ConnectionState, inMemory ClientConn) ClientConn {
	return s.interceptors.NewRelayedConn(client, secured, inMemory)
}

// Serve accepts connections until the server is drained or stopped.
func (s *Server) Serve(l net.Listener) error {
	if s.maxConnections > 0 {
		l = netutil.LimitListener(l, s.maxConnections)
	}
	return s.ServeRelayed(l)
}

// ServeRelayed is Serve for connections in memory: those that another door of this server relays, and
// those of the process itself. That door limits them, and a limit here would hide what they are.
func (s *Server) ServeRelayed(l net.Listener) error {
	return s.grpc.Serve(s.unread.WrapListener(l))
}

// Drain takes the server out of service: it reports NOT_SERVING, refuses new runs,
// ends every stream with the cursor from which the client continues, and waits for
// calls to finish. When ctx ends first, Drain cuts the remaining calls and returns
// ctx's error.
func (s *Server) Drain(ctx context.Context) error {
	s.drainOnce.Do(func() {
		s.health.Shutdown()
		s.streams.DrainStreams()
	})
	s.drainWorkers(ctx)
	direct := s.interceptors.DirectCalls()
	direct.RefuseCalls()
	done := make(chan struct{})
	go contain.Func(func() {
		defer close(done)
		s.grpc.GracefulStop()
		direct.AwaitCalls()
	}, contain.LogPanic(s.log, "stopping panicked"))()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		direct.CutCalls()
		<-done
		return ctx.Err()
	}
}

// CloseProcess has calls of the process fail for good. A server that is drained has them call again
// before.
func (s *Server) CloseProcess() { s.interceptors.DirectCalls().Close() }

// Stop cuts all connections at once.
func (s *Server) Stop() {
	s.drainOnce.Do(func() {
		s.health.Shutdown()
		s.streams.DrainStreams()
	})
	if s.hub != nil {
		s.hub.Close()
	}
	s.grpc.Stop()
	s.interceptors.DirectCalls().CutCalls()
}

// drainWorkers lets the workers finish the tasks of the current supersteps, for as
// long as ctx allows, and ends their streams.
func (s *Server) drainWorkers(ctx context.Context) {
	if s.hub == nil {
		return
	}
	left := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = max(time.Until(deadline), 0)
	}
	s.hub.Drain(left, "the server is shutting down")
	s.hub.WaitIdle(ctx)
	s.hub.Close()
}
