package jwt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Times of fetches.
const (
	minFetchInterval = 10 * time.Second // between the begins of two fetches that tokens cause
	refreshInterval  = 5 * time.Minute
	fetchTimeout     = 5 * time.Second
	maxWait          = 2 * time.Second // of a request for keys
)

const maxReportBytes = 300 // an answer of the issuer may be in the text of an error

// remoteKeys are keys that are fetched, from a URL or by discovery. One goroutine
// fetches, in keepFresh. The others ask for a fetch in refreshKeys.
type remoteKeys struct {
	issuer string
	url    string // "" = found by discovery
	client *http.Client
	report func(error)
	keys   atomic.Pointer[keySet] // nil = not fetched yet
	asked  chan struct{}          // of size 1

	mu        sync.Mutex
	lastStart time.Time     // of the newest fetch, zero = none
	done      chan struct{} // closed after the fetch that is under way or asked for; nil = none
}

func newRemoteKeys(config *Issuer, client *http.Client, report func(error)) *remoteKeys {
	return &remoteKeys{
		issuer: config.Issuer, url: config.JWKSURL, client: client, report: report, asked: make(chan struct{}, 1),
	}
}

func (r *remoteKeys) currentKeys() *keySet { return r.keys.Load() }

// refreshKeys asks for newer keys, and waits for them at most maxWait. It does nothing
// when the newest fetch began less than minFetchInterval ago and is over. The error
// is the cause of ctx.
func (r *remoteKeys) refreshKeys(ctx context.Context) error {
	done := r.askForFetch()
	if done == nil {
		return nil
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// askForFetch returns the end of the fetch that is under way or asked for. It is nil
// when there is none, and it is too early for another one.
func (r *remoteKeys) askForFetch() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done != nil {
		return r.done
	}
	if !r.lastStart.IsZero() && time.Since(r.lastStart) < minFetchInterval {
		return nil
	}
	r.done = make(chan struct{})
	select {
	case r.asked <- struct{}{}:
	default:
	}
	return r.done
}

// keepFresh fetches the keys at once, then at intervals and when asked, until ctx
// ends. It reports the first of several failures in a row. The keys before stay.
func (r *remoteKeys) keepFresh(ctx context.Context) {
	retry := backoff.Policy{First: minFetchInterval, Max: refreshInterval}
	found := r.url
	isAsked := false
	for failures := 0; ; {
		r.beginFetch()
		var keys *keySet
		var err error
		if !isAsked && r.url == "" {
			found = "" // the issuer may have moved its keys
		}
		if p := contain.Call(func() { keys, found, err = r.fetchKeys(ctx, found) }); p != nil {
			err = p
		}
		if ctx.Err() != nil {
			r.endFetch(nil)
			return
		}
		r.endFetch(keys)
		pause := refreshInterval
		if err == nil {
			failures = 0
		} else {
			found = r.url
			failures++
			pause = retry.Delay(failures)
			if failures == 1 {
				r.report(fmt.Errorf("issuer %s: its keys can't be fetched, those before stay in use: %s",
					r.issuer, visible.Brief(err.Error(), maxReportBytes)))
			}
		}
		var goesOn bool
		if isAsked, goesOn = r.waitForNext(ctx, pause); !goesOn {
			return
		}
	}
}

// waitForNext waits for a pause, or until a fetch is asked for. It returns false when
// ctx ends.
func (r *remoteKeys) waitForNext(ctx context.Context, pause time.Duration) (isAsked, goesOn bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, false
	case <-timer.C:
		return false, true
	case <-r.asked:
		return true, true
	}
}

func (r *remoteKeys) beginFetch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastStart = time.Now()
	if r.done == nil {
		r.done = make(chan struct{})
	}
	select {
	case <-r.asked: // this fetch serves it
	default:
	}
}

// endFetch stores the keys unless they are nil, and wakes those who wait.
func (r *remoteKeys) endFetch(keys *keySet) {
	if keys != nil {
		r.keys.Store(keys)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.done)
	r.done = nil
}

// fetchKeys fetches the keys from a URL, which it finds by discovery if it is "".
func (r *remoteKeys) fetchKeys(ctx context.Context, from string) (keys *keySet, found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if from == "" {
		if from, err = r.discoverURL(ctx); err != nil {
			return nil, "", err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("%s answers %s: want 200 OK", from, answer.Status)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, "", err
	}
	keys, err = parseKeys(text)
	return keys, from, err
}

// discoverURL returns the URL of the keys that the issuer's metadata names.
func (r *remoteKeys) discoverURL(ctx context.Context) (string, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, r.client), r.issuer)
	if err != nil {
		return "", err
	}
	var metadata struct {
		JWKSURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return "", err
	}
	if !IsSafeURL(metadata.JWKSURL) {
		return "", errors.New("the jwks_uri of the issuer's metadata is not a safe URL: want " + WantSafeURL)
	}
	return metadata.JWKSURL, nil
}

// boundedTransport bounds the bytes of each answer.
type boundedTransport struct {
	next http.RoundTripper
}

// RoundTrip makes reads beyond maxJWKSBytes fail.
func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxJWKSBytes)
	}
	return answer, err
}

// NewClient returns a client for the endpoints of issuers. Its requests and answers are
// bounded, and it follows no redirects: an issuer names its addresses itself. Without a
// transport it has one of its own, with the proxy of the environment.
func NewClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: fetchTimeout, ResponseHeaderTimeout: fetchTimeout, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{
		Transport: boundedTransport{next: transport},
		Timeout:   fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the issuer redirects: want the address of the keys themselves")
		},
	}
}
