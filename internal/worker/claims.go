package worker

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
	// maxClaims bounds how many of each kind are published. The tasks of the
	// others wait no longer than a lease.
	maxClaims = 10_000
)

// claimsPublisher tells the other servers which of their leases are known here, and
// which workers are awaited.
type claimsPublisher struct {
	log *zap.Logger
	// takeClaims reads what is to be published, under the lock of its owner, which it
	// takes. peers is nil when no server wants to know.
	takeClaims  func() (peers runtime.Peers, claims checkpoint.Claims)
	isScheduled bool // guarded by the dispatcher's mu

	publishing sync.Mutex // one after the other: the latest are published last
}

// scheduleClaims publishes the claims soon. The dispatcher's mu is held.
func (p *claimsPublisher) scheduleClaims() {
	if p.isScheduled {
		return
	}
	p.isScheduled = true
	time.AfterFunc(claimsDelay, contain.Func(p.publishClaims, contain.LogPanic(p.log, "the hub of workers panicked")))
}

// publishClaims publishes what is claimed now. No lock of the hub is held while the
// claims are sorted and published.
func (p *claimsPublisher) publishClaims() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	peers, claims := p.takeClaims()
	slices.Sort(claims.Held)
	slices.Sort(claims.Awaited)
	peers.SetClaims(claims)
}
