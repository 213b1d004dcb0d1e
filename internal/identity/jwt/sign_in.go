package jwt

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/payload"
)

// maxSessionIDBytes bounds the claim sid.
const maxSessionIDBytes = 256

// HasIssuer reports whether tokens of an issuer are accepted.
func (v *Verifier) HasIssuer(name string) bool { return v.issuers[name] != nil }

// VerifySignIn verifies the ID token of a person who has signed in at an issuer through a
// client of it. It is checked as every token of the issuer is, but that the client is its
// audience. The error is an *identity.Error, or the cause of ctx.
func (v *Verifier) VerifySignIn(ctx context.Context, text, issuedBy, client string) (identity.SignIn, error) {
	t, err := parseToken(text)
	if err != nil {
		return identity.SignIn{}, err
	}
	by := v.issuers[t.issuer]
	if by == nil || t.issuer != issuedBy {
		return identity.SignIn{}, &identity.Error{Reason: identity.TokenIssuer}
	}
	claims, err := by.verifySignature(ctx, t)
	if err != nil {
		return identity.SignIn{}, err
	}
	if err := checkClient(claims.text, client); err != nil {
		return identity.SignIn{}, err
	}
	if _, err := by.checkTimes(claims.text, v.now()); err != nil {
		return identity.SignIn{}, err
	}
	if err := by.checkEmail(claims.text); err != nil {
		return identity.SignIn{}, err
	}
	s := identity.SignIn{Issuer: by.Issuer.Issuer}
	if s.Caller, err = by.readPrincipal(findIn(claims.text)); err != nil {
		return identity.SignIn{}, err
	}
	find := findIn(claims.text)
	var ok bool
	if s.Session, ok = lookupOne(find, "sid"); !ok || len(s.Session) > maxSessionIDBytes {
		return identity.SignIn{}, newClaimError("sid")
	}
	if s.Nonce, ok = lookupOne(find, "nonce"); !ok {
		return identity.SignIn{}, newClaimError("nonce")
	}
	s.Claims = by.keepClaims(find)
	return s, nil
}

// checkClient requires that an ID token was issued to a client.
func checkClient(claims payload.JSON, client string) error {
	audiences, ok := lookupTexts(findIn(claims), "aud")
	if !ok || !slices.Contains(audiences, client) {
		return &identity.Error{Reason: identity.TokenAudience}
	}
	authorized, ok := lookupOne(findIn(claims), "azp")
	if !ok || authorized == "" && len(audiences) > 1 || authorized != "" && authorized != client {
		return &identity.Error{Reason: identity.TokenAudience, Field: "azp"}
	}
	return nil
}

// paths lists the claims that name a principal.
func (c *Claims) paths() []string {
	all := slices.DeleteFunc([]string{c.namePath(), c.Groups, c.Tenant, c.Tenants, c.Roles}, func(path string) bool { return path == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// keepClaims returns a JSON object with the claims that name a principal, by their paths. A
// claim that is absent is null.
func (i *Issuer) keepClaims(find findClaim) string {
	var b strings.Builder
	b.WriteByte('{')
	for n, path := range i.Claims.paths() {
		if n > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(path)
		if err != nil { // a text has a JSON
			continue
		}
		b.Write(name)
		b.WriteByte(':')
		value, ok := find(path)
		if !ok {
			value = "null"
		}
		b.WriteString(strings.TrimSpace(string(value)))
	}
	b.WriteByte('}')
	return b.String()
}

// ReadClaims returns the principal of the claims of a person who has signed in at an issuer
// before, as VerifySignIn has kept them. The error is an *identity.Error when the issuer is
// no longer accepted, or its principals have other claims now.
func (v *Verifier) ReadClaims(issuedBy, claims string) (identity.Principal, error) {
	by := v.issuers[issuedBy]
	if by == nil {
		return identity.Principal{}, &identity.Error{Reason: identity.SessionInvalid}
	}
	kept := payload.JSON(claims)
	for _, path := range by.Claims.paths() {
		if _, ok := payload.Lookup(kept, path); !ok {
			return identity.Principal{}, &identity.Error{Reason: identity.SessionInvalid}
		}
	}
	caller, err := by.readPrincipal(func(path string) (payload.JSON, bool) {
		value, ok := payload.Lookup(kept, path)
		return value, ok && value != payload.Null
	})
	if err != nil {
		return identity.Principal{}, &identity.Error{Reason: identity.SessionInvalid}
	}
	return caller, nil
}

// HasIssuer reports whether tokens of an issuer are accepted now.
func (f *Follower) HasIssuer(name string) bool { return f.verifiers.Value().HasIssuer(name) }

// VerifySignIn verifies an ID token by the issuers as they are now, see Verifier.
func (f *Follower) VerifySignIn(ctx context.Context, text, issuedBy, client string) (identity.SignIn, error) {
	return f.verifiers.Value().VerifySignIn(ctx, text, issuedBy, client)
}

// ReadClaims returns the principal of kept claims by the issuers as they are now, see
// Verifier.
func (f *Follower) ReadClaims(issuedBy, claims string) (identity.Principal, error) {
	return f.verifiers.Value().ReadClaims(issuedBy, claims)
}
