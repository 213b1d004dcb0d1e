package worker

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// placement decides where runs may continue that cannot continue here. The
// dispatcher's mu guards it.
type placement struct {
	peers      runtime.Peers // nil before the engine has called SetPeers
	isDraining bool
}

// hasWorkersFor reports whether another server has workers for all the needs.
func (p *placement) hasWorkersFor(needs ...checkpoint.Capability) bool {
	return p.peers != nil && p.peers.Cover(needs...)
}

// isAwaited reports whether another server keeps the task of a place back for its
// worker.
func (p *placement) isAwaited(place string) bool { return p.peers != nil && p.peers.IsAwaited(place) }

// noticeStranded returns the notice that makes a run look for another server, or
// leave this server if it drains.
func (p *placement) noticeStranded(j *job) notice {
	if p.isDraining {
		return notice{job: j, notify: runtime.Host.HandOff}
	}
	return notice{job: j, notify: runtime.Host.NotifyStranded}
}
