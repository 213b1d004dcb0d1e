package listing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Sizes of a page.
const (
	defaultPageSize = 50
	MaxPageSize     = 500
)

// PageSize returns the size of a page for a request, and adds a violation to b if
// it is negative.
func PageSize(b *wire.Validator, size int32) int {
	switch {
	case size < 0:
		b.AddViolation("page_size", "%d is negative; 0 means %d", size, defaultPageSize)
		return defaultPageSize
	case size == 0:
		return defaultPageSize
	}
	return min(int(size), MaxPageSize)
}

// TokenCodec makes and reads page tokens. A token is bound to the list that it came
// from, so that it can't be used with another filter. The key only detects tokens
// that this service did not make: tokens hold positions, not secrets.
type TokenCodec struct{ Key []byte }

const macBytes = 16

// pageToken is the content of a page token.
type pageToken struct {
	ListDigest string          `json:"l"` // digest of the list
	Position   json.RawMessage `json:"a"`
}

// DigestList returns a digest of the kind of a list and of all parameters that
// select or order its entries.
func DigestList(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(base64.RawURLEncoding.EncodeToString([]byte(p))))
		h.Write([]byte{'.'})
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

func (t TokenCodec) computeMAC(body []byte) []byte {
	h := hmac.New(sha256.New, t.Key)
	h.Write(body)
	return h.Sum(nil)[:macBytes]
}

// EncodeToken returns the token for a position in a list.
func (t TokenCodec) EncodeToken(list string, at any) (string, error) {
	where, err := json.Marshal(at)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(pageToken{ListDigest: list, Position: where})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(t.computeMAC(body), body...)), nil
}

// DecodeToken decodes the position of a token into at; an empty token leaves at
// unchanged.
func (t TokenCodec) DecodeToken(text, list string, at any) error {
	if text == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < macBytes || !hmac.Equal(raw[:macBytes], t.computeMAC(raw[macBytes:])) {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token was not made by this service; leave it empty to begin")
	}
	var inside pageToken
	if err := json.Unmarshal(raw[macBytes:], &inside); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token can't be read; leave it empty to begin")
	}
	if inside.ListDigest != list {
		return runtime.Errorf(runtime.ReasonInvalidPageToken,
			"the token belongs to another list: filter, order and ids must stay the same from page to page")
	}
	if err := json.Unmarshal(inside.Position, at); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token can't be read; leave it empty to begin")
	}
	return nil
}

// CutPage cuts a list that was read with one entry too many, and makes the token of
// the next page from the last entry that stays. A list of large entries may have
// ended early.
func CutPage[T any](
	t TokenCodec, list string, items []T, size int, bytes func(*T) int, at func(T) any,
) ([]T, string, error) {
	if len(items) == 0 || !checkpoint.IsPart(items, size+1, bytes) {
		return items, "", nil
	}
	items = items[:min(size, len(items))]
	next, err := t.EncodeToken(list, at(items[len(items)-1]))
	return items, next, err
}

// PageBudget ends a page before the entry with which it would be too large for a
// message. A page has at least one entry.
type PageBudget struct {
	remaining  int
	hasEntries bool
}

// NewPageBudget makes a PageBudget that leaves room for a token and for the fields
// around the entries.
func NewPageBudget(maxBytes int) *PageBudget { return &PageBudget{remaining: maxBytes - 4<<10} }

// TryAdd reports whether an entry fits into the page. The first entry always does.
func (p *PageBudget) TryAdd(entry proto.Message) bool {
	p.remaining -= proto.Size(entry) + 8
	first := !p.hasEntries
	p.hasEntries = true
	return first || p.remaining >= 0
}
