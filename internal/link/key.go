package link

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// Bounds of the secret of a key, in bytes, and of the keys of a file.
const (
	MinSecretBytes = 32
	maxSecretBytes = 64
	maxKeys        = 16
	maxIDLength    = 32
)

// Key is a secret with a name. Printing it shows the name alone.
type Key struct {
	ID     string // 1 to 32 letters, digits, dots, dashes and underscores
	Secret []byte // random
}

// String returns the id.
func (k Key) String() string { return k.ID }

// GoString returns the id.
func (k Key) GoString() string { return k.ID }

// KeyError says why a file of keys is wrong. It shows no secret.
type KeyError struct {
	Line int // 0 = none
	Is   string
	Want string
}

// Error names the line.
func (e *KeyError) Error() string { return e.Describe() + ": " + e.Want }

// Describe returns the problem without the correction.
func (e *KeyError) Describe() string {
	if e.Line == 0 {
		return "the keys " + e.Is
	}
	return fmt.Sprintf("line %d %s", e.Line, e.Is)
}

const (
	wantLine   = "want lines like k1: followed by 32 random bytes in base64, as openssl rand -base64 32 makes them"
	wantID     = "want 1 to 32 letters, digits, dots, dashes and underscores"
	wantSecret = "want 32 to 64 random bytes in base64, as openssl rand -base64 32 makes them" //nolint:gosec // has no secret
)

// ParseKeys reads a file of keys: a line "id: secret" for each, the secret in base64. It skips
// empty lines and lines that begin with #. The first key signs. The error is a *KeyError.
func ParseKeys(text string) (Keys, error) {
	var keys []Key
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := parseKey(n, line)
		switch {
		case err != nil:
			return Keys{}, err
		case slices.ContainsFunc(keys, func(k Key) bool { return k.ID == key.ID }):
			return Keys{}, &KeyError{n, "has the id of another line", "want an id of its own for each key"}
		case len(keys) == maxKeys:
			return Keys{}, &KeyError{n, "has one key too many", fmt.Sprintf("want at most %d", maxKeys)}
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return Keys{}, &KeyError{0, "are missing", wantLine}
	}
	return Keys{keys}, nil
}

func parseKey(n int, line string) (Key, error) {
	id, secret, ok := strings.Cut(line, ":")
	if !ok {
		return Key{}, &KeyError{n, "has no id", wantLine}
	}
	if id = strings.TrimSpace(id); !isValidID(id) { // it may be a secret
		return Key{}, &KeyError{n, "has a bad id", wantID}
	}
	bytes, err := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimSpace(secret), `"'`))
	switch {
	case err != nil:
		return Key{}, &KeyError{n, "has a secret that is not in base64", wantSecret}
	case len(bytes) < MinSecretBytes || len(bytes) > maxSecretBytes:
		return Key{}, &KeyError{n, fmt.Sprintf("has a secret of %d bytes", len(bytes)), wantSecret}
	}
	return Key{ID: id, Secret: bytes}, nil
}

func isValidID(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return len(id) >= 1 && len(id) <= maxIDLength
}
