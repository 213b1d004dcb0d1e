package keys_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/keys"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
)

var present = time.Date(2026, 5, 6, 7, 8, 9, 123, time.UTC)

// requireUsageError returns the message and the hint of the error.
func requireUsageError(t *testing.T, err error, says string) string {
	t.Helper()
	usage, ok := errors.AsType[*exit.UsageError](err)
	require.True(t, ok, "%v", err)
	require.Contains(t, usage.Message, says)
	require.NotEmpty(t, usage.Hint)
	return usage.Message + "\nhint: " + usage.Hint
}

func createKey(t *testing.T, path string, r keys.CreateRequest) keys.Created {
	t.Helper()
	if r.Expires == "" {
		r.Expires = "90d"
	}
	made, err := keys.CreateKey(t.Context(), path, r, present)
	require.NoError(t, err)
	return made
}

// prefixOf returns the public part of a token. Its secret may begin with _ or have
// one.
func prefixOf(t *testing.T, token string) string {
	t.Helper()
	id, _, ok := strings.Cut(strings.TrimPrefix(token, identity.APIKeyPrefix), "_")
	require.True(t, ok, "no token: %s", token)
	return identity.APIKeyPrefix + id
}

func TestAKeyIsTakenUntilItIsRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	made := createKey(t, path, keys.CreateRequest{
		Name: "alice", Roles: []string{"answerer", "viewer", "answerer"}, Groups: []string{"finance"}, Tenants: []string{"t", "u", "t"},
	})
	v, err := apikey.New(apikey.Options{Path: path, Now: func() time.Time { return present }})
	require.NoError(t, err)
	caller, err := v.Authenticate(t.Context(), identity.Credentials{Token: made.Token})
	require.NoError(t, err)
	require.Equal(t, identity.Principal{
		Name: "alice", Roles: []string{"answerer", "viewer"}, Groups: []string{"finance"}, Tenant: "t", Tenants: []string{"t", "u"},
		How: identity.HowAPIKey,
	}, caller)

	want := keys.Entry{
		Prefix: prefixOf(t, made.Token), Name: "alice",
		Roles: []string{"answerer", "viewer"}, Groups: []string{"finance"}, Tenants: []string{"t", "u"},
		Created: present.Truncate(time.Second), Expires: present.Truncate(time.Second).AddDate(0, 0, 90), State: keys.Valid,
	}
	require.Equal(t, want, made.Key)
	listed, err := keys.ListKeys(path, present)
	require.NoError(t, err)
	require.Equal(t, []keys.Entry{want}, listed)

	revoked, err := keys.RevokeKey(t.Context(), path, want.Prefix, present)
	require.NoError(t, err)
	require.Equal(t, keys.Revoked, revoked.State)
	v.CheckFile()
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: made.Token})
	require.Error(t, err)
	again, err := keys.RevokeKey(t.Context(), path, want.Prefix, present.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, revoked, again, "the first revocation counts")
}

// A caller may write the key in any form that it has at hand.
func TestKeysAreRevokedByPrefixIdAndToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	for _, formOf := range []func(keys.Created) string{
		func(c keys.Created) string { return c.Key.Prefix },
		func(c keys.Created) string { return strings.TrimPrefix(c.Key.Prefix, "gk_") },
		func(c keys.Created) string { return c.Token },
	} {
		made := createKey(t, path, keys.CreateRequest{Name: "ci"})
		revoked, err := keys.RevokeKey(t.Context(), path, formOf(made), present)
		require.NoError(t, err)
		require.Equal(t, made.Key.Prefix, revoked.Prefix)
	}
	_, token, err := apikey.Create(t.Context(), filepath.Join(t.TempDir(), "other"), apikey.Key{Name: "x"}, present)
	require.NoError(t, err)
	secret := token[len(token)-43:]
	for text, says := range map[string]string{
		token: "has no key", "gk_aaaaaaaaaaaa": `has no key "gk_aaaaaaaaaaaa"`, secret: "KEY is no key", "gk_" + secret: "KEY is no key",
		token + "\n": "KEY is no key", "": "KEY is no key", "../keys": "KEY is no key",
	} {
		_, err = keys.RevokeKey(t.Context(), path, text, present)
		usage := requireUsageError(t, err, says)
		require.NotContains(t, usage, secret)
	}
}

func TestExpiriesAreDurationsAndTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	second := present.Truncate(time.Second)
	for text, want := range map[string]time.Time{
		"1d": second.AddDate(0, 0, 1), "36500d": second.AddDate(0, 0, 36500), "12h": second.Add(12 * time.Hour), "90m": second.Add(90 * time.Minute),
		"1s": second.Add(time.Second), "2027-01-31T12:00:00+02:00": time.Date(2027, 1, 31, 10, 0, 0, 0, time.UTC), keys.Never: {},
	} {
		made := createKey(t, path, keys.CreateRequest{Name: "ci", Expires: text})
		require.Equal(t, want, made.Key.Expires, text)
	}
	listed, err := keys.ListKeys(path, second.Add(time.Second))
	require.NoError(t, err)
	states := map[keys.State]int{}
	for _, e := range listed {
		states[e.State]++
	}
	require.Equal(t, map[keys.State]int{keys.Valid: 6, keys.Expired: 1}, states, "a key is expired from its time on")
}

func TestWrongRequestsAreRefused(t *testing.T) {
	var roles []string
	for _, row := range access.Roles() {
		roles = append(roles, string(row.Role))
	}
	for name, test := range map[string]struct {
		request    keys.CreateRequest
		says, hint string
	}{
		"no name":            {keys.CreateRequest{Expires: "1d"}, "--name has an empty name", "1 to 256 bytes"},
		"hidden characters":  {keys.CreateRequest{Name: "al\u202eice", Expires: "1d"}, "--name has a name with characters", "visible"},
		"unknown role":       {keys.CreateRequest{Name: "a", Roles: []string{"viewer", "boss"}, Expires: "1d"}, `--role "boss"`, strings.Join(roles, ", ")},
		"role in capitals":   {keys.CreateRequest{Name: "a", Roles: []string{"Viewer"}, Expires: "1d"}, `--role "Viewer"`, "viewer"},
		"empty role":         {keys.CreateRequest{Name: "a", Roles: []string{""}, Expires: "1d"}, `--role ""`, "viewer"},
		"empty group":        {keys.CreateRequest{Name: "a", Groups: []string{""}, Expires: "1d"}, "--group has an empty name", "bytes"},
		"wrong tenant":       {keys.CreateRequest{Name: "a", Tenants: []string{"a@b"}, Expires: "1d"}, "--tenant has a name that no tenant can have", "1 to 64"},
		"long tenant":        {keys.CreateRequest{Name: "a", Tenants: []string{strings.Repeat("t", 257)}, Expires: "1d"}, "--tenant has", "bytes"},
		"no expiry":          {keys.CreateRequest{Name: "a"}, `--expires ""`, "never"},
		"words":              {keys.CreateRequest{Name: "a", Expires: "soon"}, `--expires "soon"`, "90d"},
		"past time":          {keys.CreateRequest{Name: "a", Expires: "2020-01-01T00:00:00Z"}, "in the past", "90d"},
		"no days":            {keys.CreateRequest{Name: "a", Expires: "0d"}, "--expires 0d", "90d"},
		"negative days":      {keys.CreateRequest{Name: "a", Expires: "-1d"}, `--expires "-1d"`, "90d"},
		"negative duration":  {keys.CreateRequest{Name: "a", Expires: "-1h"}, "--expires -1h", "90d"},
		"many days":          {keys.CreateRequest{Name: "a", Expires: "36501d"}, "too long", "36500d"},
		"days that overflow": {keys.CreateRequest{Name: "a", Expires: "99999999999999999999d"}, "too long", "36500d"},
		"only the unit":      {keys.CreateRequest{Name: "a", Expires: "d"}, `--expires "d"`, "90d"},
		"date":               {keys.CreateRequest{Name: "a", Expires: "2027-01-31"}, `--expires "2027-01-31"`, "2027-01-31T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.yaml")
			made, err := keys.CreateKey(t.Context(), path, test.request, present)
			require.Contains(t, requireUsageError(t, err, test.says), test.hint)
			require.Zero(t, made)
			require.NoFileExists(t, path)
		})
	}
}

func TestWrongFilesAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("keys:\n  - id: x\n"), 0o600))
	const id = "gk_aaaaaaaaaaaa"
	for path, says := range map[string]string{
		"":                                   "--file is missing",
		broken:                               "broken.yaml:2: keys[0].id is not an id",
		dir:                                  "is no regular file",
		filepath.Join(dir, "none", "k.yaml"): "",
	} {
		_, err := keys.CreateKey(t.Context(), path, keys.CreateRequest{Name: "a", Expires: "1d"}, present)
		requireUsageError(t, err, says)
		_, err = keys.ListKeys(path, present)
		requireUsageError(t, err, says)
		_, err = keys.RevokeKey(t.Context(), path, id, present)
		requireUsageError(t, err, says)
	}
	none := filepath.Join(dir, "none.yaml")
	_, err := keys.RevokeKey(t.Context(), none, id, present)
	requireUsageError(t, err, "does not exist")
	require.NoFileExists(t, none, "a mistyped name makes no file")
}

func TestWhatIsShownHasNoHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	made := createKey(t, path, keys.CreateRequest{Name: "ci", Expires: keys.Never})
	stored, err := apikey.List(path)
	require.NoError(t, err)
	listed, err := keys.ListKeys(path, present)
	require.NoError(t, err)
	text, err := json.Marshal([]any{listed, made.Key})
	require.NoError(t, err)
	require.NotContains(t, string(text), stored[0].Hash)
	require.NotContains(t, string(text), strings.TrimPrefix(made.Token, made.Key.Prefix+"_"))
	require.NotContains(t, string(text), `"expires"`)
	require.Contains(t, string(text), `"tenants":[]`)
}
