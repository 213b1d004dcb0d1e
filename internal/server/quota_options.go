package server

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/telemetry"
)

// QuotaOptions name the file with the limits of tenants and callers. Without it they
// have none.
type QuotaOptions struct {
	Quotas string
}

// RegisterFlags registers the option.
func (o *QuotaOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Quotas, "quotas", "",
		"YAML file with the limits of tenants and callers: calls per second, runs, threads, open questions and others; read again when it changes")
}

const (
	quotaFileInterval = 5 * time.Second // how often the file is read again
	quotaDropInterval = time.Minute     // how often absent callers are forgotten
)

// quotaFile keeps tenants and callers within the limits of a file.
type quotaFile struct {
	*quota.Limiter

	file    *file.Reloaded[*quota.Policy]
	changed func() // called when there are new limits; nil = nothing is called
}

// FindTenantLimit returns a limit of what a tenant holds, or runtime.NoTenantLimit. It
// implements runtime.TenantLimits.
func (q *quotaFile) FindTenantLimit(tenant string, of runtime.Holding) int64 {
	limit, ok := limitOfHolding(of)
	if !ok {
		return runtime.NoTenantLimit
	}
	return q.Limiter.FindTenantLimit(time.Now(), tenant, limit)
}

// HasCallerLimits reports whether any caller has a limit of the runs that it has started. It
// is one of runtime.CallerLimits.
func (q *quotaFile) HasCallerLimits(of runtime.Holding) bool {
	limit, ok := limitOfHolding(of)
	return ok && q.HasCallerLimit(limit)
}

// FindCallerLimit returns a limit of what a caller holds in its tenant, or
// runtime.NoTenantLimit. It is one of runtime.CallerLimits.
func (q *quotaFile) FindCallerLimit(tenant, caller string, of runtime.Holding) int64 {
	limit, ok := limitOfHolding(of)
	if !ok {
		return runtime.NoTenantLimit
	}
	return q.Limiter.FindCallerLimit(time.Now(), tenant, caller, limit)
}

// callerLimits returns the limits for the engine, nil without a file.
func (q *quotaFile) callerLimits() runtime.CallerLimits {
	if q == nil {
		return nil
	}
	return q
}

// tenantLimits returns the limits for the engine, nil without a file.
func (q *quotaFile) tenantLimits() runtime.TenantLimits {
	if q == nil {
		return nil
	}
	return q
}

// connectEngine tells the engine of new limits, and the metrics of what it has counted.
func (q *quotaFile) connectEngine(e *engine.Engine, metrics *telemetry.Metrics) {
	q.changed = e.RecheckTenants
	metrics.WatchTenants(tenantUse{q, e})
}

// tenantUse lists what tenants hold of what they have a limit of.
type tenantUse struct {
	quotas *quotaFile
	engine telemetry.Tenants
}

// ListTenantHoldings adds the streams and workers to what the engine has counted.
func (u tenantUse) ListTenantHoldings() []runtime.TenantHolding {
	list, now := u.engine.ListTenantHoldings(), time.Now()
	for _, h := range u.quotas.ListHeld() {
		if most := u.quotas.Limiter.FindTenantLimit(now, h.Tenant, h.Limit); most >= 0 {
			list = append(list, runtime.TenantHolding{Tenant: h.Tenant, Of: runtime.Holding(h.Limit.String()), Held: h.Count, Most: most})
		}
	}
	return list
}

// limitOfHolding returns the limit in the file for what the engine counts.
func limitOfHolding(of runtime.Holding) (l quota.Limit, ok bool) {
	switch of {
	case runtime.HoldingLiveRuns:
		return quota.LiveRuns, true
	case runtime.HoldingQueuedRuns:
		return quota.QueuedRuns, true
	case runtime.HoldingOpenQuestions:
		return quota.OpenQuestions, true
	case runtime.HoldingThreads:
		return quota.Threads, true
	case runtime.HoldingStateBytes:
		return quota.StateBytes, true
	case runtime.HoldingGraphs:
		return quota.Graphs, true
	}
	return 0, false
}

// openQuotas reads the file with the limits, nil without one. The error is an
// *exit.UsageError.
func (o *QuotaOptions) openQuotas(log *zap.Logger) (*quotaFile, error) {
	if o.Quotas == "" {
		return nil, nil
	}
	parse := func(text []byte) (*quota.Policy, error) { return quota.Parse(o.Quotas, text) }
	report := func(err error) { log.Error("the limits of tenants can't be renewed", zap.Error(err)) }
	read, err := file.Load(o.Quotas, parse, report)
	if err != nil {
		return nil, exit.Usagef("--quotas: %v", err).WithHint("correct the file; docs/limits.md describes it")
	}
	read.ReportChanges(func() { log.Info("the limits of tenants have changed and are in use", zap.String("file", o.Quotas)) })
	return &quotaFile{Limiter: quota.New(read.Value()), file: read}, nil
}

// followFile takes up new limits and forgets absent callers until ctx ends.
func (q *quotaFile) followFile(ctx context.Context) {
	reread, drop := time.NewTicker(quotaFileInterval), time.NewTicker(quotaDropInterval)
	defer reread.Stop()
	defer drop.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reread.C:
			q.file.CheckFile()
			if p := q.file.Value(); p != q.Policy() {
				q.SetPolicy(p)
				if q.changed != nil {
					q.changed()
				}
			}
		case now := <-drop.C:
			q.DropAbsent(now)
		}
	}
}
