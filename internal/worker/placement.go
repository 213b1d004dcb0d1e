package worker

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// placement says where runs may go that can't go on here. It is guarded by the
// dispatcher's mu.
type placement struct {
	peers      runtime.Peers // nil before the engine has asked for what workers take
	isDraining bool
}

// hasWorkersFor reports whether another server has workers for all that is needed.
func (p *placement) hasWorkersFor(needs ...checkpoint.Capability) bool {
	return p.peers != nil && p.peers.Cover(needs...)
}

// isAwaited reports whether another server keeps the task of a place back for its
// worker.
func (p *placement) isAwaited(place string) bool { return p.peers != nil && p.peers.IsAwaited(place) }

// noticeStranded has a run look for another server, or leave this one if it drains.
func (p *placement) noticeStranded(j *job) notice {
	if p.isDraining {
		return notice{job: j, notify: runtime.Host.HandOff}
	}
	return notice{job: j, notify: runtime.Host.NotifyStranded}
}
