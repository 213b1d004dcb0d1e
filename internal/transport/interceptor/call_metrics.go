package interceptor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// callMetrics are the counters of calls, with the names and labels of other gRPC
// servers. The counters of a method are looked up once, not with each message.
type callMetrics struct {
	started, handled, received, sent *prometheus.CounterVec
	handlingSeconds                  *prometheus.HistogramVec

	methods map[string]*methodMetrics // by "/service/method"; not changed while serving
}

// methodMetrics are the counters of one method. A nil value counts nothing.
type methodMetrics struct {
	started, received, sent prometheus.Counter
	handled                 [codes.Unauthenticated + 1]prometheus.Counter
	handlingSeconds         prometheus.Observer
}

func newCallMetrics() *callMetrics {
	labels := []string{"grpc_type", "grpc_service", "grpc_method"}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &callMetrics{
		started:  vec("grpc_server_started_total", "Calls that were begun.", labels...),
		handled:  vec("grpc_server_handled_total", "Calls that have ended.", append(labels[:3:3], "grpc_code")...),
		received: vec("grpc_server_msg_received_total", "Messages of calls that were received.", labels...),
		sent:     vec("grpc_server_msg_sent_total", "Messages of calls that were sent.", labels...),
		handlingSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grpc_server_handling_seconds", Help: "How long calls took.", Buckets: prometheus.DefBuckets,
		}, labels),
		methods: make(map[string]*methodMetrics),
	}
}

// Describe sends the descriptions of the call metrics to a channel.
func (c *callMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.listCollectors() {
		v.Describe(to)
	}
}

// Collect sends the call metrics to a channel.
func (c *callMetrics) Collect(to chan<- prometheus.Metric) {
	for _, v := range c.listCollectors() {
		v.Collect(to)
	}
}

func (c *callMetrics) listCollectors() []prometheus.Collector {
	return []prometheus.Collector{c.started, c.handled, c.received, c.sent, c.handlingSeconds}
}

// registerMethods prepares the counters of all methods of a server; each begins at
// 0.
func (c *callMetrics) registerMethods(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, m := range info.Methods {
			c.methods["/"+service+"/"+m.Name] = c.newMethodMetrics(callKind(m.IsClientStream, m.IsServerStream), service, m.Name)
		}
	}
}

func (c *callMetrics) newMethodMetrics(kind, service, name string) *methodMetrics {
	m := &methodMetrics{
		started:         c.started.WithLabelValues(kind, service, name),
		received:        c.received.WithLabelValues(kind, service, name),
		sent:            c.sent.WithLabelValues(kind, service, name),
		handlingSeconds: c.handlingSeconds.WithLabelValues(kind, service, name),
	}
	for code := range m.handled {
		m.handled[code] = c.handled.WithLabelValues(kind, service, name, codes.Code(code).String())
	}
	return m
}

// findMethod returns the counters of a method, nil when it is not counted.
func (c *callMetrics) findMethod(name string) *methodMetrics {
	if c == nil {
		return nil
	}
	return c.methods[name]
}

func (m *methodMetrics) countStarted() {
	if m != nil {
		m.started.Inc()
	}
}

func (m *methodMetrics) countReceived() {
	if m != nil {
		m.received.Inc()
	}
}

func (m *methodMetrics) countSent() {
	if m != nil {
		m.sent.Inc()
	}
}

func (m *methodMetrics) countHandled(code codes.Code, took time.Duration) {
	if m == nil {
		return
	}
	if int(code) >= len(m.handled) {
		code = codes.Unknown
	}
	m.handled[code].Inc()
	m.handlingSeconds.Observe(took.Seconds())
}
