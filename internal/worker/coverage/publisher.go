package coverage

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxSyncPublish is the number of entries that are sorted at once, while the
// caller waits.
const maxSyncPublish = 1000

// Publisher reports the entries of the workers to the engine, and through it to the
// other servers.
type Publisher struct {
	log *zap.Logger
	// listServed lists the entries of each worker, and their number. It
	// takes a lock of its own. peers is nil when no server is interested.
	listServed func() (peers runtime.Peers, lists [][]checkpoint.Capability, sum int)

	mu           sync.Mutex
	isPublishing bool // on a goroutine of its own
	mustRepeat   bool // the entries have changed meanwhile
}

// NewPublisher makes a publisher of the entries that listServed lists.
func NewPublisher(
	log *zap.Logger, listServed func() (peers runtime.Peers, lists [][]checkpoint.Capability, sum int),
) *Publisher {
	return &Publisher{log: log, listServed: listServed}
}

// PublishCapabilities publishes the present entries: at once, or, when there are
// many, soon. No lock of the hub is held.
func (p *Publisher) PublishCapabilities() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isPublishing {
		p.mustRepeat = true
		return
	}
	switch peers, lists, sum := p.listServed(); {
	case peers == nil:
	case sum <= maxSyncPublish:
		peers.SetCapabilities(mergeCapabilities(lists))
	default:
		p.isPublishing = true
		go contain.Func(p.publishUntilCurrent, contain.LogPanic(p.log, "the hub of workers panicked"))()
	}
}

// publishUntilCurrent sorts and publishes the entries while no call waits. It pauses
// in between, because workers may connect and disconnect all the time.
func (p *Publisher) publishUntilCurrent() {
	for more := true; more; {
		began := time.Now()
		p.mu.Lock()
		p.mustRepeat = false
		p.mu.Unlock()
		peers, lists, _ := p.listServed()
		peers.SetCapabilities(mergeCapabilities(lists))
		if rest := min(9*time.Since(began), time.Second); rest > 0 {
			timer := time.NewTimer(rest)
			<-timer.C
		}
		p.mu.Lock()
		more = p.mustRepeat
		p.isPublishing = more
		p.mu.Unlock()
	}
}

// mergeCapabilities returns the union of the lists, sorted.
func mergeCapabilities(lists [][]checkpoint.Capability) []checkpoint.Capability {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b checkpoint.Capability) int {
		return cmp.Or(cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Node, b.Node))
	})
	return slices.Compact(all)
}
