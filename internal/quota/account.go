package quota

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	shardCount    = 64
	shardAccounts = 256 // that a shard remembers without need
	// evictionSample is the number of accounts among which the one to forget is chosen.
	evictionSample = 16
	// minWait is the shortest wait that a refused caller is told.
	minWait = time.Millisecond
)

// shard has the accounts whose keys have one digest, so that a busy tenant locks out few
// others, and for no longer than a look into a map.
type shard struct {
	mu       sync.Mutex
	accounts map[accountKey]*account
}

type accountKey struct {
	tenant, principal string
	isCaller          bool // not the tenant itself
	isOfRuns          bool // the limits of runs of a caller, which do not know its groups
}

// account is what a tenant or a caller has consumed. The lock of its shard guards it.
type account struct {
	shard *shard
	key   accountKey
	seen  time.Time // when it was used last
	held  [heldCount]int64
	terms *terms // not nil
}

// terms are the limits of an account under one policy, with its buckets. Only the
// tokens in the buckets change.
type terms struct {
	account *account
	policy  *Policy
	groups  uint64 // digest of the caller's groups, if the policy uses them
	limits  LimitSet
	buckets [rateCount]*rate.Limiter // nil = no limit
}

// findTerms returns the terms of an account, nil when there are none for this policy.
func (s *shard) findTerms(now time.Time, key accountKey, p *Policy, groups uint64) *terms {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[key]
	if a == nil || a.terms.policy != p || a.terms.groups != groups {
		return nil
	}
	a.seen = now
	return a.terms
}

// changeTerms gives an account new terms, which keep its tokens.
func (s *shard) changeTerms(now time.Time, key accountKey, t *terms) *terms {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[key]
	if a == nil {
		if len(s.accounts) >= shardAccounts {
			s.evictAccount()
		}
		// The names may be parts of a long token.
		key.tenant, key.principal = strings.Clone(key.tenant), strings.Clone(key.principal)
		a = &account{shard: s, key: key, terms: &terms{}}
		s.accounts[key] = a
	}
	t.account = a
	t.takeBuckets(now, a.terms)
	a.seen, a.terms = now, t
	return t
}

// takeBuckets takes over the buckets of earlier terms, at the present rates.
func (t *terms) takeBuckets(now time.Time, before *terms) {
	for i, r := range t.limits.rates {
		switch bucket := before.buckets[i]; {
		case r.PerSecond == Unlimited:
		case bucket == nil:
			t.buckets[i] = rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
		default:
			bucket.SetLimitAt(now, rate.Limit(r.PerSecond))
			bucket.SetBurstAt(now, r.Burst)
			t.buckets[i] = bucket
		}
	}
}

// takeTokens takes one token of Calls and one of the kind. wait is 0, or the time until
// the limit that has none will have one.
func (t *terms) takeTokens(now time.Time, kind Limit) (limit Limit, wait time.Duration) {
	if wait = takeToken(now, t.buckets[Calls]); wait > 0 || kind == Calls {
		return Calls, wait
	}
	return kind, takeToken(now, t.buckets[kind])
}

func takeToken(now time.Time, bucket *rate.Limiter) (wait time.Duration) {
	if bucket == nil || bucket.AllowN(now, 1) {
		return 0
	}
	return max(findWait(now, bucket), minWait)
}

// findWait returns the time until a bucket has a token, 0 when it has one.
func findWait(now time.Time, bucket *rate.Limiter) time.Duration {
	if bucket == nil {
		return 0
	}
	missing := 1 - bucket.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing/float64(bucket.Limit())*float64(time.Second)), minWait)
}

// addHeld counts one more, unless there are most already. It returns the account with
// the count: this one, or the one that has taken its place since it was forgotten.
func (a *account) addHeld(limit Limit, most int64) (_ *account, ok bool) {
	s := a.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.accounts[a.key]; current != nil {
		a = current
	}
	if most != Unlimited && a.held[limit] >= most {
		return a, false
	}
	s.accounts[a.key] = a
	a.held[limit]++
	return a, true
}

func (a *account) removeHeld(limit Limit) {
	a.shard.mu.Lock()
	defer a.shard.mu.Unlock()
	a.held[limit]--
}

// evictAccount forgets the account of a sample that was absent longest, except those
// that hold something.
func (s *shard) evictAccount() {
	var oldest *account
	looked := 0
	for _, a := range s.accounts { // in no order
		if looked++; looked > evictionSample && oldest != nil {
			break
		}
		if !a.isHolding() && (oldest == nil || a.seen.Before(oldest.seen)) {
			oldest = a
		}
	}
	if oldest != nil {
		delete(s.accounts, oldest.key)
	}
}

func (s *shard) dropAbsent(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, a := range s.accounts {
		if !a.isHolding() && a.terms.isFull(now) {
			delete(s.accounts, key)
		}
	}
}

func (a *account) isHolding() bool { return a.held != [heldCount]int64{} }

// isFull reports whether all buckets have all their tokens.
func (t *terms) isFull(now time.Time) bool {
	for i, bucket := range t.buckets {
		if bucket != nil && bucket.TokensAt(now) < float64(t.limits.rates[i].Burst) {
			return false
		}
	}
	return true
}
