package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/audit/otlp"
)

// collector is a receiver of OTLP/HTTP that does as a test says.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*collogspb.ExportLogsServiceRequest // that were taken
	paths    []string
	headers  []http.Header
	status   int           // of the answers, 0 = 200
	reject   int64         // records of each request
	loses    bool          // takes a request and breaks the connection before the answer
	hold     chan struct{} // answers wait for it; nil = they don't
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.handle))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, failed := gzip.NewReader(bytes.NewReader(body))
		if failed == nil {
			body, err = io.ReadAll(unpacked)
		}
	}
	var request collogspb.ExportLogsServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths, c.headers = append(c.paths, r.URL.Path), append(c.headers, r.Header)
	if c.status != 0 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(c.status)
		return
	}
	c.requests = append(c.requests, &request)
	if c.loses {
		panic(http.ErrAbortHandler)
	}
	answer, _ := proto.Marshal(&collogspb.ExportLogsServiceResponse{
		PartialSuccess: &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: c.reject},
	})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func (c *collector) set(change func(c *collector)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// lines returns the bodies of the records that were taken.
func (c *collector) lines() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.requests {
		for _, of := range request.GetResourceLogs() {
			for _, scope := range of.GetScopeLogs() {
				for _, record := range scope.GetLogRecords() {
					all = append(all, record.GetBody().GetStringValue())
				}
			}
		}
	}
	return all
}

// requireChain checks that lines are a chain without a defect, and returns their threads
// and kinds.
func requireChain(t *testing.T, lines []string) (said []string) {
	t.Helper()
	r := audit.NewReader(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	for {
		e, err := r.Read()
		if errors.Is(err, io.EOF) {
			return said
		}
		require.NoError(t, err)
		require.Empty(t, e.Defects)
		if e.Kind == audit.KindCall {
			said = append(said, e.Thread)
			continue
		}
		said = append(said, string(e.Kind))
	}
}

func newSink(t *testing.T, address string) *otlp.Sink {
	t.Helper()
	to, err := url.Parse(address)
	require.NoError(t, err)
	s, err := otlp.New(t.Context(), otlp.Options{URL: to, Host: "h", Version: "1"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func calls(threads ...string) (list []audit.Record) {
	for _, thread := range threads {
		list = append(list, audit.Record{
			Kind: audit.KindCall, Time: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), Outcome: audit.OutcomeRefused, Thread: thread, Principal: "alice",
		})
	}
	return list
}

func TestRecordsArriveAsLinesOfAChain(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20sesame")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod")
	c := startCollector(t)
	s := newSink(t, c.URL)
	for _, list := range [][]audit.Record{calls("a", "b"), calls("c")} {
		n, err := s.WriteRecords(t.Context(), list)
		require.NoError(t, err)
		require.Equal(t, len(list), n)
	}
	require.Equal(t, []string{"a", "b", "c"}, requireChain(t, c.lines()))
	require.Equal(t, []string{"/v1/logs", "/v1/logs"}, c.paths)
	require.Equal(t, "Bearer sesame", c.headers[0].Get("Authorization"))
	logs := c.requests[0].GetResourceLogs()[0]
	attributes := map[string]string{}
	for _, a := range logs.GetResource().GetAttributes() {
		attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	require.Equal(t, "graphd", attributes["service.name"])
	require.Equal(t, "prod", attributes["deployment.environment.name"])
	require.NotEmpty(t, attributes["service.instance.id"])
	record := logs.GetScopeLogs()[0].GetLogRecords()[1]
	require.Equal(t, "graphd.audit.call", record.GetEventName())
	require.Equal(t, "WARN", strings.TrimPrefix(record.GetSeverityNumber().String(), "SEVERITY_NUMBER_"))
	require.Equal(t, uint64(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC).UnixNano()), record.GetTimeUnixNano())
	require.Equal(t, "graphd.audit.seq", record.GetAttributes()[0].GetKey())
	require.Equal(t, int64(2), record.GetAttributes()[0].GetValue().GetIntValue())
}

func TestWhatACollectorAnswersDecidesAboutTheRecords(t *testing.T) {
	for status, isRejected := range map[int]bool{
		http.StatusBadRequest: true, http.StatusRequestEntityTooLarge: true, http.StatusUnauthorized: false, http.StatusNotFound: false,
		http.StatusTooManyRequests: false, http.StatusServiceUnavailable: false, http.StatusTemporaryRedirect: false,
	} {
		c := startCollector(t)
		c.status = status
		s := newSink(t, c.URL+"/other/path")
		n, err := s.WriteRecords(t.Context(), calls("a"))
		require.Error(t, err)
		require.Zero(t, n)
		require.Equal(t, isRejected, errors.Is(err, audit.ErrRejected), "%d: %v", status, err)
		require.Equal(t, []string{"/other/path"}, c.paths, "no redirection is followed")
		c.set(func(c *collector) { c.status = 0 })
		n, err = s.WriteRecords(t.Context(), calls("b"))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"b"}, requireChain(t, c.lines()), "the chain has no place for what has not left")
	}
	c := startCollector(t)
	c.reject = 2
	n, err := newSink(t, c.URL).WriteRecords(t.Context(), calls("a", "b", "c"))
	require.ErrorIs(t, err, audit.ErrRejected)
	require.Equal(t, 1, n)
}

// A request whose answer is lost is sent again, with the same lines.
func TestALostAnswerRepeatsTheSameLines(t *testing.T) {
	c := startCollector(t)
	c.loses = true
	s := newSink(t, c.URL)
	_, err := s.WriteRecords(t.Context(), calls("a", "b"))
	require.Error(t, err)
	require.NotErrorIs(t, err, audit.ErrRejected)
	c.set(func(c *collector) { c.loses = false })
	_, err = s.WriteRecords(t.Context(), calls("a", "b"))
	require.NoError(t, err)
	lines := c.lines()
	require.Equal(t, lines[2:], lines[:2])
	require.Equal(t, []string{"a", "b"}, requireChain(t, lines[2:]))
}

// lossCount counts lost records.
type lossCount struct {
	mu sync.Mutex
	n  int
}

// CountAuditRecord does nothing.
func (*lossCount) CountAuditRecord(string, audit.Outcome) {}

// CountLostAuditRecords counts.
func (l *lossCount) CountLostAuditRecords(_ string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += n
}

func (l *lossCount) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// A collector that is slow, refuses or is away holds up no call. What found no room while it
// was so is a gap when it is back, and the chain is whole.
func TestACollectorThatComesBackGetsARecordOfTheGap(t *testing.T) {
	hold := make(chan struct{})
	for name, trouble := range map[string]struct{ begin, end func(c *collector) }{
		"slow":    {func(c *collector) { c.hold = hold }, func(c *collector) { c.hold = nil; close(hold) }},
		"refuses": {func(c *collector) { c.status = http.StatusServiceUnavailable }, func(c *collector) { c.status = 0 }},
		"away":    {func(c *collector) { c.CloseClientConnections(); c.status = http.StatusBadGateway }, func(c *collector) { c.status = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			c, lost := startCollector(t), &lossCount{}
			c.set(trouble.begin)
			l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "otlp", Sink: newSink(t, c.URL)}}, audit.Options{QueueBytes: 20_000, Metrics: lost})
			for i := range 200 { // which waits for nothing: the collector takes none of them
				l.RecordCall(audit.Record{Outcome: audit.OutcomeOK, Thread: fmt.Sprintf("t%03d", i)})
			}
			require.Empty(t, c.lines())
			require.Positive(t, lost.count())
			c.set(trouble.end)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l.Close(ctx)
			said := requireChain(t, c.lines())
			require.Equal(t, "start", said[0])
			require.Equal(t, "t000", said[1])
			require.Contains(t, said, "gap")
			gaps := len(said) - len(slices.DeleteFunc(slices.Clone(said), func(kind string) bool { return kind == "gap" }))
			require.Equal(t, 1+200+1, len(said)-gaps+lost.count(), "each record is in a line or counted: start, the calls, stop")
		})
	}
}
