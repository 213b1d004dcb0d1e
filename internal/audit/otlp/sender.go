package otlp

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"
)

// maxAnswerBytes bounds the answer of a collector.
const maxAnswerBytes = 64 << 10

// answer is what a collector has said to the newest request; the zero value = nothing.
type answer struct {
	status   int
	rejected int64 // records of a request that was taken
}

func (a answer) isTaken() bool { return a.status >= 200 && a.status <= 299 }

// isRejection reports whether the same request would be refused again, whatever is
// corrected at the collector: it can't be read, or is too large.
func (a answer) isRejection() bool {
	return a.status == http.StatusBadRequest || a.status == http.StatusRequestEntityTooLarge || a.status == http.StatusUnprocessableEntity
}

// sender sends requests and reads the answers, for one goroutine.
type sender struct {
	tls       func() *tls.Config // nil = the CAs of the system
	config    *tls.Config        // of transport
	transport *http.Transport    // nil = none yet
	answer    answer
}

// newClient makes the client of an exporter. It follows no redirection: the records and
// the headers are for one collector.
func (s *sender) newClient() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip sends a request. New files of TLS have a new connection.
func (s *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	var config *tls.Config
	if s.tls != nil {
		config = s.tls()
	}
	if s.transport == nil || config != s.config {
		s.closeIdle()
		s.config, s.transport = config, newTransport(config)
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	_ = resp.Body.Close() // what was read counts
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	s.answer = answer{status: resp.StatusCode, rejected: readRejected(body)}
	return resp, nil
}

func newTransport(config *tls.Config) *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, ForceAttemptHTTP2: true}
	if config != nil {
		t.TLSClientConfig = config.Clone()
	}
	return t
}

func (s *sender) closeIdle() {
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}

// readRejected returns the number of records that a collector has not taken of a request.
func readRejected(body []byte) int64 {
	var said collogspb.ExportLogsServiceResponse
	if proto.Unmarshal(body, &said) != nil {
		return 0
	}
	return max(said.GetPartialSuccess().GetRejectedLogRecords(), 0)
}
