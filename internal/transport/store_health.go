package transport

import (
	"context"
	"time"

	"go.uber.org/zap"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// readsServiceName is the name in the health service under which a server is
// SERVING while it answers reads, also when its store takes no changes. The other
// names are NOT_SERVING then.
const readsServiceName = "reads"

const (
	storeCheckInterval = time.Second
	storeCheckTimeout  = 5 * time.Second
)

// WatchStore reports in the health service and in the log when the store takes no
// changes and when it takes them again, until ctx ends. A store that does not
// answer changes nothing, because health is about this server.
func (s *Server) WatchStore(ctx context.Context, store checkpoint.WriteChecker) {
	tick := time.NewTicker(storeCheckInterval)
	defer tick.Stop()
	for {
		s.checkStore(ctx, store)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) checkStore(ctx context.Context, store checkpoint.WriteChecker) {
	ctx, cancel := context.WithTimeout(ctx, storeCheckTimeout)
	defer cancel()
	err := store.CheckWritable(ctx)
	refused := runtime.StoreRefusal(err)
	if err != nil && (refused == nil || !refused.IsStoreRefusing()) {
		return
	}
	was := s.storeRefusal.Swap(refused)
	s.recordStoreRefusal(refused)
	switch {
	case refused != nil && (was == nil || was.Reason != refused.Reason):
		s.SetServing(false)
		s.log.Error("the store takes no changes", zap.String("reason", refused.Reason), zap.Error(err))
	case refused == nil && was != nil:
		s.SetServing(true)
		s.log.Info("the store takes changes again", zap.String("reason", was.Reason))
	}
}

// recordStoreRefusal sets the metric of the reason for which the store takes no
// changes.
func (s *Server) recordStoreRefusal(refused *runtime.Error) {
	if s.refusalMetrics == nil {
		return
	}
	for _, reason := range []string{runtime.ReasonStoreFull, runtime.ReasonStoreReplaced} {
		s.refusalMetrics.SetStoreRefusal(reason, refused != nil && refused.Reason == reason)
	}
}

// StoreRefusal returns the reason for which the store takes no changes, nil while
// it takes them.
func (s *Server) StoreRefusal() *runtime.Error { return s.storeRefusal.Load() }

// SetServing reports in the health service whether the server takes work. It has no
// effect after Drain.
func (s *Server) SetServing(ok bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ok {
		status = healthpb.HealthCheckResponse_SERVING
	}
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, status)
	}
	s.health.SetServingStatus("", status)
}
