package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/graphd-dev/graphd/internal/notify"
)

// webhookMetrics are about the endpoints of webhooks. Their names are those of an operator's file.
type webhookMetrics struct {
	events *prometheus.CounterVec
	dead   *prometheus.GaugeVec
}

func newWebhookMetrics() webhookMetrics {
	return webhookMetrics{
		events: newCounter("graphd_webhook_events_total",
			"Attempts to send an event to an endpoint of a webhook, by how they ended; given_up: an event whose last attempt failed, too.", "endpoint", "outcome"),
		dead: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "graphd_webhook_dead",
			Help: "1 while this server gives events of an endpoint up, or sends it none because it is gone, by the state.",
		}, []string{"endpoint", "state"}),
	}
}

// CountWebhookEvent counts an attempt to send an event.
func (m *Metrics) CountWebhookEvent(endpoint string, outcome notify.Outcome) {
	m.webhooks.events.WithLabelValues(endpoint, string(outcome)).Inc()
}

// SetWebhookState sets the state of an endpoint at this server.
func (m *Metrics) SetWebhookState(endpoint string, s notify.State) {
	for _, state := range []notify.State{notify.StateDead, notify.StateOff} {
		value := 0.0
		if s == state {
			value = 1
		}
		m.webhooks.dead.WithLabelValues(endpoint, string(state)).Set(value)
	}
}

// WatchWebhooks adds the age of the oldest unsent event of each endpoint to each page of metrics.
// oldest returns its time, zero for none. It is called once.
func (m *Metrics) WatchWebhooks(oldest func() map[string]time.Time) {
	m.registry.MustRegister(&unsentAge{oldest: oldest, desc: prometheus.NewDesc("graphd_webhook_unsent_seconds",
		"Age of the oldest event that this server has not sent to an endpoint; 0 when there is none, or another server sends.", []string{"endpoint"}, nil)})
}

// unsentAge is a collector of ages.
type unsentAge struct {
	oldest func() map[string]time.Time
	desc   *prometheus.Desc
}

// Describe sends the description.
func (u *unsentAge) Describe(to chan<- *prometheus.Desc) { to <- u.desc }

// Collect sends the ages.
func (u *unsentAge) Collect(to chan<- prometheus.Metric) {
	for endpoint, at := range u.oldest() {
		age := 0.0
		if !at.IsZero() {
			age = max(0, time.Since(at).Seconds())
		}
		to <- prometheus.MustNewConstMetric(u.desc, prometheus.GaugeValue, age, endpoint)
	}
}
