package quota

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Limiter admits calls, streams and workers within the limits of a policy, and
// counts what each tenant and caller has consumed. Its methods may be called at the
// same time. They read no clock: the caller says what time it is.
//
// It remembers at most MaxAccounts tenants and callers, and those that hold something
// besides. Of more, it forgets the ones that have been absent longest, so that their
// rates begin anew: a tenant with very many callers is still bound by its own rates.
type Limiter struct {
	policy atomic.Pointer[Policy]
	seed   maphash.Seed
	shards [shardCount]shard
}

// MaxAccounts is the number of tenants and callers that a Limiter remembers without
// need. They take up to 16 MiB.
const MaxAccounts = shardCount * shardAccounts

// New makes a Limiter in which nothing is consumed.
func New(p *Policy) *Limiter {
	l := &Limiter{seed: maphash.MakeSeed()}
	l.policy.Store(p)
	for i := range l.shards {
		l.shards[i].accounts = make(map[accountKey]*account)
	}
	return l
}

// SetPolicy changes the limits. What is consumed stays: a bucket keeps its tokens, and
// a count that is beyond its new limit takes in nothing until it is below.
func (l *Limiter) SetPolicy(p *Policy) { l.policy.Store(p) }

// Policy returns the limits that are in use.
func (l *Limiter) Policy() *Policy { return l.policy.Load() }

// TakeCall takes a token for a call from the caller and from its tenant. kind is Calls,
// Starts or Answers; a call of the latter two takes one of Calls, too. The error is a
// *ExceededError. A refused call has taken the tokens that it found before: a caller beyond
// its own rate takes none of its tenant's.
func (l *Limiter) TakeCall(now time.Time, c Caller, kind Limit) error {
	own, all := l.accountsOf(now, c)
	if limit, wait := own.takeTokens(now, kind); wait > 0 {
		return &ExceededError{Limit: limit, IsCaller: true, Tenant: c.Tenant, Rate: own.limits.rates[limit], RetryAfter: wait}
	}
	if limit, wait := all.takeTokens(now, kind); wait > 0 {
		return &ExceededError{Limit: limit, Tenant: c.Tenant, Rate: all.limits.rates[limit], RetryAfter: wait}
	}
	return nil
}

// FindWait returns the time until TakeCall is likely to succeed, 0 = now. It takes nothing.
func (l *Limiter) FindWait(now time.Time, c Caller, kind Limit) time.Duration {
	own, all := l.accountsOf(now, c)
	return max(
		findWait(now, own.buckets[Calls]), findWait(now, own.buckets[kind]),
		findWait(now, all.buckets[Calls]), findWait(now, all.buckets[kind]),
	)
}

// Hold is something that counts for a caller and its tenant until it is released. The
// zero value counts for none.
type Hold struct {
	caller, tenant *account
	limit          Limit
}

// Acquire counts a stream or a worker: limit is Streams or Workers. The error is an
// *ExceededError.
func (l *Limiter) Acquire(now time.Time, c Caller, limit Limit) (Hold, error) {
	own, all := l.accountsOf(now, c)
	byCaller, ok := own.account.addHeld(limit, own.limits.counts[limit])
	if !ok {
		return Hold{}, &ExceededError{Limit: limit, IsCaller: true, Tenant: c.Tenant, Most: own.limits.counts[limit]}
	}
	byTenant, ok := all.account.addHeld(limit, all.limits.counts[limit])
	if !ok {
		byCaller.removeHeld(limit)
		return Hold{}, &ExceededError{Limit: limit, Tenant: c.Tenant, Most: all.limits.counts[limit]}
	}
	return Hold{byCaller, byTenant, limit}, nil
}

// Release ends the hold. It is called once.
func (h Hold) Release() {
	if h.caller != nil {
		h.caller.removeHeld(h.limit)
		h.tenant.removeHeld(h.limit)
	}
}

// CountHeld returns how much a tenant holds, or, of a caller with a principal, the
// caller. limit is Streams or Workers.
func (l *Limiter) CountHeld(c Caller, limit Limit) int64 {
	key := accountKey{tenant: c.Tenant, principal: c.Principal, isCaller: c.Principal != ""}
	s := l.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[key]; a != nil {
		return a.held[limit]
	}
	return 0
}

// FindTenantLimit returns the value of a count for a tenant, or Unlimited.
func (l *Limiter) FindTenantLimit(now time.Time, tenant string, limit Limit) int64 {
	return l.openAccount(now, l.policy.Load(), Caller{Tenant: tenant}, false).limits.counts[limit]
}

// HasCallerLimit reports whether any caller has a limit of its runs. limit is LiveRuns.
func (l *Limiter) HasCallerLimit(limit Limit) bool { return l.policy.Load().HasCallerLimit(limit) }

// FindCallerLimit returns the value of a limit of runs for a principal in a tenant, or
// Unlimited. limit is LiveRuns.
func (l *Limiter) FindCallerLimit(now time.Time, tenant, principal string, limit Limit) int64 {
	p := l.policy.Load()
	if !p.HasCallerLimit(limit) {
		return Unlimited
	}
	key := accountKey{tenant: tenant, principal: principal, isCaller: true, isOfRuns: true}
	s := l.shardOf(key)
	t := s.findTerms(now, key, p, 0)
	if t == nil {
		limits := newLimitSet() // without rates
		limits.counts = p.CallerLimits(Caller{Tenant: tenant, Principal: principal}).counts
		t = s.changeTerms(now, key, &terms{policy: p, limits: limits})
	}
	return t.limits.counts[limit]
}

// Held is how much a tenant holds of one kind.
type Held struct {
	Tenant string
	Limit  Limit // Streams or Workers
	Count  int64
}

// ListHeld lists what tenants hold.
func (l *Limiter) ListHeld() (list []Held) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for key, a := range s.accounts {
			for _, limit := range []Limit{Streams, Workers} {
				if !key.isCaller && a.held[limit] > 0 {
					list = append(list, Held{key.tenant, limit, a.held[limit]})
				}
			}
		}
		s.mu.Unlock()
	}
	return list
}

// DropAbsent forgets the tenants and callers that hold nothing and whose rates have
// recovered, as if they had never called.
func (l *Limiter) DropAbsent(now time.Time) {
	for i := range l.shards {
		l.shards[i].dropAbsent(now)
	}
}

// CountAccounts returns how many tenants and callers are remembered.
func (l *Limiter) CountAccounts() int {
	n := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.accounts)
		s.mu.Unlock()
	}
	return n
}

// accountsOf returns the accounts of a caller and of its tenant, with their limits.
func (l *Limiter) accountsOf(now time.Time, c Caller) (own, all *terms) {
	p := l.policy.Load()
	return l.openAccount(now, p, c, true), l.openAccount(now, p, Caller{Tenant: c.Tenant}, false)
}

// openAccount returns the terms of a caller, or of its tenant, and makes the account if
// there is none.
func (l *Limiter) openAccount(now time.Time, p *Policy, c Caller, isCaller bool) *terms {
	key := accountKey{tenant: c.Tenant, principal: c.Principal, isCaller: isCaller}
	groups := uint64(0)
	if p.usesGroups && len(c.Groups) > 0 {
		groups = l.digestNames(c.Groups)
	}
	s := l.shardOf(key)
	if t := s.findTerms(now, key, p, groups); t != nil {
		return t
	}
	limits := p.TenantLimits(c.Tenant)
	if isCaller {
		limits = p.CallerLimits(c)
	}
	return s.changeTerms(now, key, &terms{policy: p, groups: groups, limits: limits})
}

func (l *Limiter) shardOf(key accountKey) *shard {
	return &l.shards[maphash.Comparable(l.seed, key)%shardCount]
}

// digestNames returns a digest that depends on a random seed. The names themselves are
// not kept: a caller may have many.
func (l *Limiter) digestNames(names []string) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, name := range names {
		_, _ = h.WriteString(name) // it never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
