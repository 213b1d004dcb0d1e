package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/telemetry"
	"github.com/graphd-dev/graphd/internal/tracing"
	"github.com/graphd-dev/graphd/internal/tracing/export"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/endpoint"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/worker"
)

// WatchGraphs returns a function that loads the graph files of a folder again when
// they change, until ctx ends.
func (s *Server) WatchGraphs(ctx context.Context, dir string, interval time.Duration) func() {
	return s.registry.WatchDir(ctx, dir, interval, s.logReload)
}

// logReload logs the outcome of reading changed graph files.
func (s *Server) logReload(loaded []*graph.Graph, err error) {
	s.logLoaded(loaded)
	if err != nil {
		s.log.Error("graph files are wrong; the versions before them stay")
		for line := range strings.Lines(err.Error()) {
			s.log.Error(strings.TrimRight(line, "\n"))
		}
	}
}

// Server is a whole graphd in this process.
type Server struct {
	log            *zap.Logger
	store          Store
	registry       *registry.Registry
	remote         *endpoint.Executor
	Engine         *engine.Engine
	grpc           *transport.Server
	listener       net.Listener
	findLack       func(net.Addr) string // see Options.findLack
	tls            *tls.Config           // nil = plain text
	endpointTLS    func() *tls.Config
	callers        *callerFiles     // nil = callers are not known
	closeAudit     func() error     // nil = no call is recorded
	spans          *export.Provider // nil = nothing is traced
	closeSpans     func() error     // sends what is left
	tracer         *tracing.Tracer  // nil = nothing is traced
	policy         *accessPolicy    // nil = callers are not known
	metrics        *httpServer      // nil = no metrics are served
	links          *linkServer      // nil = the server makes no links
	browsers       *browserServer   // nil = browsers are not served
	langGraph      *langGraphServer // nil = clients of LangGraph Server are not served
	serveErrors    chan error       // an error that ended serving
	quotas         *quotaFile       // nil = callers have no limits
	notifiers      []*notify.Notifier
	stopBackground func() // ends the goroutines of startBackground; nil = none
	isDraining     atomic.Bool
}

// NewServer wires a server and begins to listen; StartServing starts it. On an
// error it closes everything that it has opened.
func NewServer(ctx context.Context, o Options, log *zap.Logger, version string) (_ *Server, err error) {
	s := &Server{log: log, serveErrors: make(chan error, 7), findLack: o.findLack}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAll())
		}
	}()
	name, err := ParseStore(o.Store)
	if err == nil {
		name, err = name.WithRedisTLS(o.RedisTLSOptions)
	}
	if err != nil {
		return s, err
	}
	sealed, err := o.ReadSealOptions(name, log)
	if err != nil {
		return s, err
	}
	if s.tls, err = o.readTLS(log); err != nil {
		return s, err
	}
	if s.endpointTLS, err = o.openEndpointClient(log.Named("endpoint")); err != nil {
		return s, err
	}
	if s.quotas, err = o.openQuotas(log); err != nil {
		return s, err
	}
	if s.callers, err = o.openCallerFiles(callerFileInterval, log.Named("callers")); err != nil {
		return s, err
	}
	if s.callers != nil {
		if s.policy, err = o.openPolicy(callerFileInterval, log.Named("access")); err != nil {
			return s, err
		}
	}
	endpoints, err := o.readEndpoints(o.Getenv)
	if err != nil {
		return s, err
	}
	// First the port: a second server should report that, and not that the store is
	// locked.
	if s.listener, err = o.listenGRPC(); err != nil {
		return s, &exit.HintError{
			Err: fmt.Errorf("can't listen: %w", err), Hint: "choose another address with --listen HOST:PORT",
		}
	}
	if err := o.checkExposure(s.listener.Addr()); err != nil {
		return s, err
	}
	if s.links, err = o.openLinks(log.Named("links")); err != nil {
		return s, err
	}
	if s.browsers, err = o.openHTTP(s.callers, log.Named("http")); err != nil {
		return s, err
	}
	if s.langGraph, err = o.openLangGraph(version, log.Named("langgraph")); err != nil {
		return s, err
	}
	name.Options = o.StoreOptions
	if s.store, err = o.migrateAndOpen(ctx, name, log, sealed); err != nil {
		return s, err
	}
	if err := s.createPlaces(ctx, endpoints); err != nil {
		return s, name.explainUnavailable("store where the endpoints of webhooks begin", err)
	}
	metrics := telemetry.NewMetrics(version, o.MetricNames)
	if s.spans, err = o.openTraces(ctx, version, metrics, log.Named("traces")); err != nil {
		return s, err
	}
	s.closeSpans = func() error { return s.spans.Close(ctx) }
	if err := s.buildServices(ctx, o, name, metrics, transport.Info{
		Version: version, Features: listFeatures(o), Store: name.Kind, Started: time.Now(),
	}); err != nil {
		return s, err
	}
	s.newNotifiers(endpoints, o.Lease, name.pollInterval() > 0, version, metrics)
	if err := s.loadGraphs(ctx, o.Graphs); err != nil {
		return s, name.explainUnavailable("put its graphs there", err)
	}
	if err = s.listenMetrics(o, metrics); err == nil {
		s.startBackground(ctx, name.pollInterval() > 0)
	}
	return s, err
}

// listFeatures returns the optional parts of the server, for clients.
func listFeatures(o Options) []string {
	if o.Reflection {
		return []string{"reflection", "workers"}
	}
	return []string{"workers"}
}

// graphRefreshInterval is the interval at which a server looks for graphs that were
// put at other servers on the same store.
const graphRefreshInterval = time.Second

// startBackground follows the files of callers and of their limits, sends to the endpoints of
// webhooks, and checks the store until the server is released: whether it takes changes and, if
// other servers write to it, which graphs they have put.
func (s *Server) startBackground(ctx context.Context, shared bool) {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	if s.policy != nil && s.policy.follow != nil {
		tasks.Go(contain.Func(func() { s.policy.follow(ctx) }, contain.LogPanic(s.log, "following the policy panicked")))
	}
	if s.callers != nil {
		for _, follow := range s.callers.followers {
			tasks.Go(contain.Func(func() { follow(ctx) }, contain.LogPanic(s.log, "following a file of callers panicked")))
		}
	}
	if s.quotas != nil {
		tasks.Go(contain.Func(func() { s.quotas.followFile(ctx) }, contain.LogPanic(s.log, "following the limits of tenants panicked")))
	}
	if store, ok := s.store.(checkpoint.WriteChecker); ok {
		tasks.Go(contain.Func(func() { s.grpc.WatchStore(ctx, store) }, contain.LogPanic(s.log, "watching the store panicked")))
	}
	if shared {
		tasks.Go(contain.Func(func() { s.keepRefreshingGraphs(ctx) }, contain.LogPanic(s.log, "looking for graphs panicked")))
	}
	s.startNotifiers(ctx, &tasks)
	s.stopBackground = func() {
		cancel()
		tasks.Wait()
	}
}

// keepRefreshingGraphs loads the graphs of other servers until ctx ends.
func (s *Server) keepRefreshingGraphs(ctx context.Context) {
	tick := time.NewTicker(graphRefreshInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.refreshGraphs(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("graphs of other servers were not looked for", zap.Error(err))
		}
	}
}

// refreshGraphs loads new graphs. A graph that makes it panic must not prevent
// further graphs.
func (s *Server) refreshGraphs(ctx context.Context) (err error) {
	if p := contain.Call(func() { err = s.registry.Refresh(ctx) }); p != nil {
		s.log.Error("taking up the graphs of other servers panicked", p.Fields()...)
	}
	return err
}

// buildServices connects the packages, from the inside out.
func (s *Server) buildServices(
	ctx context.Context, o Options, name StoreConfig, metrics *telemetry.Metrics, info transport.Info,
) error {
	schemas := schema.New(o.SchemaLimits)
	hub, err := s.newHub(ctx, o, name)
	if err != nil {
		return err
	}
	metrics.WatchTasks(hub)
	policy, err := o.newEndpointPolicy(s.listener.Addr())
	if err != nil {
		return err
	}
	s.remote = endpoint.NewExecutor(hub, o.endpointOptions(o.WorkerLosses, policy, s.endpointTLS, s.log.Named("endpoint")))
	mux := node.New(o.Functions, node.Options{
		Reducers: o.Reducers, Schemas: schemas, Logger: s.log.Named("node"), Remote: s.remote,
	})
	env, err := NewCompileEnv(schemas, o.expressionOptions())
	if err != nil {
		return err
	}
	conditions, err := expr.NewConditions(o.expressionOptions())
	if err != nil {
		return err
	}
	env.HasNoCallers, env.HasNoKeys = s.callers == nil, !o.keepsSecrets(name)
	env.HasFunction, env.CheckEndpoint, env.Limits = mux.HasFunction, policy.CheckEndpoint, o.GraphLimits
	tenants := s.quotas.tenantLimits()
	s.registry, err = registry.New(ctx, registry.Options{
		Store: s.store, Threads: s.store, Env: env, Limits: o.RegistryLimits, Tenants: tenants, Logger: s.log.Named("registry"),
		HidesNames: s.callers != nil,
	})
	if err != nil {
		return name.explainUnavailable("read its graphs", err)
	}
	opts := engine.Options{
		Logger: s.log.Named("runtime"), Observer: metrics, PollInterval: name.pollInterval(), LeaseTTL: o.Lease, Workers: hub,
		KeepCheckpoints: o.CheckpointLimit(name), EventLimit: o.EventLimit(), StepsPerCommit: o.StepsPerCommit, MaxLiveRuns: o.MaxLiveRuns,
		Limits: o.stateLimits(), Tenants: tenants, Callers: s.quotas.callerLimits(),
		Conditions: conditions, KnowsCallers: s.callers != nil, KeepsSecrets: o.keepsSecrets(name), Undo: o.Undo,
	}
	o.setEngineLimits(&opts)
	s.traceEngine(&opts)
	s.Engine = engine.New(ctx, s.store, s.registry, mux, schemas, opts)
	options := s.newTransportOptions(o, metrics)
	s.traceCalls(&options)
	options.Hub, options.Info, options.Links = hub, info, s.newLinkMaker(o)
	if err := s.addCallers(ctx, o, name, metrics, &options); err != nil {
		return err
	}
	if err := s.callRunWebhooks(&o, info.Version); err != nil {
		return err
	}
	if s.grpc, err = transport.NewServer(options); err != nil {
		return err
	}
	return s.buildLinks(metrics)
}

// newHub makes the hub of the workers.
func (s *Server) newHub(ctx context.Context, o Options, name StoreConfig) (*worker.Hub, error) {
	key, err := s.readWorkerKey(ctx, o)
	if err != nil {
		return nil, name.explainUnavailable("read the key of the workers' leases", err)
	}
	opts := worker.Options{
		HeartbeatInterval: o.WorkerBeat, LeaseTTL: o.WorkerLease, MaxLosses: o.WorkerLosses,
		Key: key, ReclaimTimeout: o.Lease + 2*o.WorkerLease + time.Minute, Logger: s.log.Named("worker"),
	}
	o.setWorkerLimits(&opts)
	return worker.New(opts), nil
}

// newTransportOptions returns the options of a server that serves the engine to callers
// whom it does not know.
func (s *Server) newTransportOptions(o Options, metrics *telemetry.Metrics) transport.Options {
	log := s.log.Named("transport")
	if o.LogsFailuresOnly && !log.Core().Enabled(zap.DebugLevel) {
		log = log.WithOptions(zap.IncreaseLevel(zap.WarnLevel))
	}
	opts := transport.Options{
		Engine: s.Engine,
		Follow: func(req runtime.FollowRequest) stream.Follower { return s.Engine.Follow(req) },
		FollowInterrupts: func(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) transport.InterruptFollower {
			return s.Engine.FollowInterrupts(memory, q, after)
		},
		Registry: s.registry, Assistants: s.Engine.Assistants(), Items: s.Engine.Items(), RunWebhooks: s.Engine.Webhooks(), Crons: s.Engine.Crons(), Log: log, Now: s.Engine.Now, TLS: s.tls,
		Metrics: metrics.Registry(), StreamMetrics: metrics, RefusalMetrics: metrics, HandshakeMetrics: metrics,
	}
	o.setTransportLimits(&opts)
	return opts
}

// addCallers adds to the options who calls and what callers may do, the records of their
// calls, and their limits, each where an option asks for it.
func (s *Server) addCallers(
	ctx context.Context, o Options, name StoreConfig, metrics *telemetry.Metrics, opts *transport.Options,
) (err error) {
	if s.callers != nil {
		opts.Authenticator = s.callers
		if opts.Access, err = s.policy.newAuthorizer(s.Engine); err != nil {
			return err
		}
		if opts.TokenKey, err = s.readTokenKey(ctx); err != nil {
			return name.explainUnavailable("read the key of page tokens", err)
		}
	}
	version := opts.Info.Version
	trail, err := o.openAudit(ctx, version, o.newAuditOptions(version, s.Engine.Now, metrics, s.log.Named("audit")))
	if err != nil {
		return err
	}
	if trail != nil {
		opts.Auditor, opts.AuditReads = trail, o.AuditReads
		s.closeAudit = func() error { return trail.closeSinks(ctx) }
	}
	if s.quotas != nil {
		opts.Quotas = s.quotas
		s.quotas.connectEngine(s.Engine, metrics)
	}
	return nil
}

// readWorkerKey returns the key that marks the leases of workers. Without an
// option, all servers on the store share a key that the store keeps.
func (s *Server) readWorkerKey(ctx context.Context, o Options) ([]byte, error) {
	if o.WorkerKey != "" {
		return []byte(o.WorkerKey), nil
	}
	key, err := s.store.Secret(ctx, "worker-key", rand.Text())
	return []byte(key), err
}

// readTokenKey returns the key that encrypts page tokens. All servers on the store share
// it.
func (s *Server) readTokenKey(ctx context.Context) ([]byte, error) {
	key, err := s.store.Secret(ctx, "page-token-key", rand.Text())
	return []byte(key), err
}

// NewCompileEnv returns the environment in which graphs are compiled. Errors: those
// of expr.New.
func NewCompileEnv(schemas *schema.Checker, limits expr.Options) (graph.Env, error) {
	expressions, err := expr.New(limits)
	if err != nil {
		return graph.Env{}, err
	}
	conditions, err := expr.NewConditions(limits)
	if err != nil {
		return graph.Env{}, err
	}
	return graph.Env{
		Expressions: expressions, CheckSchema: schemas.CheckSchema, CheckValue: schemas.CheckValue, CheckCondition: conditions.Check,
		Limits: graph.DefaultLimits(),
	}, nil
}

// loadGraphs reads the folders with graphs. A server does not start with a broken
// graph, because an operator would not look for it later.
func (s *Server) loadGraphs(ctx context.Context, dirs []string) error {
	var all []error
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			all = append(all, exit.Usagef("--graphs %s is a file", dir).
				WithHint("name its folder: --graphs %s", filepath.Dir(dir)))
			continue
		}
		loaded, err := s.registry.LoadDir(ctx, dir)
		all = append(all, err)
		s.logLoaded(loaded)
		if err == nil && len(loaded) == 0 {
			s.log.Warn("the folder has no graph files", zap.String("file", dir))
		}
	}
	return errors.Join(all...)
}

func (s *Server) logLoaded(loaded []*graph.Graph) {
	for _, g := range loaded {
		s.log.Info("graph loaded", zap.String("graph", g.Name), zap.String("version", g.Version))
	}
}

// Address returns the address at which gRPC is served.
func (s *Server) Address() string { return s.listener.Addr().String() }

// StartServing serves in the background. serveErrors gets the error when serving
// ends by itself.
func (s *Server) StartServing() {
	go func() {
		if err := s.serveListener(); err != nil {
			s.serveErrors <- fmt.Errorf("serving gRPC: %w", err)
		}
	}()
	s.links.findPages().serve("links", s.serveErrors)
	s.serveHTTP()
	s.serveLangGraph()
	s.metrics.serve("metrics", s.serveErrors)
}

// DrainServer stops the server in order: health reports NOT_SERVING, streams end
// with the cursor from which clients continue, runs finish their superstep, and
// then the store is closed. When ctx ends first, DrainServer cuts the remaining
// calls and runs; those runs are driven again later.
func (s *Server) DrainServer(ctx context.Context) error {
	s.isDraining.Store(true)
	drained := make(chan error, 1)
	go func() { drained <- s.grpc.Drain(ctx) }()
	s.Engine.Drain(ctx)
	err := <-drained
	s.links.findPages().drain(ctx)
	s.browsers.drain(ctx)
	s.langGraph.drain(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("the drain timeout has passed; what was left was cut")
		err = nil
	}
	return errors.Join(err, s.closeAll())
}

// closeAll stops the background work and closes all that is open.
func (s *Server) closeAll() error {
	var all []error
	if s.stopBackground != nil {
		s.stopBackground()
		s.stopBackground = nil
	}
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			all = append(all, err)
		}
	}
	if s.grpc != nil {
		s.grpc.CloseProcess()
	}
	all = append(all, s.links.findPages().close(), s.browsers.close(), s.langGraph.close(), s.metrics.close())
	if s.Engine != nil {
		s.Engine.Close()
	}
	if s.remote != nil {
		s.remote.Close()
	}
	if s.closeAudit != nil {
		all = append(all, s.closeAudit())
		s.closeAudit = nil
	}
	if s.store != nil {
		all = append(all, s.store.Close())
	}
	if s.spans != nil {
		all = append(all, s.closeSpans())
		s.spans = nil
	}
	return errors.Join(all...)
}
