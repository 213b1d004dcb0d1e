package traces_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is a span that was received.
type span struct {
	*otlp.Span

	service string
}

func (s span) trace() string  { return hex.EncodeToString(s.GetTraceId()) }
func (s span) id() string     { return hex.EncodeToString(s.GetSpanId()) }
func (s span) parent() string { return hex.EncodeToString(s.GetParentSpanId()) }

// attribute returns an attribute as text, "" = there is none.
func (s span) attribute(key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() != key {
			continue
		}
		if text := a.GetValue().GetStringValue(); text != "" {
			return text
		}
		return strconv.FormatInt(a.GetValue().GetIntValue(), 10)
	}
	return ""
}

// linksTo reports whether the span has a link to another.
func (s span) linksTo(other span) bool {
	return slices.ContainsFunc(s.GetLinks(), func(l *otlp.Span_Link) bool {
		return bytes.Equal(l.GetTraceId(), other.GetTraceId()) && bytes.Equal(l.GetSpanId(), other.GetSpanId())
	})
}

// receiver takes spans over OTLP/HTTP, as a collector does.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	all      []span
	raw      []byte // all requests
	arrived  chan struct{}
	problems []error
	hold     chan struct{} // answers wait for it; nil = they don't
	requests int
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{arrived: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP takes spans.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	hold := r.hold
	r.requests++
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(req.Body)
	}
	text, err := io.ReadAll(body)
	var given collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &given)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || req.URL.Path != "/v1/traces" {
		r.problems = append(r.problems, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.raw = append(r.raw, text...)
	for _, resource := range given.GetResourceSpans() {
		service := ""
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.all = append(r.all, span{s, service})
			}
		}
	}
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

// spans returns what was received.
func (r *receiver) spans() []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// await waits until there are n spans with a name, and returns them.
func (r *receiver) await(t *testing.T, name string, n int) []span {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		found := named(r.spans(), name)
		if len(found) >= n {
			return found
		}
		select {
		case <-r.arrived:
		case <-limit.C:
			require.Failf(t, "a span is missing", "%d of %d have the name %q; there are %q", len(found), n, name, names(r.spans()))
		}
	}
}

// one returns the only span with a name.
func one(t *testing.T, all []span, name string) span {
	t.Helper()
	found := named(all, name)
	require.Len(t, found, 1, "%q in %q", name, names(all))
	return found[0]
}

func named(all []span, name string) (found []span) {
	for _, s := range all {
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	return found
}

func names(all []span) (list []string) {
	for _, s := range all {
		list = append(list, s.GetName())
	}
	slices.Sort(list)
	return list
}

// grpcReceiver takes spans over OTLP/gRPC.
type grpcReceiver struct {
	collector.UnimplementedTraceServiceServer

	names chan string
}

// Export takes spans.
func (r *grpcReceiver) Export(_ context.Context, given *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range given.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.names <- s.GetName()
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}
