package worker

import (
	"maps"

	"github.com/graphd-dev/graphd/internal/runtime"
)

func (s *Session) describeWorker() runtime.Worker {
	w := runtime.Worker{
		ID: s.hello.Worker, Slots: s.capacity.credit.Total, FreeSlots: max(s.capacity.FreeSlots(), 0), LastHeartbeat: s.lastHeard,
		Labels: maps.Clone(s.hello.Labels), Draining: s.isLeaving, Build: s.hello.BuildID,
	}
	w.Nodes = s.hello.listNodes()
	return w
}
