package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a request.
const (
	maxBody = 2 << 20 // graphd sends at most 1 MiB
	maxAge  = 5 * time.Minute
)

// event is what this program reads of an event.
type event struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
	Data    struct {
		Interrupt struct {
			ThreadID  string   `json:"threadId"`
			Graph     string   `json:"graph"`
			Message   string   `json:"message"`
			Assignees []string `json:"assignees"`
			People    struct {
				Users []string `json:"users"`
			} `json:"people"`
		} `json:"interrupt"`
		Entry struct {
			Users []string `json:"users"`
		} `json:"entry"`
	} `json:"data"`
}

// receiver is the endpoint of webhooks.
type receiver struct {
	key  []byte
	send func(ctx context.Context, e *event) error
	now  func() time.Time
}

// ServeHTTP sends the mail of an event before it takes the event: what fails comes again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	if !r.isSigned(req.Header, body) {
		http.Error(w, "the signature does not fit", http.StatusUnauthorized)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, "the body is no event", http.StatusBadRequest)
		return
	}
	switch strings.TrimPrefix(e.Type, "dev.graphd.interrupt.") {
	case "asked", "reminded", "escalated", "delegated":
		if err := r.send(req.Context(), &e); err != nil {
			slog.Error("no mail", "event", e.ID, "error", err)
			http.Error(w, "the mail server does not take it", http.StatusServiceUnavailable)
			return
		}
	default: // no mail
	}
	w.WriteHeader(http.StatusNoContent)
}

// isSigned reports whether a request is signed with the secret, and was sent just now.
func (r *receiver) isSigned(h http.Header, body []byte) bool {
	sent, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || r.now().Sub(time.Unix(sent, 0)).Abs() > maxAge {
		return false
	}
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), sent, body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return slices.ContainsFunc(strings.Fields(h.Get("webhook-signature")), func(got string) bool { return hmac.Equal([]byte(got), want) })
}

// parseSecret reads whsec_ and the base64 of a key.
func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) == 0 {
		return nil, errors.New("must be the secret of the endpoint, whsec_…")
	}
	return key, nil
}
