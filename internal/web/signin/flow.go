package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
	"golang.org/x/oauth2"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/session"
)

const (
	// signInTime is how long a person may take on the pages of the issuer.
	signInTime = 10 * time.Minute
	// exchangeTime bounds the wait for the issuer, and for a place among the exchanges.
	exchangeTime = 10 * time.Second

	maxToBytes   = 1 << 10 // of the path to which a sign-in leads
	maxCodeBytes = 4 << 10
)

// purposeSignIn is that of sealed sign-ins.
const purposeSignIn = "sign-in"

// begunSignIn is what a browser keeps of a sign-in, sealed.
type begunSignIn struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	To       string `json:"t"`
	Until    int64  `json:"u"` // seconds since 1970
}

// beginSignIn sends a person to the issuer.
func (v *visit) beginSignIn() {
	to := v.r.URL.Query().Get("to")
	if to == "" {
		to = "/"
	}
	if !isOwnPath(to) {
		v.showRefusal(reasonPath)
		return
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), exchangeTime)
	defer cancel()
	flow, err := v.opts.Provider.loadConfig(ctx)
	if err != nil {
		v.refuseExchange(err)
		return
	}
	b := begunSignIn{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: to, Until: v.opts.Now().Add(signInTime).Unix(),
	}
	text, err := json.Marshal(b)
	if err != nil {
		v.refuseExchange(err)
		return
	}
	v.setSignIn(v.opts.Sealer.Seal(purposeSignIn, string(text)))
	v.redirect(flow.AuthCodeURL(b.State, oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier)))
}

// isOwnPath reports whether a text is a path of this server, with a query at most: no reader of a
// URL may find a host in it, and the page takes tokens from fragments.
func isOwnPath(text string) bool {
	if len(text) > maxToBytes || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, `\#`) ||
		strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return false
	}
	at, err := url.Parse(text)
	return err == nil && !isServed(at.Path) && at.Scheme == "" && at.Host == "" && at.User == nil && at.Opaque == "" &&
		strings.HasPrefix(at.Path, "/") && !strings.HasPrefix(at.Path, "//") && !strings.Contains(at.Path, `\`)
}

// redirect sends the browser on. The address is one that the configuration begins.
func (v *visit) redirect(to string) {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}

// finishSignIn makes a session of the code with which a person comes back from the issuer.
func (v *visit) finishSignIn() {
	query := v.r.URL.Query()
	begun, ok := v.takeSignIn()
	if !ok || !isSame(query.Get("state"), begun.State) {
		v.log.Info("a sign-in was not begun in this browser, or took too long")
		v.showRefusal(reasonNotBegun)
		return
	}
	if given := query.Get("iss"); given != "" && given != v.opts.Provider.opts.Issuer {
		v.log.Warn("a sign-in came back from another issuer")
		v.showRefusal(reasonIssuer)
		return
	}
	if code := query.Get("error"); code != "" {
		v.log.Info("the issuer has refused a sign-in", zap.String("reason", shortenText(code)))
		v.showRefusal(reasonDenied)
		return
	}
	code := query.Get("code")
	if code == "" || len(code) > maxCodeBytes {
		v.showRefusal(reasonNotBegun)
		return
	}
	who, err := v.exchangeCode(code, &begun)
	if err != nil {
		v.refuseExchange(err)
		return
	}
	sealed, until, err := v.opts.Sessions.Begin(&who)
	if err != nil {
		v.refuseExchange(err)
		return
	}
	v.log.Info("a person has signed in", zap.String("principal", who.Caller.Name))
	v.setSession(sealed, until)
	v.redirect(v.opts.PublicURL.String() + begun.To)
}

// takeSignIn takes the cookie of a sign-in away from the browser, and returns what it had in it.
func (v *visit) takeSignIn() (begun begunSignIn, ok bool) {
	sealed := v.readCookie(v.cookies.signIn)
	v.removeCookie(v.cookies.signIn)
	text, ok := v.opts.Sealer.Open(purposeSignIn, sealed)
	if !ok || json.Unmarshal([]byte(text), &begun) != nil {
		return begunSignIn{}, false
	}
	return begun, begun.State != "" && v.opts.Now().Before(time.Unix(begun.Until, 0))
}

// isSame compares two texts in a time that does not depend on them.
func isSame(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// errBusy refuses a sign-in when there are too many at a time.
var errBusy = errors.New("too many sign-ins at a time")

// exchangeCode asks the issuer for the person of a code.
func (v *visit) exchangeCode(code string, begun *begunSignIn) (identity.SignIn, error) {
	ctx, cancel := context.WithTimeout(v.r.Context(), exchangeTime)
	defer cancel()
	select {
	case v.exchanges <- struct{}{}:
		defer func() { <-v.exchanges }()
	case <-ctx.Done():
		return identity.SignIn{}, errBusy
	}
	who, err := v.opts.Provider.exchangeCode(ctx, code, begun.Verifier)
	if err != nil {
		return identity.SignIn{}, err
	}
	if !isSame(who.Nonce, begun.Nonce) {
		return identity.SignIn{}, errNonce
	}
	return who, nil
}

// errNonce refuses an ID token of another sign-in.
var errNonce = errors.New("the ID token is that of another sign-in")

// refuseExchange shows why a sign-in has failed, and logs it.
func (v *visit) refuseExchange(err error) {
	shown := reasonProvider
	fields := []zap.Field{zap.String("cause", shortenText(describeCause(err)))}
	if refused, ok := errors.AsType[*identity.Error](err); ok {
		fields = append(fields, zap.String("reason", string(refused.Reason)))
		shown = reasonPerson
		if refused.IsTemporary() {
			shown = reasonProvider
		}
	}
	if _, ok := errors.AsType[*session.TooLargeError](err); ok {
		shown = reasonTooLarge
	}
	switch {
	case errors.Is(err, errBusy):
		shown = reasonBusy
	case errors.Is(err, errNonce):
		shown = reasonNotBegun
	}
	v.log.Warn("a sign-in has failed", fields...)
	v.showRefusal(shown)
}
