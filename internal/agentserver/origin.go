package agentserver

import (
	"fmt"
	"net/http"
	"slices"
)

// Headers of this API for pages of other sites.
const (
	allowedMethods = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
	exposedHeaders = "Content-Location, Location, X-Pagination-Total, X-Pagination-Next, X-Request-Id, Retry-After"
	preflightAge   = "600"
)

// admitHost refuses a request to a name that is not one of the server: the name of an attacker's site
// may lead here, and its page is of one origin with the server then. It reports whether the request is
// to be served.
func (s *Server) admitHost(w http.ResponseWriter, r *http.Request) bool {
	if s.opts.Hosts == nil || s.opts.Hosts.IsOwnHost(r.Host) || slices.Contains(s.opts.Origins, "*") {
		return true
	}
	c := &call{server: s, w: w, r: r}
	c.writeError(newError(http.StatusForbidden, "ORIGIN_REFUSED",
		fmt.Sprintf("the server has no name %.100q: an operator can give it with --langgraph-host", r.Host)).ofField("Host"))
	return false
}

// admitOrigin lets pages of the listed sites read the answer, and refuses pages of others: a browser
// would send what they want to a server that knows no callers. It reports whether the request is to
// be served.
func (s *Server) admitOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	isListed := slices.Contains(s.opts.Origins, "*") || origin != "" && slices.Contains(s.opts.Origins, origin)
	switch {
	case isListed && origin != "":
		allowOrigin(w.Header(), r, origin)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return false
		}
	case origin != "", !isListed && r.Header.Get("Sec-Fetch-Site") == "cross-site":
		c := &call{server: s, w: w, r: r}
		c.writeError(newError(http.StatusForbidden, "ORIGIN_REFUSED",
			"pages of this site may not call: an operator can allow it with --langgraph-origin").ofField("Origin"))
		return false
	}
	return true
}

// allowOrigin lets a page read an answer, and send the headers that its browser asks for.
func allowOrigin(to http.Header, r *http.Request, origin string) {
	to.Set("Access-Control-Allow-Origin", origin)
	to.Add("Vary", "Origin")
	to.Set("Access-Control-Expose-Headers", exposedHeaders)
	if r.Method != http.MethodOptions {
		return
	}
	to.Set("Access-Control-Allow-Methods", allowedMethods)
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		to.Set("Access-Control-Allow-Headers", asked)
	}
	to.Set("Access-Control-Max-Age", preflightAge)
}
