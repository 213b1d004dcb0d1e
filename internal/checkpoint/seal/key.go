package seal

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// KeySize is the length of a key's secret in bytes.
const KeySize = 32

const maxIDLength = 32

// Key is a secret with a name. Printing it shows the name alone.
type Key struct {
	ID     string // 1 to 32 letters, digits, dots, dashes and underscores; stands in each record
	Secret []byte // KeySize random bytes
}

// String returns the id.
func (k Key) String() string { return k.ID }

// GoString returns the id.
func (k Key) GoString() string { return k.ID }

// KeyError says why a key is wrong, without its secret.
type KeyError struct {
	ID   string
	Line int // of a file, 0 = none
	Is   string
	Want string
}

// Error names the key or the line.
func (e *KeyError) Error() string { return e.Describe() + ": " + e.Want }

// Describe returns the problem without the correction.
func (e *KeyError) Describe() string {
	what := fmt.Sprintf("key %q", e.ID)
	if e.ID == "" {
		what = "the keys"
	}
	if e.Line > 0 {
		what = fmt.Sprintf("line %d: %s", e.Line, what)
	}
	return what + " " + e.Is
}

const (
	wantLine  = "want lines like k1: followed by 32 random bytes in base64, as openssl rand -base64 32 makes them"
	wantID    = "want 1 to 32 letters, digits, dots, dashes and underscores"
	wantBytes = "want 32 random bytes in base64, as openssl rand -base64 32 makes them"
)

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

// ParseKeys reads a file of keys: a line "id: secret" for each, the secret in
// base64. It skips empty lines and lines that begin with #. The first key seals. The
// error is a *KeyError, and never shows a secret.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		id, secret, ok := strings.Cut(line, ":")
		if !ok {
			return nil, &KeyError{Line: n, Is: "have no id there", Want: wantLine}
		}
		if id = strings.TrimSpace(id); !isValidID(id) {
			// The text in the place of the id may be a secret.
			return nil, &KeyError{Line: n, Is: "have a bad id there", Want: wantID}
		}
		if slices.ContainsFunc(keys, func(k Key) bool { return k.ID == id }) {
			return nil, &KeyError{ID: id, Line: n, Is: "is given twice", Want: "give each key an id of its own"}
		}
		bytes, err := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimSpace(secret), `"'`))
		if err != nil {
			return nil, &KeyError{ID: id, Line: n, Is: "is not in base64", Want: wantBytes}
		}
		if len(bytes) != KeySize {
			return nil, &KeyError{ID: id, Line: n, Is: fmt.Sprintf("has %d bytes", len(bytes)), Want: wantBytes}
		}
		keys = append(keys, Key{ID: id, Secret: bytes})
	}
	if len(keys) == 0 {
		return nil, &KeyError{Is: "are missing", Want: wantLine}
	}
	return keys, nil
}
