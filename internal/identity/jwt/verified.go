package jwt

import (
	"container/list"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
)

const (
	// maxVerifiedBytes bounds the memory of the remembered tokens of a Verifier: some
	// 10,000 of them.
	maxVerifiedBytes = 8 << 20
	// tokenOverhead is what a remembered token takes besides its names: the record, its
	// place in the map and in the list.
	tokenOverhead = 512
	nameOverhead  = 16
)

// digest is a SHA-256.
type digest [sha256.Size]byte

// verifiedToken is what a token says, and what that depends on.
type verifiedToken struct {
	caller identity.Principal
	valid  period
	issuer *issuer
	keys   digest // of the set with the key that has signed it
}

// isCurrent reports whether another verification would have the same result: it is the
// time of the token, and its issuer has the same keys.
func (t *verifiedToken) isCurrent(now time.Time) bool {
	keys := t.issuer.keys.currentKeys()
	return t.valid.containsTime(now) && keys != nil && keys.digest == t.keys
}

// countBytes returns the memory that the token takes.
func (t *verifiedToken) countBytes() int {
	n := tokenOverhead + len(t.caller.Name) + len(t.caller.Tenant)
	for _, names := range [][]string{t.caller.Groups, t.caller.Tenants, t.caller.Roles} {
		for _, name := range names {
			n += nameOverhead + len(name)
		}
	}
	return n
}

// verifiedTokens remembers tokens by their digests, because the verification of a
// signature takes longer than the rest of a short call. It remembers no refusals, so
// no caller without a token can fill it. Beyond maxVerifiedBytes it forgets the tokens that
// were not used for the longest time. Its methods may be called at the same time.
type verifiedTokens struct {
	mu       sync.Mutex
	bytes    int
	byUse    *list.List // of rememberedToken, the last used first
	byDigest map[digest]*list.Element
}

type rememberedToken struct {
	*verifiedToken

	digest digest
}

func newVerifiedTokens() *verifiedTokens {
	return &verifiedTokens{byUse: list.New(), byDigest: make(map[digest]*list.Element)}
}

// findCaller returns the principal of a token that is remembered. It forgets a token
// that is no longer current.
func (v *verifiedTokens) findCaller(d digest, now time.Time) (identity.Principal, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, ok := v.byDigest[d]
	if !ok {
		return identity.Principal{}, false
	}
	token, _ := at.Value.(rememberedToken)
	if !token.isCurrent(now) {
		v.forgetToken(at)
		return identity.Principal{}, false
	}
	v.byUse.MoveToFront(at)
	return token.caller, true
}

// rememberToken takes in a token that was verified.
func (v *verifiedTokens) rememberToken(d digest, t *verifiedToken) {
	cloneNames(&t.caller)
	v.mu.Lock()
	defer v.mu.Unlock()
	if before, ok := v.byDigest[d]; ok { // of a call at the same time
		v.forgetToken(before)
	}
	v.byDigest[d] = v.byUse.PushFront(rememberedToken{t, d})
	v.bytes += t.countBytes()
	for v.bytes > maxVerifiedBytes {
		v.forgetToken(v.byUse.Back())
	}
}

// forgetToken removes a token. The lock is held.
func (v *verifiedTokens) forgetToken(at *list.Element) {
	token, _ := v.byUse.Remove(at).(rememberedToken)
	v.bytes -= token.countBytes()
	delete(v.byDigest, token.digest)
}

// cloneNames makes names that do not keep the whole text of the claims in memory.
func cloneNames(p *identity.Principal) {
	p.Name, p.Tenant = strings.Clone(p.Name), strings.Clone(p.Tenant)
	for _, names := range []*[]string{&p.Groups, &p.Tenants, &p.Roles} {
		*names = slices.Clone(*names)
		for i, name := range *names {
			(*names)[i] = strings.Clone(name)
		}
	}
}
