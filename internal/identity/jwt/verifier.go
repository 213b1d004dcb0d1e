package jwt

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/payload"
)

// fileInterval is how often JWKS files are read again.
const fileInterval = 5 * time.Second

// Options are the options of a Verifier.
type Options struct {
	// Config lists the issuers. It has no problems.
	Config Config
	// Now is the present time that tokens are compared with. nil = time.Now.
	Now func() time.Time
	// Transport fetches keys. nil = one of its own, with the proxy of the environment.
	Transport http.RoundTripper
	// Report is called with what keeps keys from being renewed, once for several failures
	// in a row. It may be called by several goroutines at once.
	Report func(error)
}

// Verifier verifies tokens. Its methods may be called at the same time.
type Verifier struct {
	now      func() time.Time
	report   func(error)
	issuers  map[string]*issuer
	verified *verifiedTokens // for these issuers: another configuration has another Verifier
}

// issuer is a configured issuer with its keys.
type issuer struct {
	*Issuer
	keys keySource
}

// keySource has the keys of one issuer.
type keySource interface {
	// currentKeys returns the keys. It is nil when there have been none yet.
	currentKeys() *keySet
	// refreshKeys looks for newer keys, for at most 2 s. The error is the cause of ctx.
	refreshKeys(ctx context.Context) error
	// keepFresh looks for newer keys until ctx ends.
	keepFresh(ctx context.Context)
}

// New makes a Verifier. It reads JWKS files, and returns an error for one that can't
// be used. Keys behind URLs are fetched by Run.
func New(opts Options) (*Verifier, error) { return newVerifier(opts, nil) }

// newVerifier makes a Verifier. An issuer whose keys come from where they came from
// before takes over the keys.
func newVerifier(opts Options, before map[string]*issuer) (*Verifier, error) {
	v := &Verifier{
		now: opts.Now, report: opts.Report, issuers: make(map[string]*issuer, len(opts.Config.Issuers)), verified: newVerifiedTokens(),
	}
	if v.now == nil {
		v.now = time.Now
	}
	client := NewClient(opts.Transport)
	for i := range opts.Config.Issuers {
		config := &opts.Config.Issuers[i]
		one := &issuer{Issuer: config}
		if last := before[config.Issuer]; last != nil && last.JWKSFile == config.JWKSFile && last.JWKSURL == config.JWKSURL {
			one.keys = last.keys
		} else if config.JWKSFile == "" {
			one.keys = newRemoteKeys(config, client, opts.Report)
		} else {
			keys, err := loadFileKeys(config.JWKSFile, opts.Report)
			if err != nil {
				return nil, err
			}
			one.keys = keys
		}
		v.issuers[config.Issuer] = one
	}
	return v, nil
}

// Run fetches and renews the keys of all issuers until ctx ends. An issuer that does
// not answer is tried again later, and delays no other one.
func (v *Verifier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range v.issuers {
		all.Add(1)
		go contain.Func(func() {
			defer all.Done()
			one.keys.keepFresh(ctx)
		}, func(p *contain.PanicError) { v.report(p) })()
	}
	all.Wait()
}

// Authenticate returns the principal of a token. The error is an *identity.Error, or
// the cause of ctx. Whatever the token, it waits at most 2 s for keys. A token that was
// verified before is not verified again while it is valid and its issuer has the same
// keys.
func (v *Verifier) Authenticate(ctx context.Context, given identity.Credentials) (identity.Principal, error) {
	if given.Token == "" {
		return identity.Principal{}, &identity.Error{Reason: identity.NoCredentials}
	}
	if len(given.Token) > identity.MaxTokenBytes {
		return identity.Principal{}, &identity.Error{Reason: identity.TokenTooLarge}
	}
	sum := digest(sha256.Sum256([]byte(given.Token)))
	if caller, ok := v.verified.findCaller(sum, v.now()); ok {
		return caller, nil
	}
	verified, err := v.verifyToken(ctx, given.Token)
	if err != nil {
		return identity.Principal{}, err
	}
	v.verified.rememberToken(sum, verified)
	return verified.caller, nil
}

// verifyToken verifies a token anew. The errors are those of Authenticate.
func (v *Verifier) verifyToken(ctx context.Context, text string) (*verifiedToken, error) {
	t, err := parseToken(text)
	if err != nil {
		return nil, err
	}
	by := v.issuers[t.issuer]
	if by == nil {
		return nil, &identity.Error{Reason: identity.TokenIssuer}
	}
	claims, err := by.verifySignature(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := by.checkAudience(claims.text); err != nil {
		return nil, err
	}
	valid, err := by.checkTimes(claims.text, v.now())
	if err != nil {
		return nil, err
	}
	if err := by.checkEmail(claims.text); err != nil {
		return nil, err
	}
	caller, err := by.readPrincipal(findIn(claims.text))
	if err != nil {
		return nil, err
	}
	return &verifiedToken{caller: caller, valid: valid, issuer: by, keys: claims.keys}, nil
}

// signedClaims are claims that a key has signed.
type signedClaims struct {
	text payload.JSON
	keys digest // of the set with the key
}

// verifySignature returns the claims of a token that a key of the issuer has signed.
func (i *issuer) verifySignature(ctx context.Context, t token) (signedClaims, error) {
	algorithms := i.acceptedAlgorithms()
	if !slices.Contains(algorithms, t.algorithm) {
		return signedClaims{}, &identity.Error{Reason: identity.TokenAlgorithm}
	}
	signed, err := jose.ParseSignedCompact(t.text, algorithms)
	if err != nil {
		return signedClaims{}, newMalformedError("")
	}
	claims, isKnown, ok := i.tryKeys(signed, t)
	if ok {
		return claims, nil
	}
	if !isKnown { // the issuer may have a new key
		if err := i.keys.refreshKeys(ctx); err != nil {
			return signedClaims{}, err
		}
		if claims, _, ok = i.tryKeys(signed, t); ok {
			return claims, nil
		}
	}
	if i.keys.currentKeys() == nil {
		return signedClaims{}, &identity.Error{Reason: identity.KeysUnavailable}
	}
	return signedClaims{}, &identity.Error{Reason: identity.TokenSignature}
}

// tryKeys verifies a token with the keys that fit it. isKnown reports that it names a
// key of the issuer.
func (i *issuer) tryKeys(signed *jose.JSONWebSignature, t token) (claims signedClaims, isKnown, ok bool) {
	keys := i.keys.currentKeys()
	if keys == nil {
		return signedClaims{}, false, false
	}
	candidates := keys.findKeys(t.algorithm, t.keyID)
	for _, key := range candidates {
		if text, err := signed.Verify(key); err == nil {
			return signedClaims{payload.JSON(text), keys.digest}, true, true
		}
	}
	return signedClaims{}, t.keyID != "" && len(candidates) > 0, false
}

// fileKeys are keys in a file.
type fileKeys struct {
	*file.Reloaded[*keySet]
}

func loadFileKeys(path string, report func(error)) (fileKeys, error) {
	keys, err := file.Load(path, func(text []byte) (*keySet, error) {
		keys, err := parseKeys(text)
		if err != nil {
			return nil, &file.Error{File: path, Is: "can't be used: " + err.Error()}
		}
		return keys, nil
	}, report)
	return fileKeys{keys}, err
}

func (f fileKeys) currentKeys() *keySet { return f.Value() }

// refreshKeys does nothing: a token does not make the server read files.
func (fileKeys) refreshKeys(context.Context) error { return nil }

func (f fileKeys) keepFresh(ctx context.Context) { f.WatchFile(ctx, fileInterval) }
