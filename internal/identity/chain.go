package identity

import (
	"context"
	"crypto/x509"
	"strings"
)

// MaxTokenBytes bounds a token. A longer one is refused before anything reads it.
const MaxTokenBytes = 16 << 10

// Bounds of what a call over HTTP brings: of the session in its cookie, and of all values of
// the headers of a trusted proxy.
const (
	MaxSessionBytes   = 4 << 10
	MaxForwardedBytes = 8 << 10
)

// Keys of the metadata by which another door of this server hands on what a call over HTTP
// brings. They count on connections of that door alone, see handshake.RelayedInfo.
const (
	MetadataSession         = "graphd-session"
	MetadataForwardedUser   = "graphd-forwarded-user-bin"
	MetadataForwardedGroups = "graphd-forwarded-groups-bin"
)

// APIKeyPrefix begins every API key, and no JWT: a JWT begins with a JSON object.
const APIKeyPrefix = "gk_"

// Credentials are what a call brings to show who makes it.
type Credentials struct {
	// Certificates are the chain that TLS has verified, leaf first.
	Certificates []*x509.Certificate
	// Token is the bearer token without its scheme. "" = none.
	Token string
	// Relayed is what a call over HTTP may bring besides. nil = the call came over gRPC.
	Relayed *Relayed
}

// Relayed are credentials of calls over HTTP.
type Relayed struct {
	// Sessions are those of the cookies of the browser, sealed.
	Sessions []string
	// Users and Groups are the values of the headers in which a trusted proxy names the
	// caller and its groups.
	Users  []string
	Groups []string
}

// isForwarded reports whether headers name a caller.
func (r *Relayed) isForwarded() bool { return r != nil && len(r.Users)+len(r.Groups) > 0 }

// Authenticator tells who has these credentials. The error is an *Error when the
// credentials are refused, and the cause of ctx when it ends first.
type Authenticator interface {
	Authenticate(ctx context.Context, given Credentials) (Principal, error)
}

// ProxyAuthenticator takes the word of a trusted proxy for who calls. It refuses that of all
// others.
type ProxyAuthenticator interface {
	Authenticator

	// IsProxy reports whether a verified chain is that of the proxy.
	IsProxy(chain []*x509.Certificate) bool
}

// Chain passes each credential to the authenticator of its kind. nil stands for a
// kind that the server does not accept.
type Chain struct {
	Proxies      ProxyAuthenticator
	Certificates Authenticator
	APIKeys      Authenticator // tokens that begin with APIKeyPrefix
	JWTs         Authenticator // all other tokens
	Sessions     Authenticator
}

// Authenticate checks every credential of a call but its session. The principal is that of
// the trusted proxy's headers, or else that of the certificate, or else that of the token. A
// header or a token that is not valid refuses the call, whatever the others say. A browser
// sends its session with every call, so that counts only when nothing else names the caller.
func (c *Chain) Authenticate(ctx context.Context, given Credentials) (Principal, error) {
	caller, err := c.authenticateForwarded(ctx, &given)
	if err != nil {
		return Principal{}, err
	}
	refusal := error(&Error{Reason: NoCredentials})
	if caller == nil && len(given.Certificates) > 0 && c.Certificates != nil {
		byCertificate, err := c.Certificates.Authenticate(ctx, Credentials{Certificates: given.Certificates})
		if err == nil {
			caller = &byCertificate
		} else {
			refusal = err
		}
	}
	if given.Token != "" {
		byToken, err := c.authenticateToken(ctx, given.Token)
		if err != nil {
			return Principal{}, err
		}
		if caller == nil {
			caller = &byToken
		}
	}
	switch {
	case caller != nil:
		return *caller, nil
	case given.Relayed == nil || len(given.Relayed.Sessions) == 0:
		return Principal{}, refusal
	case c.Sessions == nil:
		return Principal{}, &Error{Reason: SessionInvalid}
	}
	return c.Sessions.Authenticate(ctx, Credentials{Relayed: given.Relayed})
}

// authenticateForwarded returns the caller whom a trusted proxy names, nil = none. The
// certificate of the proxy is taken out of the credentials: it is not that of a caller.
func (c *Chain) authenticateForwarded(ctx context.Context, given *Credentials) (*Principal, error) {
	if given.Relayed == nil || c.Proxies == nil {
		return nil, nil
	}
	if given.Relayed.isForwarded() {
		caller, err := c.Proxies.Authenticate(ctx, Credentials{Certificates: given.Certificates, Relayed: given.Relayed})
		return &caller, err
	}
	if c.Proxies.IsProxy(given.Certificates) {
		given.Certificates = nil
	}
	return nil, nil
}

func (c *Chain) authenticateToken(ctx context.Context, token string) (Principal, error) {
	if len(token) > MaxTokenBytes {
		return Principal{}, &Error{Reason: TokenTooLarge}
	}
	verifier, unknown := c.JWTs, TokenIssuer
	if strings.HasPrefix(token, APIKeyPrefix) {
		verifier, unknown = c.APIKeys, TokenUnknown
	}
	if verifier == nil {
		return Principal{}, &Error{Reason: unknown}
	}
	return verifier.Authenticate(ctx, Credentials{Token: token})
}
