package jwt

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/payload"
)

const maxSeconds = 253402300799 // 9999-12-31T23:59:59Z

// checkAudience requires one of the accepted audiences.
func (i *Issuer) checkAudience(claims payload.JSON) error {
	given, ok := lookupTexts(findIn(claims), "aud")
	if !ok || !slices.ContainsFunc(given, func(a string) bool { return slices.Contains(i.Audiences, a) }) {
		return &identity.Error{Reason: identity.TokenAudience}
	}
	return nil
}

// findClaim returns the value of the claim with a path, false when it is absent.
type findClaim func(path string) (payload.JSON, bool)

// findIn finds the claims of a token.
func findIn(claims payload.JSON) findClaim {
	return func(path string) (payload.JSON, bool) { return lookupPath(claims, splitPath(path)) }
}

// period is when a token is valid, with the accepted difference of the clocks.
type period struct {
	from  time.Time // zero = always
	until time.Time // not included
}

func (p period) containsTime(now time.Time) bool { return !now.Before(p.from) && now.Before(p.until) }

// checkTimes requires exp, and checks exp, nbf and iat. It returns when the token is
// valid.
func (i *Issuer) checkTimes(claims payload.JSON, now time.Time) (period, error) {
	expires, ok := lookupTime(claims, "exp")
	if !ok {
		return period{}, newClaimError("exp")
	}
	valid := period{until: expires.Add(i.acceptedSkew())}
	if !now.Before(valid.until) {
		return period{}, &identity.Error{Reason: identity.TokenExpired}
	}
	for _, name := range []string{"nbf", "iat"} {
		if _, isGiven := payload.Lookup(claims, name); !isGiven {
			continue
		}
		from, ok := lookupTime(claims, name)
		if !ok {
			return period{}, newClaimError(name)
		}
		from = from.Add(-i.acceptedSkew())
		if now.Before(from) {
			return period{}, &identity.Error{Reason: identity.TokenNotYetValid}
		}
		if from.After(valid.from) {
			valid.from = from
		}
	}
	return valid, nil
}

// claimEmail is a claim that names a person once the issuer has verified it.
const claimEmail = "email"

// checkEmail refuses an address as a name of which the issuer says that the person may not have it:
// at many issuers people choose their address themselves. Most say nothing of it.
func (i *Issuer) checkEmail(claims payload.JSON) error {
	if i.Claims.namePath() != claimEmail {
		return nil
	}
	value, ok := payload.Lookup(claims, claimEmail+"_verified")
	if text, _ := readText(value); ok && payload.Trim(value) != "true" && text != "true" { // some write it as a text
		return newClaimError(claimEmail + "_verified")
	}
	return nil
}

// readPrincipal reads the principal of verified claims.
func (i *Issuer) readPrincipal(claims findClaim) (identity.Principal, error) {
	p := identity.Principal{How: identity.HowJWT}
	name, ok := lookupOne(claims, i.Claims.namePath())
	if !ok || name == "" {
		return identity.Principal{}, newClaimError(i.Claims.namePath())
	}
	p.Name = i.NamePrefix + name
	tenant, ok := lookupOne(claims, i.Claims.Tenant)
	if !ok {
		return identity.Principal{}, newClaimError(i.Claims.Tenant)
	}
	for _, l := range []struct {
		path string
		into *[]string
	}{{i.Claims.Groups, &p.Groups}, {i.Claims.Tenants, &p.Tenants}, {i.Claims.Roles, &p.Roles}} {
		if l.path == "" {
			continue
		}
		if *l.into, ok = lookupTexts(claims, l.path); !ok {
			return identity.Principal{}, newClaimError(l.path)
		}
	}
	for n := range p.Groups {
		p.Groups[n] = i.GroupPrefix + p.Groups[n]
	}
	if tenant == "" && len(p.Tenants) == 0 {
		if tenant = i.Tenant; tenant == "" && i.Claims.Tenant+i.Claims.Tenants != "" {
			return identity.Principal{}, newClaimError(i.Claims.tenantPath())
		}
	}
	p.Tenant, p.Tenants = identity.ChooseTenants(tenant, p.Tenants)
	if err := p.Validate(); err != nil {
		return identity.Principal{}, newClaimError(i.Claims.pathOf(err))
	}
	return p, nil
}

func newClaimError(path string) error {
	return &identity.Error{Reason: identity.TokenClaim, Field: path}
}

func (c *Claims) namePath() string {
	if c.Name == "" {
		return defaultClaim
	}
	return c.Name
}

func (c *Claims) tenantPath() string {
	if c.Tenant == "" {
		return c.Tenants
	}
	return c.Tenant
}

// pathOf returns the claim of the field that a principal is refused for.
func (c *Claims) pathOf(err error) string {
	wrong, ok := errors.AsType[*identity.PrincipalError](err)
	if !ok {
		return ""
	}
	switch wrong.Field {
	case "name":
		return c.namePath()
	case "tenant", "tenants":
		return c.tenantPath()
	}
	return c.byField()[wrong.Field]
}

// lookupOne returns the text of a claim. It is "" when the claim is absent, and false
// when it is no text.
func lookupOne(claims findClaim, path string) (string, bool) {
	if path == "" {
		return "", true
	}
	value, ok := claims(path)
	if !ok {
		return "", true
	}
	return readText(value)
}

// lookupTexts returns a list of texts, or one text as a list. It is empty when the
// value is absent, and false when it is something else.
func lookupTexts(claims findClaim, path string) (texts []string, ok bool) {
	value, ok := claims(path)
	if !ok {
		return nil, true
	}
	if payload.KindOf(value) != payload.ArrayKind {
		text, ok := readText(value)
		return []string{text}, ok
	}
	items, err := payload.Elements(value)
	for _, item := range items {
		text, ok := readText(item)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, err == nil
}

func lookupPath(claims payload.JSON, path []string) (value payload.JSON, ok bool) {
	value = claims
	for _, name := range path {
		if value, ok = payload.Lookup(value, name); !ok {
			return "", false
		}
	}
	return value, true
}

// lookupTime returns a time in seconds since 1970, false when it is absent, no
// number, or not in the years 1970 to 9999.
func lookupTime(claims payload.JSON, name string) (time.Time, bool) {
	value, ok := payload.Lookup(claims, name)
	if !ok || payload.KindOf(value) != payload.Number {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(string(payload.Trim(value)), 64)
	if err != nil || seconds < 0 || seconds > maxSeconds {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true
}
