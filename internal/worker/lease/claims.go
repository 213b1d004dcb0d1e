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
	// claimsDelay is the time for which changes of claims are collected before
	// they are published, because workers come back at the same moment.
	claimsDelay = 10 * time.Millisecond
	// MaxClaims is the number of claims of each kind that are published. The
	// tasks of the others wait at most for the time of a lease.
	MaxClaims = 10_000
)

// ClaimsPublisher reports to the other servers which of their leases are known
// here, and which workers are awaited.
type ClaimsPublisher struct {
	log *zap.Logger
	// takeClaims reads the claims to be published, under the lock of its owner, which
	// it takes. peers is nil when no server is interested.
	takeClaims  func() (peers runtime.Peers, claims checkpoint.Claims)
	isScheduled bool // guarded by the lock of the owner

	publishing sync.Mutex // serializes publishing: the latest claims are published last
}

// NewClaimsPublisher makes a publisher of the claims that takeClaims reads.
func NewClaimsPublisher(log *zap.Logger, takeClaims func() (runtime.Peers, checkpoint.Claims)) *ClaimsPublisher {
	return &ClaimsPublisher{log: log, takeClaims: takeClaims}
}

// BeginClaims records that the claims are read now. A later change is published
// again. The lock of the owner is held.
func (p *ClaimsPublisher) BeginClaims() { p.isScheduled = false }

// ScheduleClaims publishes the claims soon. The lock of the owner is held.
func (p *ClaimsPublisher) ScheduleClaims() {
	if p.isScheduled {
		return
	}
	p.isScheduled = true
	time.AfterFunc(claimsDelay, contain.Func(p.publishClaims, contain.LogPanic(p.log, "the hub of workers panicked")))
}

// publishClaims publishes the present claims. No lock of the hub is held while it
// sorts and publishes them.
func (p *ClaimsPublisher) publishClaims() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	peers, claims := p.takeClaims()
	slices.Sort(claims.Held)
	slices.Sort(claims.Awaited)
	peers.SetClaims(claims)
}
