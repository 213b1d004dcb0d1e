package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/graphd-dev/graphd/internal/telemetry"
)

// Bounds of a request for metrics. An answer may take as long as a profile that the operator asks for.
const (
	metricsHeaderTimeout = 5 * time.Second
	metricsReadTimeout   = 10 * time.Second
	metricsWriteTimeout  = 10 * time.Minute
	metricsIdleTimeout   = 2 * time.Minute
	maxMetricsHeader     = 16 << 10
)

// listenMetrics begins to listen for those who ask for metrics or for health, if there is an
// address. The error is an *exit.HintError.
func (s *Server) listenMetrics(o Options, metrics *telemetry.Metrics) (err error) {
	if o.Metrics == "" {
		return nil
	}
	if s.metrics, err = listenHTTP(o.Metrics, "metrics", "metrics"); err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.Handle("/metrics", metrics.Handler())
	routes.HandleFunc("/healthz", s.handleHealth)
	if o.Profiles {
		registerProfiles(routes)
	}
	s.metrics.setServer(&http.Server{
		Handler: routes, ReadHeaderTimeout: metricsHeaderTimeout, ReadTimeout: metricsReadTimeout, WriteTimeout: metricsWriteTimeout,
		IdleTimeout: metricsIdleTimeout, MaxHeaderBytes: maxMetricsHeader,
	})
	return nil
}

// handleHealth says whether the server takes calls that change something.
func (s *Server) handleHealth(w http.ResponseWriter, _ *http.Request) {
	if s.isDraining.Load() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	if refused := s.grpc.StoreRefusal(); refused != nil {
		http.Error(w, refused.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// MetricsAddress returns the address at which metrics are served, "" = nowhere.
func (s *Server) MetricsAddress() string { return s.metrics.address() }
