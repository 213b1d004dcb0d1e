// Package lease makes and reads leases. A lease is the right of a worker to
// deliver the one result of a task. The package remembers the ended leases, and
// keeps the leases that a reconnected worker brings until the run requests their
// tasks.
//
// Signers are safe for concurrent use. A lock of the owner guards a History and
// Reclaims.
package lease

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Lease is the content of a token.
type Lease struct {
	Token       string
	Key         string // of the task, see KeyOf
	incarnation string // of the server
	owner       string // digest of the Holder, "" = any caller in tenant.Default
	number      uint64 // among the leases of the server
	fence       uint64 // the fence of the run
	attempt     uint64
}

// TaskID returns the id of the leased task.
func (l Lease) TaskID() string {
	id, _, _ := strings.Cut(l.Key, ":")
	return id
}

// Place returns the place of the leased task, as PlaceOf does.
func (l Lease) Place() string {
	if i := strings.LastIndexByte(l.Key, ':'); i > 0 {
		return l.Key[:i]
	}
	return l.Key
}

// OutlivesServer reports whether the lease may outlive its server. The work of
// routers and reducers depends on results that may have been lost with it.
func (l Lease) OutlivesServer() bool { return strings.Contains(l.Key, nodeKeyMark) }

// IsNewer reports whether this lease of a task is newer than another one.
func (l Lease) IsNewer(than Lease) bool {
	order := cmp.Or(cmp.Compare(l.fence, than.fence), cmp.Compare(l.attempt, than.attempt))
	if order == 0 && l.incarnation == than.incarnation {
		order = cmp.Compare(l.number, than.number)
	}
	return order > 0
}

// Holder is who may hold a lease: the workers of a principal in a tenant.
type Holder struct {
	Tenant    string // "" = tenant.Default
	Principal string // "" = not known
}

// IsOf reports whether the worker of a holder may hold the lease. The principal of a lease
// from before the server knew its callers, and of one given to an endpoint, is not known:
// in the tenant the lease itself is the right.
func (l Lease) IsOf(holder Holder) bool {
	return l.owner == holder.digestHolder() || l.owner == Holder{Tenant: holder.Tenant}.digestHolder()
}

// digestHolder returns what a token says of a holder. No name has the byte between the two
// parts, so that two holders never look the same.
func (h Holder) digestHolder() string {
	text := h.Principal
	if cmp.Or(h.Tenant, tenant.Default) != tenant.Default {
		text = h.Tenant + "\x00" + h.Principal
	}
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// IsFor reports whether the lease is for a task as its run requests it, and not for
// an earlier attempt or pass.
func (l Lease) IsFor(t *runtime.Task, key string) bool {
	return l.Key == key && l.attempt >= uint64(max(t.Attempt, 0))
}

// NameOf returns the name of a lease for other servers. The name does not give
// the right of the lease.
func NameOf(place, token string) string {
	sum := sha256.Sum256([]byte(token))
	return place + "#" + hex.EncodeToString(sum[:8])
}

// Signer makes tokens, and verifies tokens made with its key.
type Signer struct {
	key         []byte
	incarnation string // distinguishes the leases of this process from those of an earlier one
	last        atomic.Uint64
}

// NewSigner makes the signer of one server. Another server with the same key
// accepts its leases.
func NewSigner(key []byte) *Signer { return &Signer{key: key, incarnation: rand.Text()[:12]} }

// ownerMark stands between the server and the owner of a lease.
const ownerMark = "-"

// SignLease makes a lease of a task for the worker of a principal, "" = not known, in the
// tenant of the task. Its token names the task, the server, the time and the holder, and has
// a signature.
func (s *Signer) SignLease(t *runtime.Task, key, principal string) Lease {
	owner, _ := tenant.Split(t.Thread)
	l := Lease{
		Key: key, incarnation: s.incarnation, owner: Holder{owner, principal}.digestHolder(), number: s.last.Add(1), fence: t.Fence,
		attempt: uint64(max(t.Attempt, 0)),
	}
	server := l.incarnation
	if l.owner != "" {
		server += ownerMark + l.owner
	}
	body := strings.Join([]string{server, formatBase36(l.number), formatBase36(l.fence), formatBase36(l.attempt), key}, "/")
	l.Token = string(binary.AppendUvarint(nil, uint64(len(body)))) + body + s.computeMAC(body)
	return l
}

func formatBase36(n uint64) string { return strconv.FormatUint(n, 36) }

func (s *Signer) computeMAC(body string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(body))
	return string(mac.Sum(nil)[:16])
}

// IsOwn reports whether this server has given a lease.
func (s *Signer) IsOwn(l Lease) bool { return l.incarnation == s.incarnation }

// ParseToken checks a token. One that this key has not marked is refused.
func (s *Signer) ParseToken(token string) (Lease, bool) {
	n, width := binary.Uvarint([]byte(token))
	if width <= 0 || n > uint64(len(token)-width) {
		return Lease{}, false
	}
	body, mark := token[width:width+int(n)], token[width+int(n):]
	if !hmac.Equal([]byte(mark), []byte(s.computeMAC(body))) {
		return Lease{}, false
	}
	parts := strings.SplitN(body, "/", 5)
	if len(parts) != 5 {
		return Lease{}, false
	}
	l := Lease{Token: token, Key: parts[4]}
	l.incarnation, l.owner, _ = strings.Cut(parts[0], ownerMark)
	for i, n := range []*uint64{&l.number, &l.fence, &l.attempt} {
		var err error
		if *n, err = strconv.ParseUint(parts[i+1], 36, 64); err != nil {
			return Lease{}, false
		}
	}
	return l, true
}

// ParseTokens checks the tokens that the worker of a holder brings, each once. It takes a
// while for many. Those that this key has not marked are forged, and those of the workers
// of other holders count as such.
func (s *Signer) ParseTokens(tokens []string, by Holder) (all []Lease, forged []string) {
	seen := make(map[string]struct{}, len(tokens))
	for _, token := range tokens {
		if _, again := seen[token]; again {
			continue
		}
		seen[token] = struct{}{}
		if l, ok := s.ParseToken(token); ok && l.IsOf(by) {
			all = append(all, l)
		} else {
			forged = append(forged, token)
		}
	}
	return all, forged
}
