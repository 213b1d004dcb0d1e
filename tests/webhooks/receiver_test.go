// Package webhooks_test has servers tell an endpoint what happens to questions, and breaks both.
package webhooks_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secretKey signs what the receiver gets.
const secretKey = "graphd's webhooks are signed!!!!"

func secretText() string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(secretKey)) }

// event is what a receiver reads of an event.
type event struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject"`
	Time        time.Time `json:"time"`
	Data        struct {
		Interrupt struct {
			InterruptID string `json:"interruptId"`
			ThreadID    string `json:"threadId"`
			Message     string `json:"message"`
			State       string `json:"state"`
			Response    any    `json:"response"`
		} `json:"interrupt"`
		Entry struct {
			Number int    `json:"number"`
			Kind   string `json:"kind"`
			Digest string `json:"digest"`
		} `json:"entry"`
	} `json:"data"`
}

// kind returns the last part of the type.
func (e *event) kind() string { return strings.TrimPrefix(e.Type, "dev.graphd.interrupt.") }

// receiver is an endpoint that checks what it gets, and keeps it.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	events   []event // that were taken, in order
	problems []string
	status   int // of the answers; 0 = 204
	refused  int
	redirect string // where it redirects, with such a status
	arrived  chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{arrived: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP takes an event, or refuses it with the status that is set.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	id := req.Header.Get("Webhook-Id")
	mac := hmac.New(sha256.New, []byte(secretKey))
	fmt.Fprintf(mac, "%s.%s.%s", id, req.Header.Get("Webhook-Timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	var e event
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil || json.Unmarshal(body, &e) != nil:
		r.problems = append(r.problems, fmt.Sprintf("the body %q", body))
	case !slices.Contains(strings.Fields(req.Header.Get("Webhook-Signature")), want):
		r.problems = append(r.problems, "the signature "+req.Header.Get("Webhook-Signature"))
	case e.ID != id:
		r.problems = append(r.problems, "the ids "+id+" and "+e.ID)
	case req.Method != http.MethodPost, req.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8":
		r.problems = append(r.problems, req.Method+" "+req.Header.Get("Content-Type"))
	}
	if r.status != 0 {
		r.refused++
		w.Header().Set("Location", r.redirect)
		w.WriteHeader(r.status)
		return
	}
	r.events = append(r.events, e)
	select {
	case r.arrived <- struct{}{}:
	default:
	}
	w.WriteHeader(http.StatusNoContent)
}

// answerWith sets the status of the answers, 0 = the receiver takes events.
func (r *receiver) answerWith(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// countRefused returns how many events the receiver has refused.
func (r *receiver) countRefused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// waitForRefusals waits until so many events were refused.
func (r *receiver) waitForRefusals(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.countRefused() >= n }, 2*time.Minute, 10*time.Millisecond)
}

// taken returns the events that were taken.
func (r *receiver) taken(t *testing.T) []event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.problems)
	return slices.Clone(r.events)
}

// waitFor waits until a condition of the events holds.
func (r *receiver) waitFor(t *testing.T, what string, holds func([]event) bool) []event {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for {
		list := r.taken(t)
		if holds(list) {
			return list
		}
		select {
		case <-r.arrived:
		case <-deadline.C:
			require.FailNow(t, "never seen", "%s in %v", what, kindsOf(list))
		}
	}
}

// kindsOf returns the kinds of the events of each thread, in the order of their first arrival.
func kindsOf(list []event) map[string][]string {
	kinds, seen := map[string][]string{}, map[string]bool{}
	for i := range list {
		e := &list[i]
		if !seen[e.ID] {
			kinds[e.Data.Interrupt.ThreadID] = append(kinds[e.Data.Interrupt.ThreadID], e.kind())
		}
		seen[e.ID] = true
	}
	return kinds
}
