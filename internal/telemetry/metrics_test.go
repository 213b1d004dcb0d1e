package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/telemetry"
)

func scrapeMetrics(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	require.Equal(t, 200, rec.Code)
	return rec.Body.String()
}

func TestMetricsShowWhatTheEngineDid(t *testing.T) {
	m := telemetry.NewMetrics("v1.2.3", 0)
	m.RunStarted("refund")
	m.RunDriven("refund")
	m.RunDriven("refund")
	m.RunEnded("refund", "interrupted", 20*time.Millisecond)
	m.NodeEnded("refund", "analyze", telemetry.OutcomeDone, time.Millisecond)
	m.InterruptRaised("refund", "approval")
	m.InterruptResolved("refund", "answered")
	m.InterruptEnded("refund", "answered", 90*time.Second)
	m.FollowerOpened()
	m.FollowerOpened()
	m.FollowerClosed(true)
	m.FollowerClosed(false)
	m.ThreadsPoisoned(2)
	m.LiveBytes(1024)
	m.RunEvicted("refund")

	page := scrapeMetrics(t, m)
	for _, line := range []string{
		`graphd_build_info{version="v1.2.3"} 1`,
		`graphd_runs_started_total{graph="refund"} 1`,
		`graphd_runs_active{graph="refund"} 1`,
		`graphd_run_seconds_count{graph="refund",state="interrupted"} 1`,
		`graphd_run_seconds_sum{graph="refund",state="interrupted"} 0.02`,
		`graphd_node_attempt_seconds_count{graph="refund",node="analyze",outcome="done"} 1`,
		`graphd_interrupts_raised_total{graph="refund",reason="approval"} 1`,
		`graphd_interrupts_resolved_total{graph="refund",state="answered"} 1`,
		`graphd_interrupt_wait_seconds_bucket{graph="refund",outcome="answered",le="81"} 0`,
		`graphd_interrupt_wait_seconds_sum{graph="refund",outcome="answered"} 90`,
		"graphd_followers 0",
		"graphd_followers_slow_total 1",
		"graphd_threads_poisoned 2",
		"graphd_live_bytes 1024",
		`graphd_runs_put_off_total{graph="refund"} 1`,
		"go_goroutines ",
	} {
		require.Contains(t, page, line)
	}
}

func TestCommitResultFollowsTheStoresAnswer(t *testing.T) {
	for result, err := range map[string]error{
		"ok":          nil,
		"conflict":    fmt.Errorf("thread t1: %w", checkpoint.ErrConflict),
		"unavailable": fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, context.DeadlineExceeded),
		"error":       errors.New("disk full"),
	} {
		t.Run(result, func(t *testing.T) {
			m := telemetry.NewMetrics("test", 0)
			m.CommitEnded(time.Millisecond, err)
			require.Contains(t, scrapeMetrics(t, m), `graphd_commit_seconds_count{result="`+result+`"} 1`)
		})
	}
}

func TestTwoProcessesInOneTestDoNotMeet(t *testing.T) {
	first, second := telemetry.NewMetrics("a", 0), telemetry.NewMetrics("b", 0)
	first.RunStarted("g")
	require.Contains(t, scrapeMetrics(t, first), "graphd_runs_started_total")
	require.NotContains(t, scrapeMetrics(t, second), "graphd_runs_started_total")
}

func TestOthersRegisterBesideTheEngine(t *testing.T) {
	m := telemetry.NewMetrics("test", 0)
	calls := prometheus.NewCounter(prometheus.CounterOpts{Name: "grpc_server_handled_total", Help: "Calls."})
	require.NoError(t, m.Registry().Register(calls))
	calls.Inc()
	require.Contains(t, scrapeMetrics(t, m), "grpc_server_handled_total 1")
}

// fakeTasks has the numbers of a server without workers.
type fakeTasks struct{}

func (fakeTasks) WaitingTasks() (unserved, busy int) { return 3, 2 }
func (fakeTasks) WorkerLosses() uint64               { return 4 }
func (fakeTasks) KeptValues() (uint64, uint64)       { return 5, 6 }

// fakeTenants are tenants that hold something.
type fakeTenants []runtime.TenantHolding

func (f fakeTenants) ListTenantHoldings() []runtime.TenantHolding { return f }

// Tenants beyond the number of label values have no series.
func TestMetricsShowWhatTenantsHold(t *testing.T) {
	m := telemetry.NewMetrics("test", 2)
	m.WatchTenants(fakeTenants{
		{Tenant: "acme", Of: runtime.HoldingThreads, Held: 3, Most: 5},
		{Tenant: "acme", Of: runtime.HoldingLiveRuns, Held: 1, Most: 1},
		{Tenant: "b", Of: runtime.HoldingThreads, Held: 4, Most: 4},
		{Tenant: "c", Of: runtime.HoldingThreads, Held: 7, Most: 9},
	})
	for range 2 {
		page := scrapeMetrics(t, m)
		for _, line := range []string{
			`graphd_tenant_held{limit="threads",tenant="acme"} 3`, `graphd_tenant_limit{limit="threads",tenant="acme"} 5`,
			`graphd_tenant_held{limit="live_runs",tenant="acme"} 1`, `graphd_tenant_held{limit="threads",tenant="b"} 4`,
		} {
			require.Contains(t, page, line)
		}
		require.NotContains(t, page, `tenant="c"`)
	}
}

func TestMetricsShowWhatIsWrong(t *testing.T) {
	m := telemetry.NewMetrics("test", 0)
	require.Contains(t, scrapeMetrics(t, m), `graphd_runs_active{graph="other"} 0`, "also before the first run")
	m.WatchTasks(fakeTasks{})
	m.SetStoreRefusal("STORE_FULL", true)
	m.SetStoreRefusal("STORE_REPLACED", false)
	m.CountExceededQuota("streams", "tenant")
	m.CountRefusedCall("THREAD_BUSY")
	m.CountRefusedCall("THREAD_BUSY")
	m.CountRefusedHandshake("not_tls")
	page := scrapeMetrics(t, m)
	for _, line := range []string{
		`graphd_tls_handshakes_failed_total{reason="not_tls"} 1`,
		`graphd_store_refuses_changes{reason="STORE_FULL"} 1`,
		`graphd_store_refuses_changes{reason="STORE_REPLACED"} 0`,
		`graphd_calls_refused_total{reason="THREAD_BUSY"} 2`,
		`graphd_quota_refusals_total{limit="streams",of="tenant"} 1`,
		`graphd_tasks_waiting{reason="no_worker"} 3`,
		`graphd_tasks_waiting{reason="busy"} 2`,
		"graphd_deliveries_lost_total 4",
		"graphd_values_omitted_bytes_total 5",
		"graphd_tasks_resent_total 6",
	} {
		require.Contains(t, page, line)
	}
	m.SetStoreRefusal("STORE_FULL", false)
	require.Contains(t, scrapeMetrics(t, m), `graphd_store_refuses_changes{reason="STORE_FULL"} 0`)
}

// Graphs of the same name in two tenants have series of their own, within the same bound.
func TestGraphsOfTenantsAreCountedApart(t *testing.T) {
	m := telemetry.NewMetrics("test", 3)
	for _, name := range []string{"g", "acme@g", "acme@g", "zenith@g", "late@g"} {
		m.RunStarted(name)
		m.NodeEnded(name, "n", telemetry.OutcomeDone, time.Millisecond)
	}
	page := scrapeMetrics(t, m)
	for _, line := range []string{
		`graphd_runs_started_total{graph="g"} 1`, `graphd_runs_started_total{graph="acme@g"} 2`, `graphd_runs_started_total{graph="zenith@g"} 1`,
		`graphd_runs_started_total{graph="other"} 1`, `graphd_node_attempt_seconds_count{graph="acme@g",node="n",outcome="done"} 2`,
	} {
		require.Contains(t, page, line)
	}
	require.NotContains(t, page, "late")
}

// Clients choose names. However many there are, the size of the page is bounded.
func TestNamesThatClientsChooseAreBounded(t *testing.T) {
	m := telemetry.NewMetrics("test", 10)
	for i := range 1000 {
		name := fmt.Sprint("graph", i)
		m.RunStarted(name)
		m.RunDriven(name)
		m.NodeEnded(name, fmt.Sprint("node", i), telemetry.OutcomeDone, time.Millisecond)
		m.NodeEnded("graph0", fmt.Sprint("node", i), telemetry.OutcomeDone, time.Millisecond)
		m.InterruptRaised(name, fmt.Sprint("reason", i))
		m.InterruptResolved(name, "answered")
		m.InterruptEnded(name, "answered", time.Second)
		m.RunEnded(name, "failed", time.Second)
	}
	page := scrapeMetrics(t, m)
	require.Contains(t, page, `graphd_runs_started_total{graph="graph9"} 1`)
	require.Contains(t, page, `graphd_runs_started_total{graph="other"} 990`)
	require.Contains(t, page, `graphd_runs_active{graph="other"} 0`)
	require.Contains(t, page, `graphd_node_attempt_seconds_count{graph="other",node="other",outcome="done"} 1989`)
	require.Contains(t, page, `graphd_interrupts_raised_total{graph="other",reason="other"} 990`)
	require.NotContains(t, page, "graph10")
}
