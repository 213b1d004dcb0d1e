package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/bench/credential"
	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

// The contestants of the part security: the same graphd, called in other ways.
const (
	plainText = "plain text"
	withJWT   = "plain text, JWT"
	withKeys  = "plain text, API key"
	secured   = "mTLS and JWT"
	// unknown has no token, and is refused where the others are served.
	unknown = "unknown"
)

// securedStores are those of the parts security and noise.
func securedStores() []string { return []string{stand.RedisEverysec, stand.Memory} }

// nameStores returns the names of the stores that lines are about: memory only where it
// was tried with a workload.
func (b *bench) nameStores(tried string) []storeName {
	all := []storeName{{stand.RedisEverysec, "Redis"}}
	for k := range b.series {
		if k.Workload == tried && k.Store == stand.Memory {
			return append(all, storeName{stand.Memory, "memory"})
		}
	}
	return all
}

type storeName struct{ store, name string }

// keyFile is the file of API keys.
const keyFile = "keys.yaml"

// makeCredentials makes what the servers of security and noise need.
func (b *bench) makeCredentials(ctx context.Context) error {
	if !b.chosen("security") && !b.chosen("noise") {
		return nil
	}
	var err error
	if b.credentialDir, err = os.MkdirTemp("", "graphd-bench-credentials-"); err != nil {
		return err
	}
	if b.credentials, err = credential.MakeSet(ctx, b.program.Graphd, b.credentialDir); err != nil {
		return err
	}
	b.keys = make(map[string]string)
	for _, tenant := range []string{quiet, noisy} {
		if b.keys[tenant], err = b.credentials.MakeKey(ctx, keyFile, credential.Caller{Name: tenant, Tenant: tenant}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) removeCredentials() {
	if b.credentialDir != "" {
		_ = os.RemoveAll(b.credentialDir)
	}
}

// startTwin starts a further server until the end of the round. dial are the ways to call
// it, each of a contestant. The graphs of the server are those of the default tenant;
// callers with the tokens bring them to their own tenants.
func (r *round) startTwin(
	options []string, ready []grpc.DialOption, dial map[string][]grpc.DialOption, tokens ...string,
) (*process.Graphd, map[string]workload.Target, error) {
	server, err := r.StartTwin(r.context, options, ready...)
	if err != nil {
		return nil, nil, err
	}
	r.after = append(r.after, server.Stop)
	for _, token := range tokens {
		if err := r.credentials.PutGraphs(r.context, server.Address(), token, r.program.Graphs); err != nil {
			return nil, nil, err
		}
	}
	targets := make(map[string]workload.Target)
	for who, how := range dial {
		client, err := wire.Dial(server.Address(), r.connections, how...)
		if err != nil {
			return nil, nil, err
		}
		r.after = append(r.after, func() { _ = client.Close() })
		targets[who] = workload.Graphd(client)
	}
	return server, targets, nil
}

// securedTarget is a server, called in one of the ways that are compared.
type securedTarget struct {
	workload.Target

	server *process.Graphd
}

// load is workload.Load, with the processor time of the server.
func (t securedTarget) load(ctx context.Context, clients int, long time.Duration, w repeated) (workload.Sample, error) {
	before, err := t.server.ProcessorTime(ctx)
	if err != nil {
		return workload.Sample{}, err
	}
	began := time.Now()
	s, err := workload.Load(ctx, clients, long, w.counts, w.one(t.Target))
	if err != nil {
		return s, err
	}
	operations := s.Rate * time.Since(began).Seconds()
	after, err := t.server.ProcessorTime(ctx)
	s.Processor = (after - before).Seconds() / operations
	return s, err
}

// startSecured starts three servers that differ in nothing but what they want of callers.
func (r *round) startSecured() (map[string]securedTarget, error) {
	all := make(map[string]securedTarget)
	certificate, token := r.credentials.ShowCertificate(), credential.SendToken(r.credentials.Token)
	for _, twin := range []struct {
		options []string
		ready   []grpc.DialOption
		dial    map[string][]grpc.DialOption
	}{
		{nil, nil, map[string][]grpc.DialOption{plainText: nil}},
		{
			slices.Concat(r.credentials.TokenOptions(), r.credentials.KeyOptions(keyFile)), nil,
			map[string][]grpc.DialOption{withJWT: {token}, withKeys: {credential.SendToken(r.keys[quiet])}, unknown: nil},
		},
		{
			slices.Concat(r.credentials.TokenOptions(), r.credentials.TLSOptions()),
			[]grpc.DialOption{certificate},
			map[string][]grpc.DialOption{secured: {certificate, token}, unknown: {certificate}},
		},
	} {
		server, targets, err := r.startTwin(twin.options, twin.ready, twin.dial)
		if err != nil {
			return nil, err
		}
		if target, ok := targets[unknown]; ok {
			if err := workload.W1(target)(r.context, 0, &workload.Times{}); status.Code(err) != codes.Unauthenticated {
				return nil, fmt.Errorf("a call without a token is not refused: %w", cmp.Or(err, errServed))
			}
		}
		delete(targets, unknown)
		for who, target := range targets {
			all[who] = securedTarget{target, server}
		}
	}
	for who, target := range all {
		if err := r.warmUp(r.context, target.Target); err != nil {
			return nil, fmt.Errorf("%s: %w", who, err)
		}
	}
	return all, nil
}

var errServed = errors.New("it was served")

// repeated is a workload that clients repeat.
type repeated struct {
	name   string
	counts int // of an operation
	one    func(workload.Target) workload.One
}

func (r *round) repeated() []repeated {
	return []repeated{
		{"W1", workload.ChainLength, workload.W1},
		{"W2", 1, func(t workload.Target) workload.One { return workload.W2(t, r.names) }},
	}
}

// security does W1 and W2 with and without it. The servers start with the first cell, so
// that the parts before are not disturbed.
func security(r *round) [][]measure.Cell {
	if !r.wide() || !slices.Contains(securedStores(), r.Setting) {
		return nil
	}
	start := sync.OnceValues(r.startSecured)
	var groups [][]measure.Cell
	for _, w := range r.repeated() {
		for _, clients := range []int{1, 64} {
			var group []measure.Cell
			for _, who := range []string{plainText, withJWT, withKeys, secured} {
				group = append(group, measure.Cell{Key: r.key(w.name+securityWorkload, clients).As(who), Take: func(ctx context.Context) (workload.Sample, error) {
					targets, err := start()
					if err != nil {
						return workload.Sample{}, err
					}
					return targets[who].load(ctx, clients, r.long, w)
				}})
			}
			groups = append(groups, group)
		}
	}
	return groups
}

// securityWorkload marks the workloads of the part security.
const securityWorkload = ", security"

// securityCosts are the goals of security: at most a tenth on open connections.
func securityCosts(b *bench) []report.Line {
	var all []report.Line
	for _, c := range b.nameStores("W1" + securityWorkload) {
		for _, w := range []string{"W1", "W2"} {
			for _, clients := range []int{1, 64} {
				of := at(c.store, w+securityWorkload, clients).As(secured)
				plain, count := of.As(plainText), "64 clients"
				if clients == 1 {
					count = "1 client"
				}
				all = append(all,
					b.atLeast(fmt.Sprintf("%s with mTLS and JWT, %s, %s", w, count, c.name), plainText, of, plain, 0.9),
					b.slower("… processor time of the server", plainText, of, plain, 1.1, processor),
					b.slower("… p50", plainText, of, plain, 1.1, p50),
					b.slower("… p99", plainText, of, plain, 1.1, p99),
				)
			}
		}
	}
	return all
}

func processor(s workload.Sample) float64 { return s.Processor }

func p50(s workload.Sample) float64 { return s.P50 }

func p99(s workload.Sample) float64 { return s.P99 }

// slower is a line about the ratio of two times.
func (b *bench) slower(title, against string, of, to measure.Key, bound float64, number func(workload.Sample) float64) report.Line {
	l := report.Line{Title: title, Against: against, Ratio: b.series.Compare(of, to, number), Bound: bound, AtMost: true}
	if l.Ratio.Rounds == 0 {
		l.Absent = "not measured"
	}
	return l
}
