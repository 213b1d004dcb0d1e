package transport

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// counts are the metrics of calls. They have the names and labels that they
// have elsewhere too; what a method counts is found once, not with each message.
type counts struct {
	started, handled, received, sent *prometheus.CounterVec
	seconds                          *prometheus.HistogramVec

	methods map[string]*method // by "/service/method"; not changed while serving
}

// method is what is counted of one method. A nil one counts nothing.
type method struct {
	started, received, sent prometheus.Counter
	handled                 [codes.Unauthenticated + 1]prometheus.Counter
	seconds                 prometheus.Observer
}

func newCounts() *counts {
	labels := []string{"grpc_type", "grpc_service", "grpc_method"}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &counts{
		started:  vec("grpc_server_started_total", "Calls that were begun.", labels...),
		handled:  vec("grpc_server_handled_total", "Calls that have ended.", append(labels[:3:3], "grpc_code")...),
		received: vec("grpc_server_msg_received_total", "Messages of calls that were received.", labels...),
		sent:     vec("grpc_server_msg_sent_total", "Messages of calls that were sent.", labels...),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grpc_server_handling_seconds", Help: "How long calls took.", Buckets: prometheus.DefBuckets,
		}, labels),
		methods: make(map[string]*method),
	}
}

// Describe tells what there may be.
func (c *counts) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.all() {
		v.Describe(to)
	}
}

// Collect tells what was counted.
func (c *counts) Collect(to chan<- prometheus.Metric) {
	for _, v := range c.all() {
		v.Collect(to)
	}
}

func (c *counts) all() []prometheus.Collector {
	return []prometheus.Collector{c.started, c.handled, c.received, c.sent, c.seconds}
}

// know prepares the counting of all methods of a server; each begins at 0.
func (c *counts) know(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, m := range info.Methods {
			c.methods["/"+service+"/"+m.Name] = c.prepare(kindOf(m.IsClientStream, m.IsServerStream), service, m.Name)
		}
	}
}

func (c *counts) prepare(kind, service, name string) *method {
	m := &method{
		started:  c.started.WithLabelValues(kind, service, name),
		received: c.received.WithLabelValues(kind, service, name),
		sent:     c.sent.WithLabelValues(kind, service, name),
		seconds:  c.seconds.WithLabelValues(kind, service, name),
	}
	for code := range m.handled {
		m.handled[code] = c.handled.WithLabelValues(kind, service, name, codes.Code(code).String())
	}
	return m
}

// method finds a method; nil when nobody counts.
func (c *counts) method(name string) *method {
	if c == nil {
		return nil
	}
	return c.methods[name]
}

func (m *method) begin() {
	if m != nil {
		m.started.Inc()
	}
}

func (m *method) receive() {
	if m != nil {
		m.received.Inc()
	}
}

func (m *method) send() {
	if m != nil {
		m.sent.Inc()
	}
}

func (m *method) end(code codes.Code, took time.Duration) {
	if m == nil {
		return
	}
	if int(code) >= len(m.handled) {
		code = codes.Unknown
	}
	m.handled[code].Inc()
	m.seconds.Observe(took.Seconds())
}
