// Package signin signs people in in their browsers: by the code flow of OpenID Connect with PKCE,
// which the server makes, so that a page never has a token. It gives the browser a session in a
// cookie, says what there is of it, and ends it.
package signin

import (
	"encoding/json"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/session"
)

// The paths of this package.
const (
	PathSession  = "/session"
	PathSignIn   = "/sign-in"
	PathCallback = PathSignIn + "/callback"
	PathSignOut  = "/sign-out"
)

// Sessions begins, knows and ends sessions, see session.Sessions.
type Sessions interface {
	Begin(who *identity.SignIn) (sealed string, until time.Time, err error)
	Find(sealed string) (identity.Principal, time.Time, error)
	End(sealed string)
}

// Options make a Handler.
type Options struct {
	// Provider signs people in. nil = there are no sessions, and the fields down to PublicURL
	// have no effect.
	Provider *Provider
	Sessions Sessions
	Sealer   session.Sealer
	// PublicURL is the URL by which browsers reach the server, without a path.
	PublicURL *url.URL
	// TakesTokens reports that callers may have tokens, which the page asks for.
	TakesTokens bool
	Now         func() time.Time
	Log         *zap.Logger
}

// Handler serves sign-in.
type Handler struct {
	opts      Options
	cookies   cookies
	page      *template.Template
	exchanges chan struct{} // has a value for each exchange with the issuer
}

// maxExchanges bounds the exchanges with the issuer at a time.
const maxExchanges = 16

// New makes a Handler. The error is that of a template.
func New(o Options) (*Handler, error) {
	page, err := template.New("").Parse(refusalPage)
	if err != nil {
		return nil, err
	}
	h := &Handler{opts: o, page: page, exchanges: make(chan struct{}, maxExchanges)}
	if o.Provider != nil {
		h.cookies = newCookies(o.PublicURL)
	}
	return h, nil
}

// SessionCookie returns the name of the cookie with the session, "" = there are no sessions.
func (h *Handler) SessionCookie() string { return h.cookies.session }

// Serves reports whether a path is one of this package.
func (*Handler) Serves(path string) bool { return isServed(path) }

func isServed(path string) bool {
	return slices.Contains([]string{PathSession, PathSignIn, PathCallback, PathSignOut}, path)
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := newVisit(h, w, r)
	if p := contain.Call(v.serve); p != nil {
		contain.LogPanic(h.opts.Log, "a sign-in panicked")(p)
		v.showRefusal(reasonInternal)
	}
}

// serve serves the request by its path.
func (v *visit) serve() {
	v.w.Header().Set("Cache-Control", "no-store")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	v.w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	v.w.Header().Set("X-Request-Id", v.id)
	method, serve := http.MethodGet, v.describeSession
	switch v.r.URL.Path {
	case PathSignIn:
		serve = v.beginSignIn
	case PathCallback:
		serve = v.finishSignIn
	case PathSignOut:
		method, serve = http.MethodPost, v.signOut
	}
	switch {
	case v.r.Method != method:
		v.w.Header().Set("Allow", method)
		v.w.WriteHeader(http.StatusMethodNotAllowed)
	case v.opts.Provider == nil && v.r.URL.Path != PathSession && v.r.URL.Path != PathSignOut:
		v.showRefusal(reasonNoWay)
	default:
		serve()
	}
}

// way is a way to sign in.
type way struct {
	// Kind is oidc, where a person goes to path, or token, which a person types.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
}

// state is the answer of PathSession.
type state struct {
	Ways     []way `json:"ways"`
	SignedIn bool  `json:"signedIn"`
	// EndTime is when the session ends.
	EndTime *time.Time `json:"endTime,omitempty"`
}

// describeSession says which ways of sign-in there are, and whether the browser has a session.
func (v *visit) describeSession() {
	s := state{Ways: []way{}}
	if v.opts.Provider != nil {
		s.Ways = append(s.Ways, way{Kind: "oidc", Name: v.opts.Provider.name(), Path: PathSignIn})
		if sealed := v.readCookie(v.cookies.session); sealed != "" {
			_, until, err := v.opts.Sessions.Find(sealed)
			if err == nil {
				until = until.UTC()
				s.SignedIn, s.EndTime = true, &until
			} else {
				v.removeCookie(v.cookies.session)
			}
		}
	}
	if v.opts.TakesTokens {
		s.Ways = append(s.Ways, way{Kind: "token"})
	}
	v.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(v.w).Encode(s) // the browser has left
}

// signOut ends the session of the browser.
func (v *visit) signOut() {
	if kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		v.w.Header().Set("Accept-Post", "application/json") // no form of another site sends it
		v.w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	if v.opts.Provider != nil {
		if sealed := v.readCookie(v.cookies.session); sealed != "" { // the guard takes those of other sites away
			v.opts.Sessions.End(sealed)
			v.removeCookie(v.cookies.session)
		}
	}
	v.w.WriteHeader(http.StatusNoContent)
}
