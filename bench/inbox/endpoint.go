package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// endpoint is a receiver of webhooks on this machine. It can let its events wait.
type endpoint struct {
	server *http.Server
	port   string

	mu      sync.Mutex
	open    chan struct{} // closed = events are taken
	seen    map[string]struct{}
	changed chan struct{} // has room for one value
}

func startEndpoint(ctx context.Context) (*endpoint, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{open: make(chan struct{}), seen: make(map[string]struct{}), changed: make(chan struct{}, 1)}
	e.server = &http.Server{Handler: http.HandlerFunc(e.takeEvent), ReadHeaderTimeout: time.Minute}
	if _, e.port, err = net.SplitHostPort(l.Addr().String()); err != nil {
		return nil, err
	}
	go func() { _ = e.server.Serve(l) }() // closeServer ends it
	return e, nil
}

func (e *endpoint) closeServer() { _ = e.server.Close() }

// writeOptions writes the file with the endpoint into a folder, and returns the options that name it.
func (e *endpoint) writeOptions(dir string) ([]string, error) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	content := fmt.Sprintf("endpoints:\n- name: bench\n  url: http://127.0.0.1:%s/\n  kinds: [asked]\n  secrets: [{ value: %s }]\n", e.port, secret)
	file := filepath.Join(dir, "webhooks.yaml")
	return []string{"--webhooks", file, "--webhook-allow", "127.0.0.1"}, os.WriteFile(file, []byte(content), 0o600)
}

// takeEvent takes an event as soon as the endpoint is open.
func (e *endpoint) takeEvent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then the end of the client is seen
	e.mu.Lock()
	open := e.open
	e.mu.Unlock()
	select {
	case <-open:
	case <-r.Context().Done():
		return
	}
	e.mu.Lock()
	e.seen[r.Header.Get("Webhook-Id")] = struct{}{}
	e.mu.Unlock()
	select {
	case e.changed <- struct{}{}:
	default:
	}
	w.WriteHeader(http.StatusNoContent)
}

// holdEvents lets the events that come from now on wait.
func (e *endpoint) holdEvents() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open, e.seen = make(chan struct{}), make(map[string]struct{})
}

// takeEvents opens the endpoint, and returns when it has so many events.
func (e *endpoint) takeEvents(ctx context.Context, count int) error {
	close(e.open)
	for {
		e.mu.Lock()
		n := len(e.seen)
		e.mu.Unlock()
		if n >= count {
			return nil
		}
		select {
		case <-e.changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d events have come: %w", n, count, context.Cause(ctx))
		}
	}
}
