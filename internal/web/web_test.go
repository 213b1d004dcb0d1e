package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/web"
)

const (
	checkPath = "/grpc.health.v1.Health/Check"
	watchPath = "/grpc.health.v1.Health/Watch"
	listPath  = "/grpc.health.v1.Health/List"

	patience = time.Minute
	tick     = 5 * time.Millisecond
)

// service is a small service with a unary method and a stream.
type service struct {
	healthpb.UnimplementedHealthServer

	addresses chan string   // of those who call
	parts     chan []string // of calls: session, users, groups
	more      chan struct{} // has a value for each further message of a stream
	left      chan struct{} // closed when a stream has ended
}

func (s *service) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if p, ok := peer.FromContext(ctx); ok {
		select {
		case s.addresses <- p.Addr.String():
		default: // no test wants so many
		}
	}
	if r.GetService() == "parts" {
		var parts []string
		for _, key := range []string{identity.MetadataSession, identity.MetadataForwardedUser, identity.MetadataForwardedGroups} {
			parts = append(parts, strings.Join(metadata.ValueFromIncomingContext(ctx, key), "|"))
		}
		s.parts <- parts
	}
	switch given := metadata.ValueFromIncomingContext(ctx, "authorization"); {
	case r.GetService() == "token" && len(given) == 1:
		return nil, status.Error(codes.Unauthenticated, given[0])
	case r.GetService() == "slow":
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// largeAnswer is the size of the answer of List.
const largeAnswer = 7 << 20

func (*service) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	return &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{strings.Repeat("a", largeAnswer): {}}}, nil
}

func (s *service) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	defer close(s.left)
	for range 2 {
		if err := stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}); err != nil {
			return err
		}
	}
	for {
		select {
		case <-s.more:
			if err := stream.Send(&healthpb.HealthCheckResponse{}); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

type fixture struct {
	*service

	url    string
	client *http.Client
}

// start serves the service over HTTP.
func start(t *testing.T, change func(*web.Options), protect func(http.Handler) http.Handler) *fixture {
	t.Helper()
	return startAt(t, false, change, protect)
}

// startAt serves the service over HTTP, or over HTTPS and HTTP/2.
func startAt(t *testing.T, isSecure bool, change func(*web.Options), protect func(http.Handler) http.Handler) *fixture {
	t.Helper()
	s := &service{addresses: make(chan string, 10), parts: make(chan []string, 1), more: make(chan struct{}), left: make(chan struct{})}
	calls := web.NewListener()
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(calls) }()
	o := web.Options{
		Services: []protoreflect.ServiceDescriptor{healthpb.File_grpc_health_v1_health_proto.Services().Get(0)},
		Listener: calls, MaxMessageBytes: 1 << 10, MaxIncoming: 1 << 20, MaxUnread: 1 << 20, StallTimeout: time.Minute,
		OnPanic: func(p *contain.PanicError) { t.Error(p) },
	}
	if change != nil {
		change(&o)
	}
	facade, err := web.New(o)
	require.NoError(t, err)
	var handler http.Handler = facade
	if protect != nil {
		handler = protect(facade)
	}
	at := httptest.NewUnstartedServer(handler)
	at.Config.ConnContext, at.Config.ConnState = facade.AddConnection, facade.TrackState
	at.Config.WriteTimeout, at.EnableHTTP2 = o.StallTimeout, true
	if isSecure {
		at.StartTLS()
	} else {
		at.Start()
	}
	t.Cleanup(func() {
		at.Close()
		server.Stop()
		require.NoError(t, <-served)
	})
	return &fixture{service: s, url: at.URL, client: at.Client()}
}

// post makes a request and returns the status and the body of its response.
func (f *fixture) post(t *testing.T, path, contentType, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	return f.do(t, http.MethodPost, path, body, append([]string{"Content-Type", contentType}, headers...)...)
}

func (f *fixture) do(t *testing.T, method, path, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text), answer.Header
}

func TestACallHasTheAddressOfItsBrowser(t *testing.T) {
	f := start(t, nil, nil)
	var own string
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			own = conn.LocalAddr().String()
		}
		return conn, err
	}}}
	defer client.CloseIdleConnections()
	for range 2 {
		answer, err := client.Post(f.url+checkPath, "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, own, <-f.addresses)
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	f := start(t, nil, nil)
	const jsonType, streamType = "application/json", "application/connect+json"
	for name, c := range map[string]struct {
		path, contentType, body string
		headers                 []string
		status                  int
		says                    string
	}{
		"a form":                  {checkPath, "application/x-www-form-urlencoded", "service=a", nil, http.StatusUnsupportedMediaType, `is \"application/x-www-form-urlencoded\": want application/json or application/proto`},
		"text":                    {checkPath, "text/plain", "{}", nil, http.StatusUnsupportedMediaType, "INVALID_FIELD"},
		"another charset":         {checkPath, "application/json; charset=latin1", "{}", nil, http.StatusUnsupportedMediaType, "charset=latin1"},
		"a stream as unary":       {watchPath, jsonType, "{}", nil, http.StatusUnsupportedMediaType, "want application/connect+json or application/connect+proto"},
		"no method":               {"/grpc.health.v1.Health/Nothing", jsonType, "{}", nil, http.StatusNotImplemented, "METHOD_NOT_FOUND"},
		"an unknown field":        {checkPath, jsonType, `{"service":"a","servise":"b"}`, nil, http.StatusBadRequest, `has no field \"servise\"`},
		"no JSON":                 {checkPath, jsonType, "{", nil, http.StatusBadRequest, "is no grpc.health.v1.HealthCheckRequest in JSON"},
		"another kind of value":   {checkPath, jsonType, `{"service":7}`, nil, http.StatusBadRequest, "line 1, column 12"},
		"no protobuf":             {checkPath, "application/proto", "\xff", nil, http.StatusBadRequest, "can't be decoded"},
		"a text that is no UTF-8": {checkPath, "application/proto", "\x0a\x01\xff", nil, http.StatusBadRequest, "texts in UTF-8"},
		"too large":               {checkPath, jsonType, `{"service":"` + strings.Repeat("a", 80<<10) + `"}`, nil, http.StatusBadRequest, "PAYLOAD_TOO_LARGE"},
		"compressed":              {checkPath, jsonType, "{}", []string{"Content-Encoding", "gzip"}, http.StatusNotImplemented, "want identity"},
		"no timeout":              {checkPath, jsonType, "{}", []string{"Connect-Timeout-Ms", "1s"}, http.StatusBadRequest, "Connect-Timeout-Ms"},
		"an endless timeout":      {checkPath, jsonType, "{}", []string{"Connect-Timeout-Ms", "12345678901"}, http.StatusBadRequest, "Connect-Timeout-Ms"},
		"no envelope":             {watchPath, streamType, "{}", nil, http.StatusOK, "the request has 2 bytes"},
		"a torn envelope":         {watchPath, streamType, "\x00\x00\x00\x00\x09{}", nil, http.StatusOK, "says 9 bytes, and 2 follow"},
		"two envelopes":           {watchPath, streamType, "\x00\x00\x00\x00\x02{}\x00\x00\x00\x00\x02{}", nil, http.StatusOK, "says 2 bytes, and 9 follow"},
		"a compressed envelope":   {watchPath, streamType, "\x01\x00\x00\x00\x02{}", nil, http.StatusOK, "is compressed"},
		"an end as a request":     {watchPath, streamType, "\x02\x00\x00\x00\x02{}", nil, http.StatusOK, "has the flags 0x2"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body, _ := f.post(t, c.path, c.contentType, c.body, c.headers...)
			require.Equal(t, c.status, code, body)
			require.Contains(t, body, c.says)
		})
	}
	code, body, header := f.do(t, http.MethodGet, checkPath, "")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	require.Contains(t, body, "the request is a GET: want a POST")
	require.Equal(t, http.MethodPost, header.Get("Allow"))
	require.Empty(t, f.addresses, "no call was made")
}

func TestHeadersAndTimeouts(t *testing.T) {
	f := start(t, nil, nil)
	code, body, _ := f.post(t, checkPath, "application/json", `{"service":"token"}`, "Authorization", "Bearer abc")
	require.Equal(t, http.StatusUnauthorized, code)
	require.JSONEq(t, `{"code":"unauthenticated","message":"Bearer abc"}`, body)
	code, body, _ = f.post(t, checkPath, "application/json", `{"service":"slow"}`, "Connect-Timeout-Ms", "20")
	require.Equal(t, http.StatusGatewayTimeout, code)
	require.Contains(t, body, "deadline_exceeded")
}

// Headers that gRPC would not send are refused as the request's, and one that is too large is sent
// so far that the server can say so.
func TestHeadersThatNoCallHas(t *testing.T) {
	f := start(t, func(o *web.Options) {
		o.Callers = web.CallerParts{SessionCookie: "s", UserHeader: "X-User", GroupsHeader: "X-Groups"}
	}, nil)
	for _, name := range []string{"Authorization", "Graphd-Tenant", "X-Request-Id", "Traceparent"} {
		code, body, _ := f.post(t, checkPath, "application/json", "{}", name, "é")
		require.Equal(t, http.StatusBadRequest, code, body)
		require.Contains(t, body, strings.ToLower(name))
		require.Contains(t, body, "INVALID_FIELD")
	}
	code, body, _ := f.post(t, checkPath, "application/json", `{"service":"token"}`, "Authorization", "Bearer "+strings.Repeat("a", 40<<10))
	require.Equal(t, http.StatusUnauthorized, code, body)
	require.Greater(t, len(body), identity.MaxTokenBytes)
	require.Less(t, len(body), identity.MaxTokenBytes+2<<10)
	code, body, _ = f.post(t, checkPath, "application/json", "{}", "Authorization", "Bearer "+strings.Repeat("a", 20<<10),
		"Cookie", "s="+strings.Repeat("s", 4<<10), "X-User", strings.Repeat("u", 8<<10))
	require.Equal(t, http.StatusBadRequest, code, body)
	require.Contains(t, body, "want at most 31744 together")
}

func TestAnswersAreNotKept(t *testing.T) {
	f := start(t, nil, nil)
	for _, path := range []string{checkPath, "/grpc.health.v1.Health/Nothing"} {
		_, _, header := f.post(t, path, "application/json", "{}")
		require.Equal(t, "no-store", header.Get("Cache-Control"), path)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
	}
}

func TestABrowserThatLeavesEndsItsStream(t *testing.T) {
	f := start(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+watchPath, strings.NewReader("\x00\x00\x00\x00\x02{}"))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/connect+json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	for range 2 {
		head := make([]byte, 5)
		_, err := io.ReadFull(answer.Body, head)
		require.NoError(t, err)
		text := make([]byte, head[4])
		_, err = io.ReadFull(answer.Body, text)
		require.NoError(t, err)
		require.JSONEq(t, `{"status":"SERVING"}`, string(text))
	}
	cancel()
	require.NoError(t, answer.Body.Close())
	<-f.left
}

// A stream and a call may be silent for longer than a part may take to be read.
func TestSilenceEndsNothing(t *testing.T) {
	const stall = 200 * time.Millisecond
	for name, isSecure := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			f := startAt(t, isSecure, func(o *web.Options) { o.StallTimeout = stall }, nil)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+watchPath, strings.NewReader("\x00\x00\x00\x00\x02{}"))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/connect+json")
			answer, err := f.client.Do(r)
			require.NoError(t, err)
			require.Equal(t, isSecure, answer.ProtoMajor == 2)
			defer func() { require.NoError(t, answer.Body.Close()) }()
			message := make([]byte, len(`_____{"status":"SERVING"}`))
			for range 2 {
				_, err := io.ReadFull(answer.Body, message)
				require.NoError(t, err)
			}
			silence := time.NewTimer(3 * stall)
			defer silence.Stop()
			<-silence.C
			f.more <- struct{}{}
			_, err = io.ReadFull(answer.Body, message[:len(`_____{}`)])
			require.NoError(t, err)

			r, err = http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+checkPath, strings.NewReader(`{"service":"slow"}`))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Connect-Timeout-Ms", "600")
			answer, err = f.client.Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusGatewayTimeout, answer.StatusCode)
		})
	}
}

func TestPagesOfOtherSitesMayNotCall(t *testing.T) {
	guard, err := web.NewGuard([]string{"Graphd.example.com"}, []string{"https://app.example.com"})
	require.NoError(t, err)
	f := start(t, nil, guard.Protect)
	own := strings.TrimPrefix(f.url, "http://")
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"the page itself":               {[]string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		"no browser":                    {nil, http.StatusOK},
		"by its name":                   {[]string{"Host", "graphd.example.com"}, http.StatusOK},
		"by localhost":                  {[]string{"Host", "localhost:80"}, http.StatusOK},
		"by an address":                 {[]string{"Host", "[::1]:80"}, http.StatusOK},
		"a site that is listed":         {[]string{"Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"}, http.StatusOK},
		"another site":                  {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another site, older browser":   {[]string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"a site without a name":         {[]string{"Origin", "null"}, http.StatusForbidden},
		"a name that leads here":        {[]string{"Host", "evil.example"}, http.StatusForbidden},
		"another port of a listed site": {[]string{"Origin", "https://app.example.com:444", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			code, body, header := f.post(t, checkPath, "application/json", "{}", c.headers...)
			require.Equal(t, c.status, code, body)
			if name == "a site that is listed" {
				require.Equal(t, "https://app.example.com", header.Get("Access-Control-Allow-Origin"))
			} else {
				require.Empty(t, header.Get("Access-Control-Allow-Origin"))
			}
		})
	}
	code, _, header := f.do(t, http.MethodOptions, checkPath, "", "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusNoContent, code)
	require.Contains(t, header.Get("Access-Control-Allow-Headers"), "Authorization")
	code, _, header = f.do(t, http.MethodOptions, checkPath, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
	require.NotEqual(t, http.StatusNoContent, code)
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))

	_, err = web.NewGuard(nil, []string{"app.example.com"})
	require.ErrorContains(t, err, `"app.example.com" is no origin`)
}

// FuzzRequests sends bodies of any bytes: each has an answer in the protocol.
func FuzzRequests(f *testing.F) {
	f.Add("{}", false)
	f.Add("\x00\x00\x00\x00\x02{}", true)
	f.Fuzz(func(t *testing.T, body string, isStream bool) {
		calls := web.NewListener()
		require.NoError(t, calls.Close())
		facade, err := web.New(web.Options{
			Services: []protoreflect.ServiceDescriptor{healthpb.File_grpc_health_v1_health_proto.Services().Get(0)},
			Listener: calls, MaxMessageBytes: 1 << 10, MaxIncoming: 1 << 20, MaxUnread: 1 << 20, StallTimeout: time.Minute,
			OnPanic: func(p *contain.PanicError) { t.Error(p) },
		})
		require.NoError(t, err)
		path, contentType := checkPath, "application/json"
		if isStream {
			path, contentType = watchPath, "application/connect+json"
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		facade.ServeHTTP(w, r)
		text := w.Body.Bytes()
		if isStream {
			require.GreaterOrEqual(t, len(text), 5)
			require.EqualValues(t, 2, text[0])
			text = text[5:]
		}
		require.True(t, json.Valid(text), "%q", text)
	})
}

// brittleWriter panics in its second write.
type brittleWriter struct {
	http.ResponseWriter

	writes int
}

func (w *brittleWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes == 2 {
		panic("brittle")
	}
	return w.ResponseWriter.Write(b)
}

func (w *brittleWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestPanicInAStreamEndsItWithAnEnvelope(t *testing.T) {
	panics := make(chan *contain.PanicError, 1)
	f := start(t, func(o *web.Options) { o.OnPanic = func(p *contain.PanicError) { panics <- p } }, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&brittleWriter{ResponseWriter: w}, r) })
	})
	_, body, _ := f.post(t, watchPath, "application/connect+json", "\x00\x00\x00\x00\x02{}")
	require.ErrorContains(t, <-panics, "brittle")
	head, last, isThere := strings.Cut(body, `{"error"`)
	require.True(t, isThere, body)
	require.Contains(t, last, `"code":"internal"`)
	require.Equal(t, byte(len(`{"error"`)+len(last)), head[len(head)-1], "the length of the last envelope")
}
