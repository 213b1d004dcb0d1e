package linkpage_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/link"
	"github.com/graphd-dev/graphd/internal/transport/linkpage"
)

var now = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)

// fakeServer has one question, and keeps the answers that it gets.
type fakeServer struct {
	mu       sync.Mutex
	question *graphdv1.Interrupt
	answers  []*graphdv1.InterruptResponse
	refusal  error          // of the next answer
	outcomes map[string]int // of pages
	panics   []string
	readErr  error             // of reading the question
	change   func(*fakeServer) // is called before an answer
	draining bool
	hold     func() // is called before each call
}

func (f *fakeServer) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	if f.hold != nil {
		f.hold()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch method {
	case graphdv1.InterruptService_GetInterrupt_FullMethodName:
		if f.readErr != nil {
			return f.readErr
		}
		if into, ok := reply.(*graphdv1.Interrupt); ok {
			proto.Merge(into, f.question)
		}
	case graphdv1.GraphService_ResumeRun_FullMethodName:
		if f.change != nil {
			f.change(f)
		}
		if f.refusal != nil {
			return f.refusal
		}
		if sent, ok := args.(*graphdv1.ResumeRunRequest); ok {
			f.answers = append(f.answers, sent.GetResume().GetResponses()...)
		}
	case graphdv1.InterruptService_RetractResponse_FullMethodName:
		return f.refusal
	default:
		return status.Error(codes.Unimplemented, method)
	}
	return nil
}

func (*fakeServer) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

func (f *fakeServer) LinkServed(outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcomes[outcome]++
}

// site is a handler with a link.
type site struct {
	*fakeServer

	handler http.Handler
	keys    link.Keys
	path    string
}

// newSite makes the page of a question with a schema. preset is JSON or "".
func newSite(t testing.TB, schema, preset string) *site {
	t.Helper()
	keys, err := link.ParseKeys("k1: " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))) + "\n")
	require.NoError(t, err)
	f := &fakeServer{outcomes: map[string]int{}, question: &graphdv1.Interrupt{
		ThreadId: "order-7", InterruptId: "q1", Graph: "refund", Message: "Refund?", State: graphdv1.InterruptState_INTERRUPT_STATE_OPEN,
		Seen: "digest-1", Etag: "4", CreateTime: timestamppb.New(now),
	}}
	if schema != "" {
		f.question.ResponseSchema = newPayload(schema)
	}
	h, err := linkpage.New(linkpage.Options{
		Keys: keys, Calls: f, IsDraining: func() bool { return f.draining }, Now: func() time.Time { return now }, Observer: f,
		OnPanic: func(p *contain.PanicError) { f.panics = append(f.panics, p.Error()) },
	})
	require.NoError(t, err)
	s := &site{fakeServer: f, handler: h, keys: keys}
	s.path = s.sign(t, func(l *link.Link) { l.Preset = preset })
	return s
}

// sign makes the path of a link.
func (s *site) sign(t testing.TB, change func(*link.Link)) string {
	t.Helper()
	l := link.Link{Tenant: "default", Thread: "order-7", Interrupt: "q1", Principal: "carol", NotAfter: now.Add(time.Hour)}
	change(&l)
	token, err := s.keys.SignToken(l)
	require.NoError(t, err)
	return link.PathPrefix + token
}

func newPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

// get reads the page.
func (s *site) get() *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, s.path, nil))
	return w
}

// post sends a form with the digest of the question.
func (s *site) post(values url.Values) *httptest.ResponseRecorder {
	if _, ok := values["seen"]; !ok {
		values.Set("seen", "digest-1")
	}
	return s.postText(values.Encode())
}

func (s *site) postText(body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, s.path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// problemsOf returns the problems that a page shows, by the name of the control.
func problemsOf(body string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`<p class="bad" id="([^"]*)-problem">([^<]*)</p>`).FindAllStringSubmatch(body, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// newRefusal makes the error of a call.
func newRefusal(t testing.TB, code codes.Code, reason string, metadata map[string]string, violations ...*errdetails.BadRequest_FieldViolation) error {
	t.Helper()
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: "graphd.dev", Metadata: metadata}}
	if len(violations) > 0 {
		details = append(details, &errdetails.BadRequest{FieldViolations: violations})
	}
	s, err := status.New(code, "secret cause at 10.0.0.1").WithDetails(details...)
	require.NoError(t, err)
	return s.Err()
}

// checkJSON returns why a text is no JSON.
func checkJSON(text string) error {
	var value any
	return json.Unmarshal([]byte(text), &value)
}
