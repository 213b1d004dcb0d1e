package listing

import (
	"crypto/aes"
	"crypto/cipher"
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
func PageSize(v *wire.Validator, size int32) int {
	switch {
	case size < 0:
		v.AddViolation("page_size", "%d is negative; 0 means %d", size, defaultPageSize)
		return defaultPageSize
	case size == 0:
		return defaultPageSize
	}
	return min(int(size), MaxPageSize)
}

// MaxOffset is how many entries a page may have before it, at most.
const MaxOffset = 100_000

// Offset returns how many entries a page has before it, and adds a violation to v if these are too
// many, or if a page token says already where the page begins.
func Offset(v *wire.Validator, offset int32, token string) int {
	switch {
	case offset < 0 || offset > MaxOffset:
		v.AddViolation("offset", "is %d, want 0 to %d; go on with page tokens", offset, MaxOffset)
	case offset > 0 && token != "":
		v.AddViolation("offset", "is %d and there is a page_token, which says where the page begins: want one of them", offset)
	default:
		return int(offset)
	}
	return 0
}

// TokenCodec makes and reads page tokens. A token is bound to the list that it came
// from, so that it can't be used with another filter. The key only detects tokens
// that this service did not make: tokens hold positions, not secrets.
//
// A sealed token is encrypted: its position may be that of an entry that the caller does
// not get.
type TokenCodec struct {
	Key      []byte
	IsSealed bool
}

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

// computeMAC returns the MAC of the body of a token.
func (t TokenCodec) computeMAC(body []byte) []byte {
	h := hmac.New(sha256.New, t.Key)
	h.Write(body)
	return h.Sum(nil)[:macBytes]
}

// EncodeToken returns the token for a position in the list of a digest. It returns an
// error when the position has no JSON form.
func (t TokenCodec) EncodeToken(listDigest string, position any) (string, error) {
	encoded, err := json.Marshal(position)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(pageToken{ListDigest: listDigest, Position: encoded})
	if err != nil {
		return "", err
	}
	if t.IsSealed {
		sealed, err := t.newCipher()
		if err != nil {
			return "", err
		}
		body = sealed.Seal(nil, nil, body, nil) //nolint:gosec // the cipher makes the nonce
		return base64.RawURLEncoding.EncodeToString(body), nil
	}
	return base64.RawURLEncoding.EncodeToString(append(t.computeMAC(body), body...)), nil
}

// newCipher makes the cipher of sealed tokens. It puts a random nonce before each.
func (t TokenCodec) newCipher() (cipher.AEAD, error) {
	key := sha256.Sum256(append([]byte("graphd.v1 sealed page tokens\x00"), t.Key...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// openToken returns the body of a token; ok is false for one that this service did not
// make.
func (t TokenCodec) openToken(text string) (body []byte, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	if t.IsSealed {
		sealed, err := t.newCipher()
		if err != nil {
			return nil, false
		}
		body, err = sealed.Open(nil, nil, raw, nil)
		return body, err == nil
	}
	if len(raw) < macBytes || !hmac.Equal(raw[:macBytes], t.computeMAC(raw[macBytes:])) {
		return nil, false
	}
	return raw[macBytes:], true
}

// DecodeToken decodes the position of a token into the value that position points to. An
// empty token leaves the value unchanged. The error is *runtime.Error with
// INVALID_PAGE_TOKEN when the token can't be read or belongs to another list.
func (t TokenCodec) DecodeToken(text, listDigest string, position any) error {
	if text == "" {
		return nil
	}
	body, ok := t.openToken(text)
	if !ok {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token was not made by this service; leave it empty to begin")
	}
	var inside pageToken
	if err := json.Unmarshal(body, &inside); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token can't be read; leave it empty to begin")
	}
	if inside.ListDigest != listDigest {
		return runtime.Errorf(runtime.ReasonInvalidPageToken,
			"the token belongs to another list: filter, order and ids must stay the same from page to page")
	}
	if err := json.Unmarshal(inside.Position, position); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidPageToken, "the token can't be read; leave it empty to begin")
	}
	return nil
}

// CutPage cuts a list to a page of at most size entries, and returns the page and the
// token of the next page, "" when there is none. The caller reads size+1 entries, so that
// CutPage sees whether others follow; a store may have ended a list of large entries
// early. bytes returns the size of an entry, position its position. The errors are those
// of EncodeToken.
func CutPage[T any](
	t TokenCodec, listDigest string, items []T, size int, bytes func(*T) int, position func(T) any,
) ([]T, string, error) {
	if len(items) == 0 || !checkpoint.IsPart(items, size+1, bytes) {
		return items, "", nil
	}
	items = items[:min(size, len(items))]
	next, err := t.EncodeToken(listDigest, position(items[len(items)-1]))
	return items, next, err
}

// maxLookedAt is the number of entries that a call looks at for those of its page. A
// page may end before it is full, with a token for the next.
const maxLookedAt = 2 * MaxPageSize

// CollectPage reads a list for the entries that a caller gets, up to size of them. read
// returns at most limit entries, those after an entry, or the first ones for nil, and
// whether others may follow. next is the entry after which the next page begins, nil when
// the list has ended: one that the caller does not get, if the call has looked at as many
// entries as it may, or if large entries have ended a read. The errors are those of read.
func CollectPage[T any](
	size int, shows func(*T) bool, read func(limit int, after *T) (items []T, more bool, err error),
) (page []T, next *T, err error) {
	for lookedAt := 0; ; {
		items, more, err := read(size+1, next)
		if err != nil {
			return nil, nil, err
		}
		for i := range items {
			if !shows(&items[i]) {
				continue
			}
			if len(page) == size {
				return page, &page[size-1], nil
			}
			page = append(page, items[i])
		}
		if !more || len(items) == 0 {
			return page, nil, nil
		}
		next = &items[len(items)-1]
		lookedAt += len(items)
		if lookedAt >= maxLookedAt || len(items) <= size && len(page) > 0 {
			return page, next, nil
		}
	}
}

// SkipShown passes over entries that a caller gets, up to skip of them, with the read of
// CollectPage. It returns how many there were and the last entry that it has looked at, nil for
// none, and whether others may follow. It looks at as many entries as a page does; a call that has
// not passed over all of them goes on with another one. The errors are those of read.
func SkipShown[T any](
	skip int, shows func(*T) bool, read func(limit int, after *T) (items []T, more bool, err error),
) (passed int, last *T, more bool, err error) {
	more = true
	for lookedAt := 0; passed < skip && more && lookedAt < maxLookedAt; {
		var items []T
		if items, more, err = read(MaxPageSize, last); err != nil {
			return 0, nil, false, err
		}
		for i := range items {
			last = &items[i]
			lookedAt++
			if !shows(last) {
				continue
			}
			if passed++; passed == skip {
				return passed, last, more || i < len(items)-1, nil
			}
		}
	}
	return passed, last, more, nil
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
