package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/notify"
)

// Bounds of a request.
const (
	// Timeout bounds the time from the connection to the end of the answer.
	Timeout = 10 * time.Second
	// MaxAnswerBytes bounds what is read of an answer.
	MaxAnswerBytes = 64 << 10
)

// Options make a Client.
type Options struct {
	URL     *url.URL
	Secrets []Secret // one or two; each signs every request
	// Render returns the body of an event.
	Render func(e *notify.Event) ([]byte, error)
	// TraceOf returns the W3C trace context of an event, as headers; nil = events have none.
	TraceOf   func(ctx context.Context, e *notify.Event) map[string]string
	Transport http.RoundTripper // see NewTransport
	Now       func() time.Time
	UserAgent string
}

// Client posts events to an endpoint. It is safe for concurrent use.
type Client struct {
	opts Options
	http http.Client
}

// New makes a Client. It follows no redirection: the endpoint is the one that was named.
func New(opts Options) *Client {
	return &Client{opts: opts, http: newHTTPClient(opts.Transport)}
}

func newHTTPClient(transport http.RoundTripper) http.Client {
	return http.Client{
		Transport: transport, Timeout: Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// PostJSON posts a JSON text to a target once, over a connection of its own, with a W3C trace context
// as further headers. Its errors are those of Client.SendEvent.
func PostJSON(ctx context.Context, to Target, id, userAgent string, trace map[string]string, body []byte) error {
	transport := NewTransport(to.CheckAddress)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL.String(), bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Webhook-Id", id)
	setTrace(req, trace)
	by := newHTTPClient(transport)
	return send(&by, req)
}

// StatusError is the error of an answer that does not take the event.
type StatusError struct{ Status int }

// Error names the status.
func (e *StatusError) Error() string {
	if e.Status >= 300 && e.Status < 400 {
		return fmt.Sprintf("the endpoint answers %d %s, and redirections are not followed", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("the endpoint answers %d %s", e.Status, http.StatusText(e.Status))
}

// SendEvent posts an event. The error is notify.ErrGone for the status 410, a *StatusError for
// any other that is not 2xx, or says why there is no answer. It shows neither the URL nor the body.
func (c *Client) SendEvent(ctx context.Context, e *notify.Event) error {
	body, err := c.opts.Render(e)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opts.URL.String(), bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	at := c.opts.Now().Unix()
	req.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	req.Header.Set("User-Agent", c.opts.UserAgent)
	req.Header.Set("Webhook-Id", e.ID)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(at, 10))
	req.Header.Set("Webhook-Signature", signAll(c.opts.Secrets, e.ID, at, body))
	if c.opts.TraceOf != nil {
		setTrace(req, c.opts.TraceOf(ctx, e))
	}
	return send(&c.http, req)
}

// setTrace adds a trace context to a request.
func setTrace(req *http.Request, trace map[string]string) {
	for name, value := range trace {
		req.Header.Set(name, value)
	}
}

// send makes a request. Its errors are those of SendEvent.
func send(by *http.Client, req *http.Request) error {
	resp, err := by.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	// The status counts. What is read lets the connection be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, MaxAnswerBytes))
	_ = resp.Body.Close()
	switch status := resp.StatusCode; {
	case status >= 200 && status <= 299:
		return nil
	case status == http.StatusGone:
		return notify.ErrGone
	default:
		return &StatusError{status}
	}
}

// withoutURL returns an error of a request without its URL, which may have a secret in it.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		if failed.Timeout() {
			return fmt.Errorf("the endpoint has not answered within %s", Timeout)
		}
		return failed.Err
	}
	return err
}
