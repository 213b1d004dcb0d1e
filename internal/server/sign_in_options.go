package server

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
	"github.com/graphd-dev/graphd/internal/identity/session"
	"github.com/graphd-dev/graphd/internal/loopback"
)

// SignInOptions are those of people who sign in in a browser.
type SignInOptions struct {
	HTTPURL            string
	SignInIssuer       string
	SignInClient       string
	SignInSecretFile   string
	SignInScopes       []string
	HTTPSession        time.Duration
	HTTPSessionKeyFile string
}

// RegisterFlags registers the options.
func (o *SignInOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.HTTPURL, flagHTTPURL, "",
		"URL by which browsers reach --http, like https://graphd.example.com; --http-sign-in-issuer needs it")
	f.StringVar(&o.SignInIssuer, flagSignInIssuer, "",
		"URL of an issuer, as --token-issuers has it, at which people sign in in a browser by OpenID Connect; needs --http-sign-in-client and --http-url "+
			"(default: the page asks for a token)")
	f.StringVar(&o.SignInClient, flagSignInClient, "",
		"id that --http-sign-in-issuer has given to this server; register --http-url with the path /sign-in/callback as its redirect URL there")
	f.StringVar(&o.SignInSecretFile, flagSignInSecretFile, "", "file with the secret of --http-sign-in-client, alone (default: it has none)")
	f.StringSliceVar(&o.SignInScopes, flagSignInScopes, []string{"openid", "profile", "email"},
		"scopes that --http-sign-in-issuer is asked for, with commas between: openid, and those that put the claims of --token-issuers into the ID token")
	f.DurationVar(&o.HTTPSession, flagHTTPSession, session.MaxAge, "how long a person stays signed in in a browser, at most 12h")
	f.StringVar(&o.HTTPSessionKeyFile, flagHTTPSessionKeyFile, "",
		"file with keys that seal sessions: lines \"id: base64 of 32 bytes\", the first one seals, all open; the same for all replicas "+
			"(default: a new key at each start, so that people sign in again)")
}

// Names of options that are also used in messages.
const (
	flagHTTPURL            = "http-url"
	flagSignInIssuer       = "http-sign-in-issuer"
	flagSignInClient       = "http-sign-in-client"
	flagSignInSecretFile   = "http-sign-in-secret-file" //nolint:gosec // the name of an option
	flagSignInScopes       = "http-sign-in-scopes"
	flagHTTPSession        = "http-session"
	flagHTTPSessionKeyFile = "http-session-key-file"
)

// Bounds of the options of sign-in.
const (
	leastSession    = time.Minute
	maxSecretBytes  = 4 << 10
	maxSignInText   = 1 << 10 // of an id and of a scope
	maxSignInScopes = 32
	scopeOpenID     = "openid"
)

// validateSignIn returns an *exit.UsageError for values that can't work together.
func (o *Options) validateSignIn() error {
	for _, given := range []struct{ flag, value string }{
		{flagSignInClient, o.SignInClient}, {flagSignInSecretFile, o.SignInSecretFile}, {flagHTTPSessionKeyFile, o.HTTPSessionKeyFile},
	} {
		if o.SignInIssuer == "" && given.value != "" {
			return exit.Usagef("--%s needs --%s", given.flag, flagSignInIssuer).WithHint("give the URL of an issuer that --token-issuers lists")
		}
	}
	if o.HTTPURL != "" {
		if err := o.checkHTTPURL(); err != nil {
			return err
		}
	}
	if o.SignInIssuer == "" {
		return nil
	}
	if err := o.checkSignInNeeds(); err != nil {
		return err
	}
	return o.checkSignInValues()
}

// checkSignInNeeds refuses sign-in without the options that it needs.
func (o *Options) checkSignInNeeds() error {
	for _, c := range []struct{ flag, value, hint string }{
		{flagHTTP, o.HTTP, "give an address, like --http 127.0.0.1:7780"},
		{"token-issuers", o.TokenIssuers, "give --token-issuers FILE; an entry of it says how the claims of the issuer name a caller"},
		{flagSignInClient, o.SignInClient, "give the id that the issuer has given to this server"},
		{flagHTTPURL, o.HTTPURL, "give the URL by which browsers reach --http, like https://graphd.example.com"},
	} {
		if c.value == "" {
			return exit.Usagef("--%s needs --%s", flagSignInIssuer, c.flag).WithHint("%s", c.hint)
		}
	}
	return nil
}

// checkSignInValues refuses values that can't work.
func (o *Options) checkSignInValues() error {
	switch {
	case !jwt.IsSafeURL(o.SignInIssuer):
		return exit.Usagef("--%s %q can't be used for discovery", flagSignInIssuer, o.SignInIssuer).WithHint("want %s", jwt.WantSafeURL)
	case !isSignInText(o.SignInClient):
		return exit.Usagef("--%s %.100q is no id", flagSignInClient, o.SignInClient).WithHint("want at most %d visible characters of ASCII", maxSignInText)
	case o.HTTPSession < leastSession || o.HTTPSession > session.MaxAge:
		return exit.Usagef("--%s is %s", flagHTTPSession, o.HTTPSession).WithHint("want %s to %s, like 8h", leastSession, session.MaxAge)
	case len(o.SignInScopes) > maxSignInScopes:
		return exit.Usagef("--%s has %d scopes", flagSignInScopes, len(o.SignInScopes)).WithHint("want at most %d", maxSignInScopes)
	case !slices.Contains(o.SignInScopes, scopeOpenID):
		return exit.Usagef("--%s has no %s", flagSignInScopes, scopeOpenID).WithHint("want scopes like openid,profile,email")
	}
	for _, scope := range o.SignInScopes {
		if !isSignInText(scope) {
			return exit.Usagef("--%s has %q, which is no scope", flagSignInScopes, scope).WithHint("want scopes like openid,profile,email")
		}
	}
	return nil
}

// isSignInText reports whether a text may be an id of a client or a scope.
func isSignInText(text string) bool {
	return text != "" && len(text) <= maxSignInText && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// checkHTTPURL refuses a URL to which browsers would send sessions in plain text.
func (o *Options) checkHTTPURL() error {
	at, err := url.Parse(o.HTTPURL)
	switch {
	case o.HTTP == "":
		return exit.Usagef("--%s needs --%s", flagHTTPURL, flagHTTP).WithHint("give an address, like --http 127.0.0.1:7780")
	case err != nil || at.Hostname() == "" || at.Opaque != "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" || at.Path != "" && at.Path != "/":
		return exit.Usagef("--%s is no URL of a host", flagHTTPURL).WithHint("want https://HOST or https://HOST:PORT, without a user and a path")
	case at.Scheme == "https", at.Scheme == "http" && (o.Insecure || loopback.IsHost(at.Hostname())):
		return nil
	}
	return exit.Usagef("--%s %s would send sessions in plain text to another machine", flagHTTPURL, o.HTTPURL).WithHint("want https://HOST")
}

// readSignInSecret reads the secret of the client, "" without an option. The error is an
// *exit.UsageError.
func (o *SignInOptions) readSignInSecret(log *zap.Logger) (string, error) {
	if o.SignInSecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(o.SignInSecretFile)
	if err != nil {
		return "", exit.Usagef("--%s: %v", flagSignInSecretFile, err).WithHint("want a file with the secret alone")
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || len(secret) > maxSecretBytes || strings.ContainsAny(secret, "\r\n") {
		return "", exit.Usagef("--%s: %s has no secret, or more than one line", flagSignInSecretFile, o.SignInSecretFile).
			WithHint("want one line of at most %d bytes", maxSecretBytes)
	}
	warnAboutReaders(log, "others may read the secret of sign-in: give the file mode 0400", o.SignInSecretFile)
	return secret, nil
}

// readSessionKeys reads the keys of sessions, or makes one. The error is an *exit.UsageError.
func (o *SignInOptions) readSessionKeys(log *zap.Logger) ([]seal.Key, error) {
	if o.HTTPSessionKeyFile == "" {
		return newSessionKeys(), nil
	}
	return readKeys(keyFile{flagHTTPSessionKeyFile, o.HTTPSessionKeyFile, "the keys of sessions"}, log, seal.ParseKeys)
}
