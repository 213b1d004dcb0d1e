package identity

import (
	"context"
	"crypto/x509"
	"strings"
)

// MaxTokenBytes bounds a token. A longer one is refused before anything reads it.
const MaxTokenBytes = 16 << 10

// APIKeyPrefix begins every API key, and no JWT: a JWT begins with a JSON object.
const APIKeyPrefix = "gk_"

// Credentials are what a call brings to show who makes it.
type Credentials struct {
	// Certificates are the chain that TLS has verified, leaf first.
	Certificates []*x509.Certificate
	// Token is the bearer token without its scheme. "" = none.
	Token string
}

// Authenticator tells who has these credentials. The error is an *Error when the
// credentials are refused, and the cause of ctx when it ends first.
type Authenticator interface {
	Authenticate(ctx context.Context, given Credentials) (Principal, error)
}

// Chain passes each credential to the authenticator of its kind. nil stands for a
// kind that the server does not accept.
type Chain struct {
	Certificates Authenticator
	APIKeys      Authenticator // tokens that begin with APIKeyPrefix
	JWTs         Authenticator // all other tokens
}

// Authenticate checks every credential of a call. The principal is that of the
// certificate, or that of the token when no rule maps the certificate. A token that
// is not valid refuses the call, whatever its certificate says.
func (c *Chain) Authenticate(ctx context.Context, given Credentials) (Principal, error) {
	refusal := error(&Error{Reason: NoCredentials})
	var caller Principal
	isKnown := false
	if len(given.Certificates) > 0 && c.Certificates != nil {
		var err error
		caller, err = c.Certificates.Authenticate(ctx, Credentials{Certificates: given.Certificates})
		if err != nil {
			refusal = err
		}
		isKnown = err == nil
	}
	if given.Token != "" {
		byToken, err := c.authenticateToken(ctx, given.Token)
		if err != nil {
			return Principal{}, err
		}
		if !isKnown {
			return byToken, nil
		}
	}
	if !isKnown {
		return Principal{}, refusal
	}
	return caller, nil
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
