package keys

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
)

// State says whether a server takes a key.
type State string

// The states of a key.
const (
	Valid   State = "valid"
	Expired State = "expired"
	Revoked State = "revoked"
)

// Entry is what is shown of a key: everything but the hash of its secret.
type Entry struct {
	Prefix  string    `json:"prefix"` // gk_ID, with which the token begins
	Name    string    `json:"name"`
	Roles   []string  `json:"roles"`
	Groups  []string  `json:"groups"`
	Tenants []string  `json:"tenants"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero = never
	Revoked time.Time `json:"revoked,omitzero"` // zero = not revoked
	State   State     `json:"state"`
}

func newEntry(k apikey.Key, now time.Time) Entry {
	e := Entry{
		Prefix: k.Prefix(), Name: k.Name, Roles: orEmpty(k.Roles), Groups: orEmpty(k.Groups), Tenants: orEmpty(k.ListTenants()),
		Created: k.Created.Time, Expires: k.Expires.Time, Revoked: k.Revoked.Time, State: Valid,
	}
	switch {
	case !e.Revoked.IsZero():
		e.State = Revoked
	case !e.Expires.IsZero() && !now.Before(e.Expires):
		e.State = Expired
	}
	return e
}

// orEmpty makes a list that JSON shows as [].
func orEmpty(list []string) []string { return append([]string{}, list...) }

// ListKeys returns the keys of a file in their order. The error is an
// *exit.UsageError for a wrong file.
func ListKeys(path string, now time.Time) ([]Entry, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	keys, err := apikey.List(path)
	if err != nil {
		return nil, explainError(path, err)
	}
	all := []Entry{}
	for _, k := range keys {
		all = append(all, newEntry(k, now))
	}
	return all, nil
}

// RevokeKey revokes a key for good: text is gk_ID, ID or a whole token. A key that
// is revoked keeps the time of that. The error is an *exit.UsageError for a wrong
// file and a key that it does not have. It shows no secret.
func RevokeKey(ctx context.Context, path, text string, now time.Time) (Entry, error) {
	if err := checkPath(path); err != nil {
		return Entry{}, err
	}
	id, ok := apikey.ParseID(text)
	if !ok {
		return Entry{}, exit.Usagef("KEY is no key").WithHint("want its prefix like gk_3k9x0a7cq2mz; graphd keys list shows the keys")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Entry{}, exit.Usagef("--file %s does not exist", path).WithHint("name the file of the keys")
	}
	k, err := apikey.Revoke(ctx, path, id, now)
	if err != nil {
		return Entry{}, explainError(path, err)
	}
	return newEntry(k, now), nil
}

func folderIsMissing(path string) bool {
	_, err := os.Stat(filepath.Dir(path))
	return errors.Is(err, fs.ErrNotExist)
}
