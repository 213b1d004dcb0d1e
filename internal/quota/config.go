package quota

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// Bounds of a file.
const (
	MaxOverrides = 1000
	// MaxTenantPatterns bounds the patterns of all overrides together.
	MaxTenantPatterns = 1000
	// maxValue bounds every value.
	maxValue = 1 << 40
	// minRate is one event in about 17 minutes.
	minRate = 0.001
)

// Config is a file with limits:
//
//	tenant: {calls: {per_second: 500, burst: 1000}, streams: 1000, threads: 100000}
//	caller: {calls: {per_second: 50, burst: 100}, streams: 50}
//	overrides:
//	- tenants: [acme, "trial-*"]
//	  tenant: {streams: 100}
//	- groups: [robots]
//	  caller: {calls: {per_second: 200}}
//
// Of the overrides that name a tenant or a caller, the first that has a limit decides
// it. The values at the top decide the others. A limit that stands nowhere is none.
type Config struct {
	// Tenant has the limits of every tenant: of all its callers together.
	Tenant Values `yaml:"tenant"`
	// Caller has the limits of every principal in a tenant.
	Caller    Values     `yaml:"caller"`
	Overrides []Override `yaml:"overrides"`
}

// Values are the limits that a file gives. nil = the file leaves it to others.
type Values struct {
	Calls   *Rate  `yaml:"calls"`
	Starts  *Rate  `yaml:"starts"`
	Answers *Rate  `yaml:"answers"`
	Streams *int64 `yaml:"streams"`
	Workers *int64 `yaml:"workers"`

	LiveRuns *int64 `yaml:"live_runs"`

	// Those that follow are limits of tenants, not of callers.
	QueuedRuns    *int64 `yaml:"queued_runs"`
	OpenQuestions *int64 `yaml:"open_questions"`
	Threads       *int64 `yaml:"threads"`
	StateBytes    *int64 `yaml:"state_bytes"`
	Graphs        *int64 `yaml:"graphs"`
}

// Override has limits of some tenants or callers.
type Override struct {
	// Tenants are names and patterns, in which * stands for any text. Empty = all.
	Tenants []string `yaml:"tenants"`
	// Principals and Groups select callers by either. Both empty = all.
	Principals []string `yaml:"principals"`
	Groups     []string `yaml:"groups"`

	Tenant Values `yaml:"tenant"`
	Caller Values `yaml:"caller"`
}

// Parse reads a file. The error joins a *file.Error with the line of each problem.
func Parse(name string, text []byte) (*Policy, error) {
	var c Config
	if err := file.Decode(name, text, &c); err != nil {
		return nil, err
	}
	return newPolicy(&c), nil
}

// Problems lists what is wrong with the limits.
func (c *Config) Problems() []file.Problem {
	all := append(file.PrefixProblems(c.Tenant.findProblems(), "tenant"), file.PrefixProblems(c.Caller.findCallerProblems(), "caller")...)
	if n := len(c.Overrides); n > MaxOverrides {
		return append(all, file.Problem{
			Path: []any{"overrides"}, Is: fmt.Sprintf("has %d overrides", n), Want: fmt.Sprintf("at most %d", MaxOverrides),
		})
	}
	patterns := 0
	for i := range c.Overrides {
		o := &c.Overrides[i]
		all = append(all, file.PrefixProblems(o.findProblems(), "overrides", i)...)
		for _, name := range o.Tenants {
			if isPattern(name) {
				patterns++
			}
		}
	}
	if patterns > MaxTenantPatterns {
		all = append(all, file.Problem{
			Path: []any{"overrides"}, Is: fmt.Sprintf("has %d patterns of tenants", patterns), Want: fmt.Sprintf("at most %d", MaxTenantPatterns),
		})
	}
	return all
}

func (o *Override) findProblems() []file.Problem {
	var all []file.Problem
	for i, name := range o.Tenants {
		if p := checkTenantPattern(name); p != nil {
			all = append(all, file.PrefixProblems([]file.Problem{*p}, "tenants", i)...)
		}
	}
	for _, l := range []struct {
		field string
		names []string
	}{{"principals", o.Principals}, {"groups", o.Groups}} {
		for i, name := range l.names {
			if err := identity.CheckName(l.field, name); err != nil {
				all = append(all, file.Problem{
					Path: []any{l.field, i}, Is: "is not a name", Want: fmt.Sprintf("1 to %d bytes of visible characters", identity.MaxNameBytes),
				})
			}
		}
	}
	if o.selectsCallers() && o.Tenant != (Values{}) {
		all = append(all, file.Problem{
			Path: []any{"tenant"}, Is: "has limits of a tenant, and the override selects callers",
			Want: "the limits of tenants in an override without principals and groups",
		})
	}
	if o.Tenant == (Values{}) && o.Caller == (Values{}) {
		all = append(all, file.Problem{Is: "has no limit", Want: "a limit in tenant or in caller"})
	}
	if len(o.Groups) > 0 && o.Caller.LiveRuns != nil {
		all = append(all, file.Problem{
			Path: []any{"caller", LiveRuns.String()}, Is: "is given to groups, and a run knows the name of its caller alone",
			Want: "live_runs in an override with principals, or without principals and groups",
		})
	}
	all = append(all, file.PrefixProblems(o.Tenant.findProblems(), "tenant")...)
	return append(all, file.PrefixProblems(o.Caller.findCallerProblems(), "caller")...)
}

func (o *Override) selectsCallers() bool { return len(o.Principals)+len(o.Groups) > 0 }

func isPattern(name string) bool { return strings.ContainsAny(name, `*?[\`) }

func checkTenantPattern(name string) *file.Problem {
	const want = `the name of a tenant, or a pattern like "trial-*"`
	if identity.CheckName("tenants", name) != nil {
		return &file.Problem{Is: "is not a name", Want: want}
	}
	if _, err := path.Match(name, ""); err != nil {
		return &file.Problem{Is: "is not a pattern", Want: want + "; [ begins a class that ] ends"}
	}
	return nil
}

// rateOf returns the given value of a rate.
func (v *Values) rateOf(l Limit) *Rate {
	return [rateCount]*Rate{Calls: v.Calls, Starts: v.Starts, Answers: v.Answers}[l]
}

// countOf returns the given value of a count.
func (v *Values) countOf(l Limit) *int64 {
	return [limitCount]*int64{
		Streams: v.Streams, Workers: v.Workers, LiveRuns: v.LiveRuns, QueuedRuns: v.QueuedRuns, OpenQuestions: v.OpenQuestions,
		Threads: v.Threads, StateBytes: v.StateBytes, Graphs: v.Graphs,
	}[l]
}

func (v *Values) findProblems() []file.Problem {
	var all []file.Problem
	for _, l := range Limits() {
		if l.IsRate() {
			if r := v.rateOf(l); r != nil {
				all = append(all, file.PrefixProblems(r.findProblems(), l.String())...)
			}
		} else if n := v.countOf(l); n != nil && (*n < Unlimited || *n > maxValue) {
			all = append(all, file.Problem{
				Path: []any{l.String()}, Is: "is out of bounds", Want: fmt.Sprintf("0 to %d, or %d for no limit", int64(maxValue), Unlimited),
			})
		}
	}
	return all
}

// findCallerProblems lists what is wrong with the limits of a caller.
func (v *Values) findCallerProblems() []file.Problem {
	all := v.findProblems()
	for _, l := range Limits() {
		if l.IsOfTenants() && v.countOf(l) != nil {
			all = append(all, file.Problem{
				Path: []any{l.String()}, Is: "is a limit of tenants, and callers have none",
				Want: "calls, starts, answers, streams, workers or live_runs here, or the limit in tenant",
			})
		}
	}
	return all
}

func (r *Rate) findProblems() []file.Problem {
	var all []file.Problem
	if inBounds := r.PerSecond >= minRate && r.PerSecond <= maxValue; !inBounds && r.PerSecond != Unlimited { // NaN is out of bounds
		all = append(all, file.Problem{
			Path: []any{"per_second"}, Is: "is missing or out of bounds",
			Want: fmt.Sprintf("%g to %d, or %d for no limit", minRate, int64(maxValue), Unlimited),
		})
	}
	if r.Burst < 0 || int64(r.Burst) > maxValue {
		all = append(all, file.Problem{
			Path: []any{"burst"}, Is: "is out of bounds", Want: fmt.Sprintf("1 to %d, or no burst for that of one second", int64(maxValue)),
		})
	}
	return all
}

// fillBurst returns a rate with its default burst filled in.
func fillBurst(r Rate) Rate {
	if r.Burst == 0 && r.PerSecond > 0 {
		r.Burst = int(math.Ceil(r.PerSecond))
	}
	return r
}
