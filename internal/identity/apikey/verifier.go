package apikey

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// Options are the options of a Verifier.
type Options struct {
	// Path is the file of the keys.
	Path string
	// Now is the present time. nil = time.Now.
	Now func() time.Time
	// Report is called once for each change of the file that can't be used. Its error
	// has the lines.
	Report func(error)
}

// Verifier checks API keys against a file. Its methods may be called at the same
// time.
type Verifier struct {
	now  func() time.Time
	keys *file.Reloaded[map[string]storedKey]
}

// storedKey is a key as requests need it.
type storedKey struct {
	hash             hash
	caller           identity.Principal
	expires, revoked file.Time
}

// New reads the file. The error joins a *file.Error for each problem.
func New(opts Options) (*Verifier, error) {
	v := &Verifier{now: opts.Now}
	if v.now == nil {
		v.now = time.Now
	}
	var err error
	v.keys, err = file.Load(opts.Path, func(text []byte) (map[string]storedKey, error) {
		d, err := parseDocument(opts.Path, text)
		if err != nil {
			return nil, err
		}
		return indexKeys(d.Keys), nil
	}, opts.Report)
	return v, err
}

func indexKeys(keys []Key) map[string]storedKey {
	all := make(map[string]storedKey, len(keys))
	for i := range keys {
		k := &keys[i]
		sum, _ := decodeHash(k.Hash) // parseDocument has checked it
		all[k.ID] = storedKey{hash: sum, caller: k.makePrincipal(), expires: k.Expires, revoked: k.Revoked}
	}
	return all
}

// CheckFile reads the file again if it has changed. A file that can't be used is
// reported, and the keys before stay.
func (v *Verifier) CheckFile() { v.keys.CheckFile() }

// ReportChanges has changed called after each change of the keys.
func (v *Verifier) ReportChanges(changed func()) { v.keys.ReportChanges(changed) }

// WatchFile checks the file at an interval until ctx ends. A revoked key is refused at
// most one interval after its revocation.
func (v *Verifier) WatchFile(ctx context.Context, every time.Duration) { v.keys.WatchFile(ctx, every) }

// Authenticate returns the principal of a key. The error is an *identity.Error. It
// is the same for an unknown id and for a wrong secret, and takes the same time:
// that a key has expired or was revoked is said to those who have its secret.
func (v *Verifier) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	refuse := func(reason identity.Reason) (identity.Principal, error) {
		return identity.Principal{}, &identity.Error{Reason: reason}
	}
	if given.Token == "" {
		return refuse(identity.NoCredentials)
	}
	if len(given.Token) > identity.MaxTokenBytes {
		return refuse(identity.TokenTooLarge)
	}
	id, secret, ok := splitToken(given.Token)
	if !ok {
		return refuse(identity.TokenMalformed)
	}
	key, isKnown := v.keys.Value()[id]
	isSame := hashSecret(secret).isSame(key.hash) // also of unknown ids, with the zero hash
	switch {
	case !isKnown || !isSame:
		return refuse(identity.TokenUnknown)
	case !key.revoked.IsZero():
		return refuse(identity.TokenRevoked)
	case !key.expires.IsZero() && !v.now().Before(key.expires.Time):
		return refuse(identity.TokenExpired)
	}
	return key.caller, nil
}
