package server

import (
	"crypto/rand"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
	"github.com/graphd-dev/graphd/internal/identity/session"
	"github.com/graphd-dev/graphd/internal/web/signin"
)

// openSignIn makes what signs people in in their browsers, and has their sessions accepted. The
// error is an *exit.UsageError.
func (o *Options) openSignIn(callers *callerFiles, log *zap.Logger) (*signin.Handler, error) {
	opts := signin.Options{TakesTokens: o.APIKeys != "" || o.TokenIssuers != "", Now: time.Now, Log: log}
	if o.SignInIssuer == "" {
		return signin.New(opts)
	}
	if !callers.tokens.HasIssuer(o.SignInIssuer) {
		return nil, exit.Usagef("--%s %s is no issuer of --token-issuers", flagSignInIssuer, o.SignInIssuer).
			WithHint("add it to %s, or write it as it stands there", o.TokenIssuers)
	}
	secret, err := o.readSignInSecret(log)
	if err != nil {
		return nil, err
	}
	keys, err := o.readSessionKeys(log)
	if err != nil {
		return nil, err
	}
	sealer, err := seal.NewTextBox(keys)
	if err != nil {
		return nil, err
	}
	if opts.PublicURL, err = url.Parse(strings.TrimSuffix(o.HTTPURL, "/")); err != nil {
		return nil, exit.Usagef("--%s: %v", flagHTTPURL, err)
	}
	sessions := session.New(session.Options{Sealer: sealer, Claims: callers.tokens, Now: time.Now, Age: o.HTTPSession})
	callers.Sessions = sessions
	opts.Sessions, opts.Sealer = sessions, sealer
	opts.Provider = signin.NewProvider(signin.ProviderOptions{
		Issuer: o.SignInIssuer, Client: o.SignInClient, Secret: secret, Scopes: o.SignInScopes,
		RedirectURL: opts.PublicURL.String() + signin.PathCallback, Tokens: callers.tokens,
		HTTP: jwt.NewClient(o.IssuerTransport), IsSafeURL: jwt.IsSafeURL, Now: time.Now,
	})
	return signin.New(opts)
}

// newSessionKeys makes a key for this process alone.
func newSessionKeys() []seal.Key {
	secret := make([]byte, seal.KeySize)
	_, _ = rand.Read(secret) // the program ends when the system has no random bytes
	return []seal.Key{{ID: "p", Secret: secret}}
}
