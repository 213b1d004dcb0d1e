package keys

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/identity/apikey"
)

// KeepToken returns the token in a file while its key is valid. Otherwise it makes a key
// and writes its token to the file, of mode 0600. The errors are those of CreateKey and of
// the file.
func KeepToken(ctx context.Context, path, tokenPath string, r CreateRequest, now time.Time) (string, error) {
	token, err := readToken(tokenPath)
	if err != nil {
		return "", err
	}
	isValid, err := hasValidKey(path, token, now)
	if err != nil || isValid {
		return token, err
	}
	made, err := CreateKey(ctx, path, r, now)
	if err != nil {
		return "", err
	}
	// A file that was there keeps its mode, so it is replaced.
	if err := os.Remove(tokenPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return made.Token, os.WriteFile(tokenPath, []byte(made.Token+"\n"), 0o600)
}

// readToken reads the token in a file, "" when there is no file.
func readToken(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// hasValidKey reports whether a file has the key of a token, and the key is valid.
func hasValidKey(path, token string, now time.Time) (bool, error) {
	id, ok := apikey.ParseID(token)
	if _, err := os.Stat(path); !ok || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	key := apikey.Key{ID: id}
	all, err := ListKeys(path, now)
	return slices.ContainsFunc(all, func(e Entry) bool { return e.Prefix == key.Prefix() && e.State == Valid }), err
}
