package apikey_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is a file of keys, the clock of its verifier, and what it reports.
type fixture struct {
	path    string
	now     time.Time
	reports []error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{path: filepath.Join(t.TempDir(), "keys.yaml"), now: now}
}

func (f *fixture) create(t *testing.T, key apikey.Key) (apikey.Key, string) {
	t.Helper()
	made, token, err := apikey.Create(t.Context(), f.path, key, now)
	require.NoError(t, err)
	return made, token
}

func (f *fixture) verifier(t *testing.T) *apikey.Verifier {
	t.Helper()
	v, err := apikey.New(apikey.Options{
		Path: f.path, Now: func() time.Time { return f.now }, Report: func(err error) { f.reports = append(f.reports, err) },
	})
	require.NoError(t, err)
	return v
}

func requireRefusal(t *testing.T, v *apikey.Verifier, token string, want identity.Reason) {
	t.Helper()
	p, err := v.Authenticate(t.Context(), identity.Credentials{Token: token})
	refused, ok := errors.AsType[*identity.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, want, refused.Reason)
	require.Zero(t, p)
	if token != "" {
		require.NotContains(t, err.Error(), token)
	}
}

func TestKeysNamePrincipals(t *testing.T) {
	f := newFixture(t)
	made, token := f.create(t, apikey.Key{
		Name: "ci", Groups: []string{"build"}, Tenants: []string{"acme", "b"}, Roles: []string{"author"}, Expires: file.NewTime(now.Add(time.Hour)),
	})
	require.Regexp(t, `^gk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$`, token)
	require.True(t, strings.HasPrefix(token, made.Prefix()+"_"))

	p, err := f.verifier(t).Authenticate(t.Context(), identity.Credentials{Token: token})
	require.NoError(t, err)
	require.Equal(t, identity.Principal{
		Name: "ci", Groups: []string{"build"}, Tenant: "acme", Tenants: []string{"acme", "b"}, Roles: []string{"author"},
		How: identity.HowAPIKey,
	}, p)

	listed, err := apikey.List(f.path)
	require.NoError(t, err)
	require.Equal(t, []apikey.Key{made}, listed)
	text, err := os.ReadFile(f.path)
	require.NoError(t, err)
	require.NotContains(t, string(text), token[len(made.Prefix())+1:], "only the hash is kept")
	info, err := os.Stat(f.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestHostileKeysAreRefused(t *testing.T) {
	f := newFixture(t)
	made, token := f.create(t, apikey.Key{Name: "ci"})
	other, otherToken := f.create(t, apikey.Key{Name: "other"})
	v := f.verifier(t)
	secret := strings.TrimPrefix(token, made.Prefix()+"_")
	otherSecret := strings.TrimPrefix(otherToken, other.Prefix()+"_")
	for name, c := range map[string]struct {
		token string
		want  identity.Reason
	}{
		"none":                     {"", identity.NoCredentials},
		"only the prefix":          {"gk_", identity.TokenMalformed},
		"a JWT":                    {"eyJhbGciOiJub25lIn0.e30.", identity.TokenMalformed},
		"no secret":                {made.Prefix(), identity.TokenMalformed},
		"empty secret":             {made.Prefix() + "_", identity.TokenMalformed},
		"the hash as secret":       {made.Prefix() + "_" + made.Hash, identity.TokenMalformed},
		"secret of another key":    {made.Prefix() + "_" + otherSecret, identity.TokenUnknown},
		"secret of zeros":          {made.Prefix() + "_" + strings.Repeat("A", 43), identity.TokenUnknown},
		"unknown id":               {"gk_aaaaaaaaaaaa_" + secret, identity.TokenUnknown},
		"id in capitals":           {"gk_" + strings.ToUpper(made.ID) + "_" + secret, identity.TokenMalformed},
		"id too short":             {"gk_aaaaaaa_" + secret, identity.TokenMalformed},
		"id with a path":           {"gk_../../etc/passwd_" + secret, identity.TokenMalformed},
		"longer":                   {token + "A", identity.TokenMalformed},
		"with a break":             {token + "\n", identity.TokenMalformed},
		"break in the secret":      {made.Prefix() + "_\n" + secret[1:], identity.TokenMalformed},
		"scheme left":              {"Bearer " + token, identity.TokenMalformed},
		"prefix in capitals":       {"GK" + token[2:], identity.TokenMalformed},
		"characters beyond ASCII":  {made.Prefix() + "_" + strings.Repeat("é", 21) + "a", identity.TokenMalformed},
		"unused bits":              {made.Prefix() + "_" + strings.Repeat("A", 42) + "B", identity.TokenMalformed},
		"100 kB":                   {token + strings.Repeat("A", 100<<10), identity.TokenTooLarge},
		"NUL":                      {"gk_\x00_" + secret, identity.TokenMalformed},
		"two separators":           {made.Prefix() + "__" + secret[1:], identity.TokenUnknown},
		"id and secret exchanged ": {"gk_" + secret + "_" + made.ID, identity.TokenMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "two separators" && secret[0] == '_' {
				c.token = made.Prefix() + "_-" + secret[1:]
			}
			requireRefusal(t, v, c.token, c.want)
		})
	}
	for n := range token {
		_, err := v.Authenticate(t.Context(), identity.Credentials{Token: token[:n]})
		require.Error(t, err, n)
	}
}

func TestKeysEnd(t *testing.T) {
	f := newFixture(t)
	short, shortToken := f.create(t, apikey.Key{Name: "short", Expires: file.NewTime(now.Add(time.Hour))})
	lost, lostToken := f.create(t, apikey.Key{Name: "lost"})
	v := f.verifier(t)
	wrong := func(k apikey.Key) string { return k.Prefix() + "_" + strings.Repeat("A", 43) }

	f.now = now.Add(time.Hour - time.Second)
	_, err := v.Authenticate(t.Context(), identity.Credentials{Token: shortToken})
	require.NoError(t, err)
	f.now = now.Add(time.Hour)
	requireRefusal(t, v, shortToken, identity.TokenExpired)
	requireRefusal(t, v, wrong(short), identity.TokenUnknown)

	revoked, err := apikey.Revoke(t.Context(), f.path, lost.ID, now)
	require.NoError(t, err)
	require.Equal(t, now, revoked.Revoked.Time)
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: lostToken})
	require.NoError(t, err, "not read yet")
	v.CheckFile()
	requireRefusal(t, v, lostToken, identity.TokenRevoked)
	requireRefusal(t, v, wrong(lost), identity.TokenUnknown)

	again, err := apikey.Revoke(t.Context(), f.path, lost.ID, now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, now, again.Revoked.Time, "the first revocation counts")
	_, err = apikey.Revoke(t.Context(), f.path, "aaaaaaaa", now)
	unknown, ok := errors.AsType[*apikey.UnknownKeyError](err)
	require.True(t, ok)
	require.Equal(t, "aaaaaaaa", unknown.ID)
	require.Empty(t, f.reports)
}

func TestABrokenFileKeepsTheKeysBefore(t *testing.T) {
	f := newFixture(t)
	_, token := f.create(t, apikey.Key{Name: "ci"})
	v := f.verifier(t)
	good, err := os.ReadFile(f.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.path, append(good, "  - id: x\n"...), 0o600))
	for range 3 {
		v.CheckFile()
	}
	require.Len(t, f.reports, 1)
	require.ErrorContains(t, f.reports[0], "keys[1].id is not an id")
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: token})
	require.NoError(t, err)

	_, _, err = apikey.Create(t.Context(), f.path, apikey.Key{Name: "more"}, now)
	require.ErrorContains(t, err, "keys[1].id", "a broken file is not written over")

	require.NoError(t, os.WriteFile(f.path, nil, 0o600))
	v.CheckFile()
	requireRefusal(t, v, token, identity.TokenUnknown)
	require.Len(t, f.reports, 1)
}

func TestWrongFilesAreRefusedWithTheLine(t *testing.T) {
	f := newFixture(t)
	f.create(t, apikey.Key{Name: "ci", Tenant: "acme"})
	text, err := os.ReadFile(f.path)
	require.NoError(t, err)
	id := regexp.MustCompile(`id: (\S+)`).FindStringSubmatch(string(text))[1]
	for name, c := range map[string]struct{ old, with, want string }{
		"unknown field":       {"name: ci", "nam: ci", "keys.yaml:4: nam is an unknown field"},
		"no name":             {"name: ci", `name: ""`, "keys.yaml:4: keys[0].name has an empty name: want 1 to 256 bytes"},
		"short id":            {id, "abc", "keys.yaml:3: keys[0].id is not an id"},
		"id with capitals":    {id, "ABCDEFGHIJ", "keys.yaml:3: keys[0].id is not an id"},
		"id with a separator": {id, "abcd_efgh", "keys.yaml:3: keys[0].id is not an id"},
		"a secret for a hash": {"hash: sha256:", "hash: ", "keys.yaml:7: keys[0].hash is not a hash"},
		"another hash":        {"hash: sha256:", "hash: md5:", "keys.yaml:7: keys[0].hash is not a hash"},
		"no time":             {"created: 2026-03-01T12:00:00Z", "created: yesterday", "keys.yaml:6: a value has the wrong type: want a time"},
		"never created":       {"    created: 2026-03-01T12:00:00Z\n", "", "keys.yaml:3: keys[0].created is missing"},
		"revoked without time": {
			"created:", "revoked: true\n    created:", "keys.yaml:6: a value has the wrong type: want a time like 2026-01-31T12:00:00Z",
		},
		"tenant not in list": {"tenant: acme", "tenant: acme\n    tenants: [b]", "keys.yaml:5: keys[0].tenant is not among the tenants"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(text), c.old)
			path := filepath.Join(t.TempDir(), "keys.yaml")
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), c.old, c.with, 1)), 0o600))
			_, err := apikey.List(path)
			require.ErrorContains(t, err, c.want)
			_, ok := errors.AsType[*file.Error](err)
			require.True(t, ok)
			_, err = apikey.New(apikey.Options{Path: path})
			require.ErrorContains(t, err, c.want)
		})
	}
	twice := string(text) + strings.SplitN(string(text), "keys:\n", 2)[1]
	require.NoError(t, os.WriteFile(f.path, []byte(twice), 0o600))
	_, err = apikey.List(f.path)
	require.ErrorContains(t, err, "keys.yaml:8: keys[1].id is the id of another key too")
	_, err = apikey.New(apikey.Options{Path: filepath.Join(t.TempDir(), "none")})
	require.ErrorContains(t, err, "can't be read")
}

func TestWrongKeysAreNotMade(t *testing.T) {
	for name, c := range map[string]struct {
		key   apikey.Key
		field string
	}{
		"no name":         {apikey.Key{}, "name"},
		"long group":      {apikey.Key{Name: "a", Groups: []string{strings.Repeat("g", 257)}}, "groups"},
		"tenant not held": {apikey.Key{Name: "a", Tenant: "x", Tenants: []string{"y"}}, "tenant"},
		"expired":         {apikey.Key{Name: "a", Expires: file.NewTime(now)}, "expires"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.yaml")
			_, token, err := apikey.Create(t.Context(), path, c.key, now)
			wrong, ok := errors.AsType[*apikey.NewKeyError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.field, wrong.Field)
			require.Empty(t, token)
			require.NoFileExists(t, path)
		})
	}
}

func TestKeysOfManyAdministratorsAreAllKept(t *testing.T) {
	f := newFixture(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			k, _, err := apikey.Create(t.Context(), f.path, apikey.Key{Name: "ci"}, now)
			if err == nil {
				_, err = apikey.Revoke(t.Context(), f.path, k.ID, now)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	keys, err := apikey.List(f.path)
	require.NoError(t, err)
	require.Len(t, keys, 20)
	ids := make(map[string]bool)
	for _, k := range keys {
		require.Equal(t, now, k.Revoked.Time)
		ids[k.ID] = true
	}
	require.Len(t, ids, 20)
}

func FuzzKeys(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keys.yaml")
	made, token, err := apikey.Create(f.Context(), path, apikey.Key{Name: "ci"}, now)
	require.NoError(f, err)
	v, err := apikey.New(apikey.Options{Path: path})
	require.NoError(f, err)
	for _, seed := range []string{"", "gk_", made.Prefix(), made.Prefix() + "_", token, token + "A", "gk__" + token} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		p, err := v.Authenticate(t.Context(), identity.Credentials{Token: given})
		if given == token {
			require.NoError(t, err)
			return
		}
		_, ok := errors.AsType[*identity.Error](err)
		require.True(t, ok)
		require.Zero(t, p)
	})
}
