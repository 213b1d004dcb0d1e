package credentials_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/graphd-dev/graphd/internal/identity"
)

// tokenClasses are wrong tokens, and wrong ways to send them.
func (f *forger) tokenClasses() []class {
	one := func(name string, forge func() string, want ...identity.Reason) class {
		return class{name: name, reasons: want, forge: func() attempt { return attempt{headers: []string{"Bearer " + forge()}} }}
	}
	var all []class
	for _, part := range [][]class{
		f.outdatedTokens(one), f.misdirectedTokens(one), f.unsignedTokens(one), f.injectedKeys(one), f.changedTokens(one),
		f.oddJSON(one), f.wrongClaims(one), f.apiKeyClasses(one), f.headerClasses(),
	} {
		all = append(all, part...)
	}
	return all
}

type oneToken func(name string, forge func() string, want ...identity.Reason) class

func (f *forger) outdatedTokens(one oneToken) []class {
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	return []class{
		one("expired", func() string {
			return f.makeToken(map[string]any{"exp": at(-f.between(time.Minute, 10*365*24*time.Hour))})
		}, identity.TokenExpired),
		one("not yet valid", func() string {
			return f.makeToken(map[string]any{pick(f, "nbf", "iat"): at(f.between(2*time.Minute, time.Hour))})
		}, identity.TokenNotYetValid),
		one("without an end", func() string { return f.makeToken(map[string]any{"exp": nil}) }, identity.TokenClaim),
	}
}

func (f *forger) misdirectedTokens(one oneToken) []class {
	return []class{
		one("another audience", func() string {
			return f.makeToken(map[string]any{"aud": pick[any](f, f.makeName(), "GRAPHD", "graphd ", []string{}, []string{"a", "b"}, nil, 1, true,
				map[string]any{"graphd": "graphd"}, []any{"graphd", []string{"graphd"}})})
		}, identity.TokenAudience),
		one("another issuer", func() string {
			return f.makeToken(map[string]any{"iss": pick[any](f, "https://"+f.makeName(), tokenIssuer+"/", tokenIssuer+"\x00", strings.ToUpper(tokenIssuer),
				"", nil, 1, []string{tokenIssuer}, tokenIssuer+"#x", " "+tokenIssuer)})
		}, identity.TokenIssuer),
	}
}

func (f *forger) unsignedTokens(one oneToken) []class {
	der, err := x509.MarshalPKIXPublicKey(f.keys["rsa"].Public())
	if err != nil {
		panic(err)
	}
	secrets := [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), []byte(f.publicKeys()), nil}
	return []class{
		one("alg none", func() string {
			header := fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, pick(f, "none", "None", "NONE", "nOnE", "none ", "nonе", ""))
			return encode(header) + "." + encode(f.claims(nil)) + "." + pick(f, "", encode("x"), encode(string(f.randomBytes(64))))
		}, identity.TokenAlgorithm),
		one("HMAC with a public key", func() string {
			kind := pick(f, 256, 384, 512)
			text := encode(fmt.Sprintf(`{"alg":"HS%d","kid":"rsa"}`, kind)) + "." + encode(f.claims(nil))
			mac := hmac.New(map[int]func() hash.Hash{256: sha256.New, 384: sha512.New384, 512: sha512.New}[kind], pick(f, secrets...))
			mac.Write([]byte(text))
			return text + "." + encode(string(mac.Sum(nil)))
		}, identity.TokenAlgorithm),
		one("an algorithm of another key", func() string {
			return f.resign(fmt.Sprintf(`{"alg":%q,"kid":%q}`, pick(f, "ES256", "RS256", "PS256", "ES384", "EdDSA", "RS512"), pick(f, "main", "rsa")), f.claims(nil))
		}, identity.TokenSignature),
		one("an unknown algorithm", func() string {
			return f.resign(fmt.Sprintf(`{"alg":%q,"kid":"main"}`, pick(f, "es256", "ES256K", "RSA1_5", "A128KW", "ML-DSA-44", f.randomText(9))), f.claims(nil))
		}, identity.TokenAlgorithm),
		one("a key of the attacker", func() string {
			return f.sign("attacker", f.claims(nil), map[jose.HeaderKey]any{"kid": pick[any](f, "main", "rsa", "attacker", nil)})
		}, identity.TokenSignature),
	}
}

func (f *forger) injectedKeys(one oneToken) []class {
	public := jose.JSONWebKey{Key: f.keys["attacker"].Public(), KeyID: "main"}
	chain := encode(string(f.otherCA.cert.Raw))
	return []class{
		one("a key in the header", func() string {
			name, value := jose.HeaderKey("jwk"), any(public)
			switch f.random.IntN(4) {
			case 0:
				name, value = "jku", "https://"+f.makeName()
			case 1:
				name, value = "x5u", "file:///etc/"+f.makeName()
			case 2:
				name, value = "x5t", chain
			}
			return f.sign("attacker", f.claims(nil), map[jose.HeaderKey]any{"kid": "main", name: value})
		}, identity.TokenSignature),
		one("kid tricks", func() string {
			return f.sign("attacker", f.claims(nil), map[jose.HeaderKey]any{"kid": pick(f, "../../dev/null", "/etc/passwd", "main\x00", "main/../main",
				"' OR 1=1 --", "|/bin/true", "${jndi:ldap://x}", "\u202emain", "%6dain", "main\r\nx: y", f.makeName())})
		}, identity.TokenSignature),
		one("kid of a wrong form", func() string {
			return f.resign(`{"alg":"ES256","kid":`+pick(f, `1`, `null`, `["main"]`, `{"main":1}`, `true`, `"`+strings.Repeat("k", 300)+`"`)+`}`, f.claims(nil))
		}, identity.TokenMalformed),
		one("critical header", func() string {
			header := pick(f, `"crit":["b64"],"b64":false`, `"crit":["exp"],"exp":1`, `"crit":[]`, `"crit":null`, `"crit":["`+f.randomText(8)+`"]`)
			return f.resign(`{"alg":"ES256","kid":"main",`+header+`}`, f.claims(nil))
		}, identity.TokenMalformed),
		one("signed critical header", func() string {
			name := pick(f, "exp", f.randomText(8))
			return f.sign("main", f.claims(nil), map[jose.HeaderKey]any{"crit": []string{name}, jose.HeaderKey(name): pick[any](f, true, 1)})
		}, identity.TokenMalformed),
	}
}

func (f *forger) changedTokens(one oneToken) []class {
	broken := []identity.Reason{identity.TokenMalformed, identity.TokenSignature}
	anywhere := append([]identity.Reason{identity.TokenAlgorithm, identity.TokenIssuer}, broken...)
	return []class{
		one("truncated", func() string {
			token := f.makeToken(nil)
			return token[:1+f.random.IntN(len(token)-1)]
		}, broken...),
		one("a bit of the signature", func() string {
			token := []byte(f.makeToken(nil))
			at := len(token) - 1 - f.random.IntN(80)
			token[at] ^= 1 << f.random.IntN(5) // stays a character that headers may have, or is noticed as none
			return strings.Map(printable, string(token))
		}, broken...),
		one("a character anywhere", func() string {
			token := []byte(f.makeToken(nil))
			at := f.random.IntN(len(token))
			if token[at] == 'A' {
				token[at] = 'B'
			} else {
				token[at] = 'A'
			}
			return string(token)
		}, anywhere...),
		one("claims altered", func() string {
			parts := strings.Split(f.makeToken(nil), ".")
			return parts[0] + "." + encode(f.claims(map[string]any{"realm": map[string]any{"roles": []string{"admin"}}})) + "." + parts[2]
		}, identity.TokenSignature),
		one("parts exchanged", func() string {
			parts := strings.Split(f.makeToken(nil), ".")
			return pick(f, parts[1]+"."+parts[0]+"."+parts[2], parts[0]+"."+parts[0]+"."+parts[2], parts[2]+"."+parts[1]+"."+parts[0],
				strings.Join(parts, ".")+"."+parts[2], parts[0]+"."+parts[1], "."+parts[1]+"."+parts[2], parts[0]+".."+parts[2], strings.Join(parts, ".")+"==",
				`{"payload":"`+parts[1]+`","protected":"`+parts[0]+`","signature":"`+parts[2]+`"}`)
		}, identity.TokenMalformed, identity.TokenIssuer),
		one("too large", func() string {
			return f.makeToken(map[string]any{"x": strings.Repeat("x", 13_000+f.random.IntN(8_000))})
		}, identity.TokenTooLarge),
		one("large and nothing", func() string {
			return strings.Repeat(pick(f, "e", ".", "e30.", "A"), identity.MaxTokenBytes/4)
		}, identity.TokenMalformed),
	}
}

// printable makes characters that headers may not have some that they may.
func printable(c rune) rune {
	if c <= ' ' || c > '~' {
		return '~'
	}
	return c
}

func (f *forger) oddJSON(one oneToken) []class {
	text := func(change func(claims string) string) func() string {
		return func() string { return f.sign(pick(f, "main", "rsa"), change(f.claims(nil)), nil) }
	}
	insert := func(more string) func(string) string {
		return func(claims string) string { return strings.Replace(claims, "{", "{"+more+",", 1) }
	}
	return []class{
		one("duplicate keys", func() string {
			return text(insert(pick(f, `"sub":"root"`, `"s\u0075b":"root"`, `"exp":99999999999`, `"iss":"x"`, `"x":{"a":1,"a":2}`, `"x":[{"a":1,"\u0061":2}]`)))()
		}, identity.TokenMalformed),
		one("nested", func() string {
			n := 40 + f.random.IntN(4000)
			return text(insert(`"x":` + strings.Repeat("[", n) + strings.Repeat("]", n)))()
		}, identity.TokenMalformed),
		one("nested and open", func() string {
			return f.resign(pick(f, `{"alg":"ES256","kid":"main"}`, strings.Repeat(`{"a":`, 800)), strings.Repeat(pick(f, "[", `{"a":`), 800))
		}, identity.TokenMalformed),
		one("invalid UTF-8", func() string {
			return text(func(claims string) string {
				return strings.Replace(claims, forgedName, pick(f, "\xff", "\xc0\x80", "\xed\xa0\x80", "a\xfe"), 1)
			})()
		}, identity.TokenMalformed),
		one("no JSON object", func() string {
			return text(func(claims string) string {
				return pick(f, "["+claims+"]", claims+claims, claims[1:], "null", `"x"`, "1", "", claims+"\x00",
					"\xef\xbb\xbf"+claims, strings.ReplaceAll(claims, ",", ",,"))
			})()
		}, identity.TokenMalformed),
		one("header no JSON object", func() string {
			return f.resign(pick(f, `[]`, `null`, `1`, `"ES256"`, `{"alg":"ES256"`, `{"alg":"ES256"}{}`, `{"alg":"none","alg":"ES256"}`, `{"alg":["ES256"]}`,
				`{"ALG":"ES256"}`, `{}`, "\x00"), f.claims(nil))
		}, identity.TokenMalformed),
	}
}

func (f *forger) wrongClaims(one oneToken) []class {
	raw := func(name, value string) func() string {
		return func() string {
			claims := f.claims(map[string]any{name: nil})
			return f.sign(pick(f, "main", "rsa"), strings.Replace(claims, "{", `{"`+name+`":`+value+",", 1), nil)
		}
	}
	return []class{
		one("times of a wrong form", func() string {
			value := pick(f, "null", `"9999999999"`, "[9999999999]", "1e400", "1e300", "-1", strings.Repeat("9", 5000), "{}", "true")
			return raw(pick(f, "exp", "nbf", "iat"), value)()
		}, identity.TokenClaim),
		one("names of a wrong form", func() string {
			return f.makeToken(map[string]any{"sub": pick[any](f, nil, "", 1, []string{"root"}, map[string]any{}, true, strings.Repeat("a", 257), "root\n"+f.makeName(),
				"root\x00", "\x1b[2J", "\u202eroot", "\ufffd")})
		}, identity.TokenClaim),
		one("groups of a wrong form", func() string {
			many := make([]string, 257)
			for i := range many {
				many[i] = "g"
			}
			return f.makeToken(map[string]any{"groups": pick[any](f, 1, map[string]any{}, []int{1}, many,
				[]string{strings.Repeat("g", 257)}, []string{"a\x00"}, []string{""})})
		}, identity.TokenClaim),
		one("tenants and roles of a wrong form", func() string {
			if f.random.IntN(2) == 0 {
				return f.makeToken(map[string]any{"org": pick[any](f, nil, "", 1, []string{"acme", "b"}, "a\nb", strings.Repeat("t", 257))})
			}
			return f.makeToken(map[string]any{"realm": map[string]any{"roles": pick[any](f, 1, []any{nil}, "admin\x00", []string{""}, map[string]any{"admin": true})}})
		}, identity.TokenClaim),
	}
}

func (f *forger) apiKeyClasses(one oneToken) []class {
	good := f.apiKeys["goodgoodgood"]
	secret := good[len("gk_goodgoodgood_"):]
	return []class{
		one("revoked API key", func() string { return f.apiKeys["revokedrevoked"] }, identity.TokenRevoked),
		one("expired API key", func() string { return f.apiKeys["expiredexpired"] }, identity.TokenExpired),
		one("another secret", func() string { return "gk_goodgoodgood_" + encode(string(f.randomBytes(32))) }, identity.TokenUnknown),
		one("unknown API key", func() string {
			return "gk_" + strings.ToLower(strings.NewReplacer("-", "a", "_", "b").Replace(f.randomText(12))) + "_" + secret
		}, identity.TokenUnknown),
		one("API keys of a wrong form", func() string {
			return pick(f, "gk_", "gk_goodgoodgood", "gk_goodgoodgood_", "gk_../../etc/passwd_"+secret, "gk_GOODGOODGOOD_"+secret, good+"A",
				good[:len(good)-1], "gk__"+secret, "GK_goodgoodgood_"+secret, "gk_goodgoodgood_"+strings.Repeat("A", 42)+"B")
		}, identity.TokenMalformed),
		one("API keys as JWTs", func() string {
			return pick(f, encode(good)+"."+encode(good)+"."+encode(good), good+"."+good+"."+good, "gk_"+f.makeToken(nil))
		}, identity.TokenMalformed),
	}
}

// headerClasses are tokens of any kind that come in a wrong way.
func (f *forger) headerClasses() []class {
	good := func() string { return pick(f, f.makeGoodToken(), f.apiKeys["goodgoodgood"]) }
	alice := f.issueAlice()
	return []class{
		{name: "duplicate headers", reasons: []identity.Reason{identity.TokenInvalid}, forge: func() attempt {
			first := "Bearer " + good()
			return attempt{headers: []string{first, pick(f, first, "Bearer "+f.makeToken(nil), "", "Basic x")}}
		}},
		{name: "another scheme", reasons: []identity.Reason{identity.TokenInvalid, identity.TokenMalformed}, forge: func() attempt {
			return attempt{headers: []string{pick(f, "Basic ", "", "Bearer", "Bearer  ", "Token ", "Bearer Bearer ", "Digest ") + good()}}
		}},
		{name: "no token", reasons: []identity.Reason{identity.TokenInvalid, identity.TokenMalformed}, forge: func() attempt {
			return attempt{headers: []string{pick(f, "Bearer ", "", "Bearer", " ", "Bearer   ")}}
		}},
		{name: besideCertificate, reasons: []identity.Reason{identity.TokenSignature}, forge: func() attempt {
			return attempt{headers: []string{"Bearer " + f.sign("attacker", f.claims(nil), map[jose.HeaderKey]any{"kid": "main"})}, shown: alice}
		}},
		{name: "100 kB", isRaw: true, forge: func() attempt {
			token := strings.Repeat(f.randomText(100), 500+f.random.IntN(1000))
			return attempt{headers: []string{"Bearer " + token}}
		}},
		{name: "control characters", isRaw: true, reasons: []identity.Reason{identity.TokenMalformed, identity.TokenInvalid}, forge: func() attempt {
			token := f.makeGoodToken()
			at := f.random.IntN(len(token))
			return attempt{headers: []string{"Bearer " + token[:at] + pick(f, "\x00", "\n", "\r\nx: y", "\x7f", "\x1b[2J", "\x01") + token[at:]}}
		}},
		{name: "bytes beyond ASCII", isRaw: true, reasons: []identity.Reason{identity.TokenMalformed, identity.TokenInvalid}, forge: func() attempt {
			token := f.makeGoodToken()
			at := f.random.IntN(len(token))
			return attempt{headers: []string{"Bearer " + token[:at] + pick(f, "\xff", "é", "\xc0\x80", "\u202e", "\xed\xa0\x80") + token[at:]}}
		}},
	}
}

// besideCertificate is the class of wrong tokens of callers that their certificates name.
const besideCertificate = "beside a good certificate"
