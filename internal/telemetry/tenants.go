package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// Tenants list what tenants hold of what they have a limit of.
type Tenants interface {
	ListTenantHoldings() []runtime.TenantHolding
}

// WatchTenants adds what tenants hold to each page of metrics. Tenants beyond the number of
// label values are left out. It is called once.
func (m *Metrics) WatchTenants(tenants Tenants) {
	labels := []string{"tenant", "limit"}
	m.registry.MustRegister(&tenantCollector{
		tenants: tenants, names: newLabelValues[string](m.labelLimit),
		held: prometheus.NewDesc("graphd_tenant_held",
			"How much a tenant holds of what it has a limit of, as far as this server has counted it.", labels, nil),
		limit: prometheus.NewDesc("graphd_tenant_limit", "How much a tenant may hold.", labels, nil),
	})
}

// tenantCollector makes the metrics of tenants when a page is asked for.
type tenantCollector struct {
	tenants     Tenants
	names       *labelValues[string]
	held, limit *prometheus.Desc
}

// Describe is that of prometheus.Collector.
func (c *tenantCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.held
	to <- c.limit
}

// Collect is that of prometheus.Collector.
func (c *tenantCollector) Collect(to chan<- prometheus.Metric) {
	for _, h := range c.tenants.ListTenantHoldings() {
		if !c.names.admitValue(h.Tenant) {
			continue
		}
		to <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(h.Held), h.Tenant, string(h.Of))
		to <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(h.Most), h.Tenant, string(h.Of))
	}
}
