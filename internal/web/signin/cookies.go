package signin

import (
	"net/http"
	"net/url"
	"time"
)

// cookies are the names and attributes of the cookies of a server.
type cookies struct {
	session  string // "" = there are none
	signIn   string
	isSecure bool
}

// newCookies returns the cookies of a server with a URL. The prefix makes browsers refuse cookies
// that other hosts below the same domain or pages in plain text have set: with the sign-in of
// another person, a browser would be signed in as that person.
func newCookies(publicURL *url.URL) cookies {
	if publicURL.Scheme == "https" {
		return cookies{session: "__Host-graphd-session", signIn: "__Host-graphd-sign-in", isSecure: true}
	}
	return cookies{session: "graphd-session", signIn: "graphd-sign-in"}
}

// readCookie returns the value of a cookie, "" when there is none, or not one alone.
func (v *visit) readCookie(name string) string {
	found := v.r.CookiesNamed(name)
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// setSession gives the browser a session.
func (v *visit) setSession(sealed string, until time.Time) {
	c := v.newCookie(v.cookies.session) //nolint:gosec // newCookie sets its attributes
	c.Value, c.Expires, c.MaxAge = sealed, until, int(until.Sub(v.opts.Now()).Seconds())
	http.SetCookie(v.w, c)
}

// setSignIn gives the browser what the end of a sign-in needs. It comes back from the issuer's
// page, which is of another site: SameSite is Lax.
func (v *visit) setSignIn(sealed string) {
	c := v.newCookie(v.cookies.signIn) //nolint:gosec // newCookie sets its attributes
	c.Value, c.MaxAge = sealed, int(signInTime.Seconds())
	http.SetCookie(v.w, c)
}

// removeCookie takes a cookie away from the browser.
func (v *visit) removeCookie(name string) {
	c := v.newCookie(name) //nolint:gosec // newCookie sets its attributes
	c.MaxAge = -1
	http.SetCookie(v.w, c)
}

// newCookie returns a cookie without a value.
func (v *visit) newCookie(name string) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // without TLS, on this machine, a secure cookie would not come back
		Name: name, Path: "/", Secure: v.cookies.isSecure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if name == v.cookies.signIn {
		c.SameSite = http.SameSiteLaxMode
	}
	return c
}
