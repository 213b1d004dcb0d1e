package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/notify/webhook"
)

func parseSecret(t *testing.T, text string) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text)
	require.NoError(t, err)
	return s
}

// The example of the documentation of Standard Webhooks.
const (
	exampleSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	exampleTime      = 1614265330
	exampleBody      = `{"test": 2432232314}`
	exampleSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

// transport answers requests in place of an endpoint.
type transport func(req *http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func respond(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}
}

func newClient(t *testing.T, to string, over http.RoundTripper, secrets ...string) *webhook.Client {
	t.Helper()
	at, err := url.Parse(to)
	require.NoError(t, err)
	o := webhook.Options{
		URL: at, Transport: over, UserAgent: "graphd/test", Now: func() time.Time { return time.Unix(exampleTime, 0) },
		Render: func(*notify.Event) ([]byte, error) { return []byte(exampleBody), nil },
	}
	for _, text := range secrets {
		o.Secrets = append(o.Secrets, parseSecret(t, text))
	}
	return webhook.New(o)
}

func TestRequestsAreSigned(t *testing.T) {
	other := "whsec_" + strings.Repeat("A", 32)
	var got *http.Request
	var body string
	c := newClient(t, "https://hooks.example.com/a?b=c", transport(func(req *http.Request) (*http.Response, error) {
		text, err := io.ReadAll(req.Body)
		got, body = req, string(text)
		return respond(http.StatusNoContent, http.NoBody), err
	}), exampleSecret, other)
	require.NoError(t, c.SendEvent(t.Context(), &notify.Event{ID: exampleID}))
	require.Equal(t, "POST https://hooks.example.com/a?b=c", got.Method+" "+got.URL.String())
	require.Equal(t, exampleBody, body)
	require.Equal(t, "application/cloudevents+json; charset=utf-8", got.Header.Get("Content-Type"))
	require.Equal(t, exampleID, got.Header.Get("webhook-id"))
	require.Equal(t, "1614265330", got.Header.Get("webhook-timestamp"))
	signatures := strings.Fields(got.Header.Get("webhook-signature"))
	require.Len(t, signatures, 2)
	require.Equal(t, exampleSignature, signatures[0])
	require.Regexp(t, `^v1,[A-Za-z0-9+/]{43}=$`, signatures[1])
	require.NotEqual(t, signatures[0], signatures[1])
}

func TestRequestsHaveTheTraceOfTheirEvent(t *testing.T) {
	var got *http.Request
	at, err := url.Parse("https://hooks.example.com/a")
	require.NoError(t, err)
	c := webhook.New(webhook.Options{
		URL: at, Now: time.Now, Render: func(*notify.Event) ([]byte, error) { return []byte(exampleBody), nil },
		TraceOf: func(_ context.Context, e *notify.Event) map[string]string {
			return map[string]string{"traceparent": "of " + e.ID}
		},
		Transport: transport(func(req *http.Request) (*http.Response, error) {
			got = req
			return respond(http.StatusNoContent, http.NoBody), nil
		}),
	})
	require.NoError(t, c.SendEvent(t.Context(), &notify.Event{ID: exampleID}))
	require.Equal(t, "of "+exampleID, got.Header.Get("Traceparent"))
}

func TestAnswers(t *testing.T) {
	for status, want := range map[int]string{
		200: "", 202: "", 204: "", 299: "",
		301: "the endpoint answers 301 Moved Permanently, and redirections are not followed",
		307: "the endpoint answers 307 Temporary Redirect, and redirections are not followed",
		400: "the endpoint answers 400 Bad Request", 500: "the endpoint answers 500 Internal Server Error",
		410: notify.ErrGone.Error(),
	} {
		calls := 0
		c := newClient(t, "https://hooks.example.com/secret-path", transport(func(*http.Request) (*http.Response, error) {
			calls++
			resp := respond(status, strings.NewReader("what happened"))
			resp.Header.Set("Location", "https://elsewhere.example.com")
			return resp, nil
		}), exampleSecret)
		err := c.SendEvent(t.Context(), &notify.Event{})
		require.Equal(t, 1, calls, status)
		if want == "" {
			require.NoError(t, err, status)
			continue
		}
		require.EqualError(t, err, want)
		require.Equal(t, status == http.StatusGone, errors.Is(err, notify.ErrGone))
	}
}

func TestErrorsHideTheURL(t *testing.T) {
	c := newClient(t, "https://hooks.example.com/secret-path", transport(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("connection reset")
	}), exampleSecret)
	require.EqualError(t, c.SendEvent(t.Context(), &notify.Event{}), "connection reset")
}

func TestAnEndpointThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "https://hooks.example.com", transport(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}), exampleSecret)
		require.EqualError(t, c.SendEvent(t.Context(), &notify.Event{}), "the endpoint has not answered within 10s")
	})
}

// endless is an answer that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func TestAnswersAreReadUpToALimit(t *testing.T) {
	var body endless
	c := newClient(t, "https://hooks.example.com", transport(func(*http.Request) (*http.Response, error) {
		return respond(http.StatusOK, &body), nil
	}), exampleSecret)
	require.NoError(t, c.SendEvent(t.Context(), &notify.Event{}))
	require.LessOrEqual(t, body.read, 2*webhook.MaxAnswerBytes)
}

// The address is checked when it is dialled: whatever a name has led to before.
func TestAddressesAreCheckedWhenTheyAreDialled(t *testing.T) {
	called := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer s.Close()
	port := netip.MustParseAddrPort(s.Listener.Addr().String()).Port()
	refused := errors.New("not there")
	var seen []string
	over := webhook.NewTransport(func(_, address string) error {
		seen = append(seen, address)
		return refused
	})
	to := "http://localhost:" + netip.AddrPortFrom(netip.IPv4Unspecified(), port).String()[len("0.0.0.0:"):]
	err := newClient(t, to, over, exampleSecret).SendEvent(t.Context(), &notify.Event{})
	require.ErrorIs(t, err, refused)
	require.NotEmpty(t, seen)
	require.False(t, called)
	over = webhook.NewTransport(func(string, string) error { return nil })
	require.NoError(t, newClient(t, to, over, exampleSecret).SendEvent(t.Context(), &notify.Event{}))
	require.True(t, called)
}

func TestACancelledRequestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, "https://hooks.example.com", transport(func(req *http.Request) (*http.Response, error) {
		cancel()
		<-req.Context().Done()
		return nil, req.Context().Err()
	}), exampleSecret)
	require.ErrorIs(t, c.SendEvent(ctx, &notify.Event{}), context.Canceled)
}

func TestSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "does not begin with whsec_",
		"MfKQ9r8GKYqrTwjUPD8ILPZI":            "does not begin with whsec_",
		"whsec_%":                             "is no base64 after whsec_",
		"whsec_c2hvcnQ=":                      "has 5 bytes",
		"whsec_" + strings.Repeat("AAAA", 22): "has 66 bytes",
	} {
		_, err := webhook.ParseSecret(text)
		require.EqualError(t, err, want)
	}
	s := parseSecret(t, " "+exampleSecret+"\n")
	require.Equal(t, "whsec_…", s.String())
	require.NotContains(t, s.GoString(), "MfKQ")
}
