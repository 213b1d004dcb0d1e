package lease

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

const (
	// claimsDelay is how long changes of claims are collected before they are
	// published: workers come back at the same moment.
	claimsDelay = 10 * time.Millisecond
	// MaxClaims bounds how many of each kind are published. The tasks of the
	// others wait no longer than a lease.
	MaxClaims = 10_000
)

// ClaimsPublisher tells the other servers which of their leases are known here, and
// which workers are awaited.
type ClaimsPublisher struct {
	log *zap.Logger
	// takeClaims reads what is to be published, under the lock of its owner, which it
	// takes. peers is nil when no server wants to know.
	takeClaims  func() (peers runtime.Peers, claims checkpoint.Claims)
	isScheduled bool // guarded by the lock of the owner

	publishing sync.Mutex // one after the other: the latest are published last
}

// NewClaimsPublisher makes a publisher of what takeClaims reads.
func NewClaimsPublisher(log *zap.Logger, takeClaims func() (runtime.Peers, checkpoint.Claims)) *ClaimsPublisher {
	return &ClaimsPublisher{log: log, takeClaims: takeClaims}
}

// BeginClaims says that the claims are read now: a change from now on is published
// anew. The lock of the owner is held.
func (p *ClaimsPublisher) BeginClaims() { p.isScheduled = false }

// ScheduleClaims publishes the claims soon. The lock of the owner is held.
func (p *ClaimsPublisher) ScheduleClaims() {
	if p.isScheduled {
		return
	}
	p.isScheduled = true
	time.AfterFunc(claimsDelay, contain.Func(p.publishClaims, contain.LogPanic(p.log, "the hub of workers panicked")))
}

// publishClaims publishes what is claimed now. No lock of the hub is held while the
// claims are sorted and published.
func (p *ClaimsPublisher) publishClaims() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	peers, claims := p.takeClaims()
	slices.Sort(claims.Held)
	slices.Sort(claims.Awaited)
	peers.SetClaims(claims)
}
