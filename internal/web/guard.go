package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
)

// Guard refuses requests that the page of another site makes a browser send.
type Guard struct {
	hosts   []string // in lower case; nil = any name
	origins []string
	sites   *http.CrossOriginProtection
}

// NewGuard makes a Guard. hosts are the names by which browsers reach the server, besides
// addresses and localhost; nil = any name, because with TLS the certificate names the server.
// origins are the other sites whose pages may call. The error names the origin that is none.
func NewGuard(hosts, origins []string) (*Guard, error) {
	g := &Guard{origins: origins, sites: http.NewCrossOriginProtection()}
	if hosts != nil {
		g.hosts = make([]string, 0, len(hosts))
	}
	for _, host := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	for _, origin := range origins {
		if err := g.sites.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("%q is no origin: want SCHEME://HOST or SCHEME://HOST:PORT", origin)
		}
	}
	return g, nil
}

const reasonForbidden = "ORIGIN_REFUSED"

// Protect refuses requests of other sites, and answers the preflight requests of those that may
// call.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.IsOwnHost(r.Host) {
			// The name of an attacker's site may lead to this server, and its page is of one origin with it then.
			writeError(w, newError(codes.PermissionDenied, reasonForbidden,
				fmt.Sprintf("the server has no name %.100q: an operator can give it with --http-host", r.Host), map[string]string{"field": "Host"}))
			return
		}
		origin := r.Header.Get("Origin")
		if origin != "" && slices.Contains(g.origins, origin) {
			allowOrigin(w.Header(), origin)
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if err := g.sites.Check(r); err != nil {
			writeError(w, newError(codes.PermissionDenied, reasonForbidden,
				"pages of another site may not call: an operator can allow it with --http-origin", map[string]string{"field": "Origin"}))
			return
		}
		if !isOwnSite(r) && (origin != "" || r.Method != http.MethodGet && r.Method != http.MethodHead) {
			// Pages of other sites call with a token of their own, never as the person who uses the browser.
			r.Header.Del("Cookie")
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnSite reports whether a request is one of a page of this server, of the person who uses the
// browser, or of no browser.
func isOwnSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	at, err := url.Parse(origin)
	return err == nil && at.Host == r.Host
}

// allowOrigin lets a page of another site read a response.
func allowOrigin(to http.Header, origin string) {
	to.Set("Access-Control-Allow-Origin", origin)
	to.Add("Vary", "Origin")
	to.Set("Access-Control-Allow-Methods", http.MethodPost)
	to.Set("Access-Control-Allow-Headers", strings.Join(slices.Concat(callHeaders(), protocolHeaders()), ", "))
	to.Set("Access-Control-Expose-Headers", strings.Join(shownHeaders(), ", "))
	to.Set("Access-Control-Max-Age", "7200")
}

// IsOwnHost reports whether the Host of a request is one of this server: a page can't have made its
// own name lead here.
func (g *Guard) IsOwnHost(host string) bool {
	if g.hosts == nil {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(g.hosts, host)
}
