package transport_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/worker"
)

// withQuotas gives a server the limits of a file.
func withQuotas(t *testing.T, text string) (*quota.Limiter, func(*transport.Options)) {
	t.Helper()
	p, err := quota.Parse("quotas.yaml", []byte(text))
	require.NoError(t, err)
	l := quota.New(p)
	return l, func(o *transport.Options) { o.Quotas = l }
}

// requireQuota checks the details of a refusal by a quota, and returns the time to wait.
func requireQuota(t *testing.T, err error, reason, subject string, meta map[string]string) time.Duration {
	t.Helper()
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	told := requireErrorInfo(t, err)
	require.Equal(t, reason, told.GetReason())
	require.Equal(t, meta, told.GetMetadata())
	var wait *durationpb.Duration
	var failure *errdetails.QuotaFailure
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			wait = d.GetRetryDelay()
		case *errdetails.QuotaFailure:
			failure = d
		}
	}
	require.Len(t, failure.GetViolations(), 1)
	require.Equal(t, subject, failure.GetViolations()[0].GetSubject())
	require.Equal(t, status.Convert(err).Message(), failure.GetViolations()[0].GetDescription())
	require.NotNil(t, wait)
	return wait.AsDuration()
}

func TestCallsBeyondARateAreRefused(t *testing.T) {
	counted := newRefusalCounts()
	_, quotas := withQuotas(t, "tenant: {calls: {per_second: 0.01, burst: 6}}\ncaller: {calls: {per_second: 0.01, burst: 3}}\n")
	c := startServer(t, newFakeEngine(), withCallers, quotas, func(o *transport.Options) { o.RefusalMetrics = counted })
	ana, ben := withHeaders(t, "Bearer token-of-ana"), withHeaders(t, "Bearer token-of-ben")
	for range 3 {
		_, err := c.GetServerInfo(ana, &graphdv1.GetServerInfoRequest{})
		require.NoError(t, err)
	}
	_, unary := c.GetServerInfo(ana, &graphdv1.GetServerInfoRequest{})
	streamed := callMethod(ana, t, c.conn, graphdv1.GraphService_Watch_FullMethodName)
	for _, err := range []error{unary, streamed} {
		wait := requireQuota(t, err, "RATE_LIMITED", "tenant:default/caller/calls", map[string]string{"limit": "0.01", "option": "calls", "of": "caller"})
		require.Greater(t, wait, time.Second)
		require.LessOrEqual(t, wait, 100*time.Second)
		require.NotContains(t, err.Error(), "ana")
		require.NotContains(t, err.Error(), "middleware")
	}
	for range 3 {
		_, err := c.GetServerInfo(ben, &graphdv1.GetServerInfoRequest{})
		require.NoError(t, err, "calls that were refused count for the tenant")
	}
	_, err := c.GetServerInfo(withHeaders(t, "Bearer token-of-eve"), &graphdv1.GetServerInfoRequest{})
	requireQuota(t, err, "RATE_LIMITED", "tenant:default/calls", map[string]string{"limit": "0.01", "option": "calls", "of": "tenant"})
	_, err = c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.Equal(t, codes.Unauthenticated, status.Code(err), "a call without credentials has no tenant")
	_, err = healthpb.NewHealthClient(c.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"calls of caller": 2, "calls of tenant": 1}, counted.quota)
	require.Equal(t, 3, counted.calls["RATE_LIMITED"])
}

// Starts and answers have rates of their own. Callers that the server does not know are
// one.
func TestRatesOfKinds(t *testing.T) {
	const text = "caller: {starts: {per_second: 0.01, burst: 2}, answers: {per_second: 0.01, burst: 1}}\n"
	for name, test := range map[string]struct {
		methods []string
		burst   int
		option  string
	}{
		"starts": {
			[]string{graphdv1.GraphService_Stream_FullMethodName, graphdv1.GraphService_StartRun_FullMethodName}, 2, "starts",
		},
		"answers": {
			[]string{graphdv1.GraphService_Resume_FullMethodName, graphdv1.GraphService_ResumeRun_FullMethodName}, 1, "answers",
		},
		"others": {[]string{graphdv1.GraphService_Watch_FullMethodName, graphdv1.GraphService_GetRun_FullMethodName}, 100, ""},
	} {
		_, quotas := withQuotas(t, text)
		c := startServer(t, newFakeEngine(), quotas)
		for i := range test.burst {
			err := callMethod(t.Context(), t, c.conn, test.methods[i%len(test.methods)])
			require.NotEqual(t, codes.ResourceExhausted, status.Code(err), name)
		}
		if test.option == "" {
			continue
		}
		for _, method := range test.methods {
			err := callMethod(t.Context(), t, c.conn, method)
			requireQuota(t, err, "RATE_LIMITED", "tenant:default/caller/"+test.option,
				map[string]string{"limit": "0.01", "option": test.option, "of": "caller"})
		}
	}
}

func TestStreamsBeyondAQuotaAreRefused(t *testing.T) {
	limits, quotas := withQuotas(t, "caller: {streams: 1}\n")
	c := startServer(t, newFakeEngine(), withCallers, quotas)
	first, leave := context.WithCancel(withHeaders(t, "Bearer token-of-ana"))
	defer leave()
	watch := func(ctx context.Context) error {
		s, err := c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
		require.NoError(t, err)
		_, err = s.Header()
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
	open, err := c.Watch(first, &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = open.Header()
	require.NoError(t, err)
	held := func() int64 {
		return limits.CountHeld(quota.Caller{Tenant: "default", Principal: "ana"}, quota.Streams)
	}
	require.Eventually(t, func() bool { return held() == 1 }, time.Minute, time.Millisecond)

	refused := map[string]string{"limit": "streams", "most": "1", "of": "caller"}
	requireQuota(t, watch(withHeaders(t, "Bearer token-of-ana")), "QUOTA_EXCEEDED", "tenant:default/caller/streams", refused)
	inbox, err := c.WatchInterrupts(withHeaders(t, "Bearer token-of-ana"), &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	_, err = inbox.Recv()
	requireQuota(t, err, "QUOTA_EXCEEDED", "tenant:default/caller/streams", refused)
	listing, err := reflectionpb.NewServerReflectionClient(c.conn).ServerReflectionInfo(withHeaders(t, "Bearer token-of-ana"))
	require.NoError(t, err)
	_, err = listing.Recv()
	requireQuota(t, err, "QUOTA_EXCEEDED", "tenant:default/caller/streams", refused)
	_, err = c.GetServerInfo(withHeaders(t, "Bearer token-of-ana"), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)

	leave()
	require.Eventually(t, func() bool { return held() == 0 }, time.Minute, time.Millisecond)
	again, end := context.WithCancel(withHeaders(t, "Bearer token-of-ana"))
	defer end()
	_, err = c.Watch(again, &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return held() == 1 }, time.Minute, time.Millisecond)
}

func TestWorkersBeyondAQuotaAreRefused(t *testing.T) {
	hub := worker.New(worker.Options{Key: []byte("key")})
	defer hub.Close()
	limits, quotas := withQuotas(t, "tenant: {workers: 1}\n")
	c := startServer(t, newFakeEngine(), quotas, func(o *transport.Options) { o.Hub = hub })
	workers := graphdv1.NewWorkerServiceClient(c.conn)
	connect := func(ctx context.Context) grpc.BidiStreamingClient[graphdv1.ConnectRequest, graphdv1.ConnectResponse] {
		s, err := workers.Connect(ctx)
		require.NoError(t, err)
		return s
	}
	first, leave := context.WithCancel(t.Context())
	defer leave()
	connect(first)
	held := func() int64 { return limits.CountHeld(quota.Caller{Tenant: "default"}, quota.Workers) }
	require.Eventually(t, func() bool { return held() == 1 }, time.Minute, time.Millisecond)
	_, err := connect(t.Context()).Recv()
	requireQuota(t, err, "QUOTA_EXCEEDED", "tenant:default/workers", map[string]string{"limit": "workers", "most": "1", "of": "tenant"})
	leave()
	require.Eventually(t, func() bool { return held() == 0 }, time.Minute, time.Millisecond)
}

// Limits of what tenants hold are refused by the engine, with the same details.
func TestHoldingsBeyondAQuotaAreRefused(t *testing.T) {
	counted := newRefusalCounts()
	engine := newFakeEngine()
	c := startServer(t, engine, func(o *transport.Options) { o.RefusalMetrics = counted })
	for holding, text := range map[runtime.Holding]string{
		runtime.HoldingLiveRuns:      `the tenant "acme" has 7 runs that this server drives already, its limit (live_runs); nothing was stored`,
		runtime.HoldingQueuedRuns:    `the tenant "acme" has 7 queued runs already, its limit (queued_runs); nothing was stored`,
		runtime.HoldingOpenQuestions: `the tenant "acme" has 7 open questions already, its limit (open_questions); nothing was stored`,
		runtime.HoldingThreads:       `the tenant "acme" has 7 threads already, its limit (threads); nothing was stored`,
		runtime.HoldingGraphs:        `the tenant "acme" has 7 graphs already, its limit (graphs); nothing was stored`,
	} {
		engine.err = runtime.TenantLimitError("acme", holding, 7)
		_, err := c.CreateThread(t.Context(), &graphdv1.CreateThreadRequest{})
		name := string(holding)
		wait := requireQuota(t, err, "QUOTA_EXCEEDED", "tenant:acme/"+name, map[string]string{"limit": name, "most": "7", "of": "tenant"})
		require.Equal(t, time.Second, wait)
		require.Equal(t, text, status.Convert(err).Message())
		require.Equal(t, 1, counted.quota[name+" of tenant"])
	}
	engine.err = runtime.CallerLimitError("acme", runtime.HoldingLiveRuns, 7)
	_, err := c.CreateThread(t.Context(), &graphdv1.CreateThreadRequest{})
	requireQuota(t, err, "QUOTA_EXCEEDED", "tenant:acme/caller/live_runs", map[string]string{"limit": "live_runs", "most": "7", "of": "caller"})
	require.Equal(t, "the caller has 7 runs that this server drives already, its limit (live_runs); nothing was stored", status.Convert(err).Message())
	require.Equal(t, 1, counted.quota["live_runs of caller"])
	require.Equal(t, 6, counted.calls["QUOTA_EXCEEDED"])
}
