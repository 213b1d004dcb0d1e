package quota_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/quota"
)

func parsePolicy(tb testing.TB, text string) *quota.Policy {
	tb.Helper()
	p, err := quota.Parse("quotas.yaml", []byte(text))
	require.NoError(tb, err)
	return p
}

const manyRules = `
tenant: {calls: {per_second: 500, burst: 1000}, streams: 1000}
caller: {calls: {per_second: 50}, streams: 50, workers: 2}
overrides:
- tenants: [acme, "trial-*"]
  tenant: {streams: 100}
- tenants: [trial-vip]
  tenant: {streams: 7, workers: 0}
  caller: {answers: {per_second: 0.5}}
- groups: [robots]
  principals: [importer]
  caller: {calls: {per_second: -1}, streams: 1}
- tenants: [acme]
  principals: [importer]
  caller: {streams: 99, workers: -1}
`

func TestLimitsOfTenants(t *testing.T) {
	p := parsePolicy(t, manyRules)
	for tenant, want := range map[string]struct{ streams, workers int64 }{
		"acme":      {100, quota.Unlimited},
		"trial-1":   {100, quota.Unlimited},
		"trial-vip": {100, 0}, // the first override that has the limit decides
		"trial":     {1000, quota.Unlimited},
		"Acme":      {1000, quota.Unlimited},
		"":          {1000, quota.Unlimited},
	} {
		limits := p.TenantLimits(tenant)
		require.Equal(t, want.streams, limits.Count(quota.Streams), tenant)
		require.Equal(t, want.workers, limits.Count(quota.Workers), tenant)
		require.Equal(t, quota.Rate{PerSecond: 500, Burst: 1000}, limits.Rate(quota.Calls), tenant)
		require.Equal(t, quota.Unlimited, int(limits.Rate(quota.Starts).PerSecond), tenant)
	}
}

// Limits of what tenants hold come from the same layers as the others, and tenants
// without one have none.
func TestLimitsOfWhatTenantsHold(t *testing.T) {
	p := parsePolicy(t, `
tenant: {threads: 1000, state_bytes: 65536, open_questions: 50}
overrides:
- tenants: [acme]
  tenant: {threads: 5, live_runs: 2, queued_runs: 0, open_questions: -1}
- tenants: ["a*"]
  tenant: {graphs: 3, threads: 7}
`)
	for tenant, want := range map[string]map[quota.Limit]int64{
		"acme": {
			quota.Threads: 5, quota.LiveRuns: 2, quota.QueuedRuns: 0, quota.OpenQuestions: quota.Unlimited, quota.StateBytes: 65536, quota.Graphs: 3,
		},
		"ann": {
			quota.Threads: 7, quota.LiveRuns: quota.Unlimited, quota.QueuedRuns: quota.Unlimited, quota.OpenQuestions: 50,
			quota.StateBytes: 65536, quota.Graphs: 3,
		},
		"default": {
			quota.Threads: 1000, quota.LiveRuns: quota.Unlimited, quota.QueuedRuns: quota.Unlimited, quota.OpenQuestions: 50,
			quota.StateBytes: 65536, quota.Graphs: quota.Unlimited,
		},
	} {
		l := quota.New(p)
		for limit, value := range want {
			require.Equal(t, limit != quota.LiveRuns, limit.IsOfTenants(), limit)
			require.Equal(t, value, l.FindTenantLimit(time.Unix(1e9, 0), tenant, limit), "%s of %s", limit, tenant)
		}
	}
}

func TestLimitsOfCallers(t *testing.T) {
	p := parsePolicy(t, manyRules)
	ordinary, none := quota.Rate{PerSecond: 50, Burst: 50}, quota.Rate{PerSecond: quota.Unlimited}
	for name, c := range map[string]struct {
		caller           quota.Caller
		calls, answers   quota.Rate
		streams, workers int64
	}{
		"ordinary":           {quota.Caller{Tenant: "acme", Principal: "alice"}, ordinary, none, 50, 2},
		"unknown":            {quota.Caller{}, ordinary, none, 50, 2},
		"by group":           {quota.Caller{Tenant: "a", Principal: "r", Groups: []string{"x", "robots"}}, none, none, 1, 2},
		"by name":            {quota.Caller{Tenant: "a", Principal: "importer"}, none, none, 1, 2},
		"by name and tenant": {quota.Caller{Tenant: "acme", Principal: "importer"}, none, none, 1, quota.Unlimited},
		"group is no name":   {quota.Caller{Tenant: "a", Principal: "robots"}, ordinary, none, 50, 2},
		"by tenant":          {quota.Caller{Tenant: "trial-vip", Principal: "alice"}, ordinary, quota.Rate{PerSecond: 0.5, Burst: 1}, 50, 2},
	} {
		limits := p.CallerLimits(c.caller)
		require.Equal(t, c.calls, limits.Rate(quota.Calls), name)
		require.Equal(t, c.answers, limits.Rate(quota.Answers), name)
		require.Equal(t, c.streams, limits.Count(quota.Streams), name)
		require.Equal(t, c.workers, limits.Count(quota.Workers), name)
	}
}

// Limits of the runs of callers come from the same layers as the others, but for groups.
func TestLiveRunsOfCallers(t *testing.T) {
	l := quota.New(parsePolicy(t, `
tenant: {live_runs: 50}
caller: {live_runs: 5}
overrides:
- groups: [robots]
  caller: {streams: 3}
- principals: [importer]
  caller: {live_runs: -1}
- tenants: [acme]
  principals: [ana, importer]
  caller: {live_runs: 2}
- tenants: ["a*"]
  caller: {live_runs: 7}
`))
	now := time.Unix(1e9, 0)
	require.True(t, l.HasCallerLimit(quota.LiveRuns))
	require.False(t, l.HasCallerLimit(quota.Streams))
	for range 2 { // the second time they are remembered
		for of, want := range map[[2]string]int64{
			{"acme", "ana"}: 2, {"acme", "ben"}: 7, {"acme", "importer"}: quota.Unlimited, {"acme", ""}: 7, {"b", "ana"}: 5, {"default", ""}: 5,
		} {
			require.Equal(t, want, l.FindCallerLimit(now, of[0], of[1], quota.LiveRuns), "%v", of)
			require.EqualValues(t, 50, l.FindTenantLimit(now, of[0], quota.LiveRuns))
		}
	}
	robot := quota.Caller{Tenant: "acme", Principal: "ana", Groups: []string{"robots"}}
	for range 3 {
		_, err := l.Acquire(now, robot, quota.Streams)
		require.NoError(t, err)
		require.EqualValues(t, 2, l.FindCallerLimit(now, "acme", "ana", quota.LiveRuns))
	}
	_, err := l.Acquire(now, robot, quota.Streams)
	require.Error(t, err, "both limits of the caller hold")
	require.EqualValues(t, 3, l.CountHeld(robot, quota.Streams))

	l.SetPolicy(parsePolicy(t, "caller: {streams: 9}\n"))
	require.False(t, l.HasCallerLimit(quota.LiveRuns))
	require.EqualValues(t, quota.Unlimited, l.FindCallerLimit(now, "acme", "ana", quota.LiveRuns))
	l.SetPolicy(parsePolicy(t, "overrides:\n- tenants: [acme]\n  caller: {live_runs: 1}\n"))
	require.EqualValues(t, 1, l.FindCallerLimit(now, "acme", "ana", quota.LiveRuns))
	require.EqualValues(t, quota.Unlimited, l.FindCallerLimit(now, "b", "ana", quota.LiveRuns))
}

func TestWrongLimitsAreRefusedWithTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown limit":     {"tenant:\n  call: 1\n", "quotas.yaml:2: call is an unknown field"},
		"unknown field":     {"limits: {}\n", "quotas.yaml:1: limits is an unknown field: want one of tenant, caller, overrides"},
		"wrong type":        {"caller:\n  streams: many\n", "quotas.yaml:2: caller.streams has the wrong type: want a whole number"},
		"a count as a rate": {"tenant: {streams: {per_second: 1}}\n", "quotas.yaml:1: a value has the wrong type"},
		"given twice":       {"tenant: {streams: 1, streams: 2}\n", "already defined"},
		"no rate":           {"tenant: {calls: {burst: 9}}\n", "quotas.yaml:1: tenant.calls.per_second is missing or out of bounds: want 0.001 to 1099511627776, or -1 for no limit"},
		"rate of 0":         {"tenant: {calls: {per_second: 0}}\n", "tenant.calls.per_second is missing or out of bounds"},
		"rate of NaN":       {"tenant: {calls: {per_second: .nan}}\n", "tenant.calls.per_second is missing or out of bounds"},
		"infinite rate":     {"tenant: {calls: {per_second: .inf}}\n", "tenant.calls.per_second is missing or out of bounds"},
		"negative rate":     {"tenant: {calls: {per_second: -2}}\n", "tenant.calls.per_second is missing or out of bounds"},
		"negative burst":    {"caller:\n  calls:\n    per_second: 1\n    burst: -1\n", "quotas.yaml:4: caller.calls.burst is out of bounds: want 1 to"},
		"negative count":    {"caller:\n  workers: -2\n", "quotas.yaml:2: caller.workers is out of bounds: want 0 to 1099511627776, or -1 for no limit"},
		"huge state":        {"tenant:\n  threads: 1\n  state_bytes: 1099511627777\n", "quotas.yaml:3: tenant.state_bytes is out of bounds"},
		"negative graphs":   {"overrides:\n- tenants: [a]\n  tenant:\n    graphs: -3\n", "quotas.yaml:4: overrides[0].tenant.graphs is out of bounds"},
		"questions as a rate": {
			"tenant: {open_questions: {per_second: 1}}\n", "quotas.yaml:1: a value has the wrong type",
		},
		"queued runs of a caller": {
			"caller:\n  streams: 1\n  queued_runs: 1\n",
			"quotas.yaml:3: caller.queued_runs is a limit of tenants, and callers have none: " +
				"want calls, starts, answers, streams, workers or live_runs here",
		},
		"runs of a group": {
			"overrides:\n- groups: [a]\n  principals: [b]\n  caller:\n    live_runs: 5\n",
			"quotas.yaml:5: overrides[0].caller.live_runs is given to groups, and a run knows the name of its caller alone: " +
				"want live_runs in an override with principals, or without principals and groups",
		},
		"negative runs of a caller": {"caller:\n  live_runs: -2\n", "quotas.yaml:2: caller.live_runs is out of bounds"},
		"threads of a group": {
			"overrides:\n- groups: [a]\n  caller: {threads: 5}\n", "quotas.yaml:3: overrides[0].caller.threads is a limit of tenants",
		},
		"huge count": {"caller: {streams: 1099511627777}\n", "caller.streams is out of bounds"},
		"no limit":   {"overrides:\n- tenants: [a]\n", "quotas.yaml:2: overrides[0] has no limit: want a limit in tenant or in caller"},
		"tenant of callers": {
			"overrides:\n- groups: [a]\n  tenant: {streams: 1}\n",
			"quotas.yaml:3: overrides[0].tenant has limits of a tenant, and the override selects callers",
		},
		"empty tenant":    {"overrides:\n- tenants: [a, \"\"]\n  tenant: {streams: 1}\n", "quotas.yaml:2: overrides[0].tenants[1] is not a name"},
		"broken pattern":  {"overrides:\n- tenants: [\"[\"]\n  tenant: {streams: 1}\n", "overrides[0].tenants[0] is not a pattern"},
		"wrong principal": {"overrides:\n- principals: [\"a\\nb\"]\n  caller: {streams: 1}\n", "overrides[0].principals[0] is not a name"},
		"wrong group":     {"overrides:\n- groups: [\"\"]\n  caller: {streams: 1}\n", "overrides[0].groups[0] is not a name"},
		"two documents":   {"tenant: {streams: 1}\n---\ntenant: {}\n", "a second document"},
		"many overrides":  {"overrides:\n" + strings.Repeat("- caller: {streams: 1}\n", quota.MaxOverrides+1), "overrides has 1001 overrides: want at most 1000"},
		"many patterns": {
			"overrides:\n- tenants: [" + strings.Repeat("a*, ", quota.MaxTenantPatterns+1) + "]\n  caller: {streams: 1}\n",
			"overrides has 1001 patterns of tenants: want at most 1000",
		},
	} {
		_, err := quota.Parse("quotas.yaml", []byte(c.text))
		require.ErrorContains(t, err, c.want, name)
		_, ok := errors.AsType[*file.Error](err)
		require.True(t, ok, name)
	}
}

func TestNamesOfLimits(t *testing.T) {
	for _, l := range quota.Limits() {
		value := "3"
		if l.IsRate() {
			value = "{per_second: 3}"
		}
		p := parsePolicy(t, fmt.Sprintf("tenant: {%s: %s}\n", l, value))
		limits := p.TenantLimits("a")
		for _, other := range quota.Limits() {
			switch want := other == l; {
			case other.IsRate():
				require.Equal(t, want, limits.Rate(other) == quota.Rate{PerSecond: 3, Burst: 3}, "%s and %s", l, other)
			default:
				require.Equal(t, want, limits.Count(other) == 3, "%s and %s", l, other)
			}
		}
	}
}

// FuzzParse looks for files that are accepted and give limits that can't be.
func FuzzParse(f *testing.F) {
	f.Add(manyRules, "acme", "importer", "robots")
	f.Add("tenant: {calls: {per_second: .inf}}", "a", "b", "c")
	f.Add("overrides: [{tenants: ['[^a]*'], caller: {streams: -1}}]", "b", "", "")
	f.Fuzz(func(t *testing.T, text, tenant, principal, group string) {
		p, err := quota.Parse("f", []byte(text))
		if err != nil {
			_, ok := errors.AsType[*file.Error](err)
			require.True(t, ok, "%v", err)
			return
		}
		of := quota.Caller{Tenant: tenant, Principal: principal, Groups: []string{group}}
		for _, set := range []quota.LimitSet{p.TenantLimits(tenant), p.CallerLimits(of)} {
			for _, l := range quota.Limits() {
				if !l.IsRate() {
					require.GreaterOrEqual(t, set.Count(l), int64(quota.Unlimited))
				} else if r := set.Rate(l); r.PerSecond != quota.Unlimited {
					require.Positive(t, r.PerSecond)
					require.Positive(t, r.Burst)
				}
			}
		}
	})
}
