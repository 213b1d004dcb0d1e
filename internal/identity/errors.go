package identity

import "fmt"

// Reason is why credentials were refused.
type Reason string

// The reasons. A client can see them.
const (
	TokenExpired        Reason = "TOKEN_EXPIRED"
	TokenNotYetValid    Reason = "TOKEN_NOT_YET_VALID" //nolint:gosec // the name of a reason
	TokenAudience       Reason = "TOKEN_AUDIENCE"
	TokenIssuer         Reason = "TOKEN_ISSUER"
	TokenAlgorithm      Reason = "TOKEN_ALGORITHM" //nolint:gosec // the name of a reason
	TokenSignature      Reason = "TOKEN_SIGNATURE"
	TokenMalformed      Reason = "TOKEN_MALFORMED" //nolint:gosec // the name of a reason
	TokenTooLarge       Reason = "TOKEN_TOO_LARGE"
	TokenRevoked        Reason = "TOKEN_REVOKED"
	TokenClaim          Reason = "TOKEN_CLAIM"
	TokenUnknown        Reason = "TOKEN_UNKNOWN"
	TokenInvalid        Reason = "TOKEN_INVALID"
	KeysUnavailable     Reason = "KEYS_UNAVAILABLE"
	CertificateUnmapped Reason = "CERTIFICATE_UNMAPPED"
	SessionExpired      Reason = "SESSION_EXPIRED"
	SessionInvalid      Reason = "SESSION_INVALID"
	ProxyUntrusted      Reason = "PROXY_UNTRUSTED"
	ProxyHeaderInvalid  Reason = "PROXY_HEADER_INVALID"
	NoCredentials       Reason = "NO_CREDENTIALS"
)

// Error is the refusal of credentials. All its texts come from the program or the
// configuration, none from the credentials.
type Error struct {
	Reason Reason
	// Field is the claim or the header, as the configuration names it, or the part of the
	// token that is wrong. "" = all of it.
	Field string
}

// Error says what is wrong, and what would have been right.
func (e *Error) Error() string {
	sentence := sentenceOf(e.Reason)
	if e.Field == "" {
		return sentence
	}
	return fmt.Sprintf("%s (%s)", sentence, e.Field)
}

// IsTemporary reports whether the same credentials may be accepted later without
// anyone changing them: the keys of their issuer could not be fetched.
func (e *Error) IsTemporary() bool { return e.Reason == KeysUnavailable }

func sentenceOf(reason Reason) string {
	switch reason {
	case TokenExpired:
		return "the token has expired: want a new one"
	case TokenNotYetValid:
		return "the token is not valid yet: want one whose nbf and iat are not in the future"
	case TokenAudience:
		return "the token is for another audience: want one with an audience that the server lists"
	case TokenIssuer:
		return "the token is of an issuer that the server does not accept: want one of a configured issuer"
	case TokenAlgorithm:
		return "the token is signed with an algorithm that is not accepted: want an asymmetric one that the server lists"
	case TokenSignature:
		return "the signature of the token is wrong: want one by a current key of its issuer"
	case TokenMalformed:
		return "the token is neither a signed JWT nor an API key: want a token as it was issued"
	case TokenTooLarge:
		return "the token is too large: want at most 16384 bytes"
	case TokenRevoked:
		return "the token has been revoked: want a new one"
	case TokenClaim:
		return "a claim of the token is missing or of the wrong form: want the claims that the server is configured for"
	case TokenUnknown:
		return "the API key is not valid here: want a key that this server knows"
	case TokenInvalid:
		return "the call does not carry its token in one way: want a single header `authorization: Bearer TOKEN`"
	case KeysUnavailable:
		return "the keys of the token's issuer are not available: try again later"
	case CertificateUnmapped:
		return "the client certificate belongs to no principal, and no token is beside it: want a token, or a certificate that a rule of the server matches"
	case SessionExpired:
		return "the session has ended: sign in again"
	case SessionInvalid:
		return "the session is none of this server: sign in again"
	case ProxyUntrusted:
		return "the request has a header that names a caller, and does not come from the trusted proxy: want no such header, or the certificate of the proxy"
	case ProxyHeaderInvalid:
		return "the headers of the trusted proxy name no caller: want one name of 1 to 256 visible bytes, and at most 256 groups of such names"
	case NoCredentials:
		return "the call has no credentials: want a client certificate or a token"
	}
	return "the credentials are not accepted"
}
