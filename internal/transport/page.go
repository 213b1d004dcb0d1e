package transport

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Sizes of a page.
const (
	defaultPage = 50
	maxPage     = 500
)

// pageSize converts the size of a page.
func pageSize(b *border, size int32) int {
	switch {
	case size < 0:
		b.refuse("page_size", "%d is negative; 0 means %d", size, defaultPage)
		return defaultPage
	case size == 0:
		return defaultPage
	}
	return min(int(size), maxPage)
}

// tokens makes and reads the tokens that say where a list goes on. A token is
// bound to the list it came from, so that it can't be used with another filter.
// The key only tells tokens that this service did not make: they hold
// positions, not secrets.
type tokens struct{ key []byte }

const macBytes = 16

// token is what is inside.
type token struct {
	List string          `json:"l"` // digest of what was listed
	At   json.RawMessage `json:"a"`
}

// listed identifies a list by its kind and by everything that selects or orders
// it.
func listed(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(base64.RawURLEncoding.EncodeToString([]byte(p))))
		h.Write([]byte{'.'})
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

func (t tokens) mac(body []byte) []byte {
	h := hmac.New(sha256.New, t.key)
	h.Write(body)
	return h.Sum(nil)[:macBytes]
}

// make returns the token for a position in a list.
func (t tokens) make(list string, at any) (string, error) {
	where, err := json.Marshal(at)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(token{List: list, At: where})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(t.mac(body), body...)), nil
}

// read takes the position out of a token; an empty token leaves it as it is.
func (t tokens) read(text, list string, at any) error {
	if text == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < macBytes || !hmac.Equal(raw[:macBytes], t.mac(raw[macBytes:])) {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token was not made by this service; leave it empty to begin")
	}
	var inside token
	if err := json.Unmarshal(raw[macBytes:], &inside); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token can't be read; leave it empty to begin")
	}
	if inside.List != list {
		return runtime.Errorf(runtime.ReasonInvalidPageToken,
			"the token belongs to another list: filter, order and ids must stay the same from page to page")
	}
	if err := json.Unmarshal(inside.At, at); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token can't be read; leave it empty to begin")
	}
	return nil
}

// page cuts a list that was read with one entry too many, and makes the token
// of the next page from the last entry that stays. A list of large entries may
// have ended early.
func page[T any](
	t tokens, list string, items []T, size int, bytes func(*T) int, at func(T) any,
) ([]T, string, error) {
	if len(items) == 0 || !checkpoint.IsPart(items, size+1, bytes) {
		return items, "", nil
	}
	items = items[:min(size, len(items))]
	next, err := t.make(list, at(items[len(items)-1]))
	return items, next, err
}

// cut ends a page before the entry with which it would be too large for a
// message. One entry is always in it.
type cut struct {
	left  int
	begun bool
}

// newCut leaves room for a token and for what is around the entries.
func newCut(maxBytes int) *cut { return &cut{left: maxBytes - 4<<10} }

func (c *cut) fits(entry proto.Message) bool {
	c.left -= proto.Size(entry) + 8
	first := !c.begun
	c.begun = true
	return first || c.left >= 0
}
