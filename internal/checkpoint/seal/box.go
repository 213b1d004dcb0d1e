// Package seal is what stands between a store's records and what is written of
// them: compression, and encryption under keys that may change.
//
// What is written says itself what was done to it. A record as it is begins
// with no byte of this package's, so that records of all kinds lie side by
// side and either option can be switched on or off later.
package seal

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// The first byte of what is written. No JSON text begins with one of them.
const (
	escaped             = 0x00 // a record that begins with one of these bytes itself
	compressed          = 0x01
	sealed              = 0x02
	compressedAndSealed = 0x03 // compressed, then sealed
)

// Options say what a Box does to records that are written. It reads all that
// its keys open, whatever they say.
type Options struct {
	// Keys are those that records may be sealed with. The first one seals;
	// none leaves records readable.
	Keys []Key
	// Compress makes records of 512 bytes and more smaller, where that helps.
	Compress bool
}

// Box seals and opens records. Its methods may be called at the same time.
type Box struct {
	opts      Options
	keys      map[string]*cipherKey
	activeKey *cipherKey // nil = not sealed
	encoder   *zstd.Encoder
	decoder   *zstd.Decoder
}

// New makes a Box. A key that is wrong is named in the error, a *KeyError,
// without its secret.
func New(opts Options) (*Box, error) {
	b := &Box{opts: opts, keys: make(map[string]*cipherKey, len(opts.Keys))}
	for i := range opts.Keys {
		k, err := newCipherKey(&opts.Keys[i])
		if err != nil {
			return nil, err
		}
		if b.keys[k.id] != nil {
			return nil, &KeyError{ID: k.id, Is: "is given twice", Want: "give each key an id of its own"}
		}
		b.keys[k.id] = k
		if b.activeKey == nil {
			b.activeKey = k
		}
	}
	var err error
	if b.decoder, err = newDecoder(); err != nil {
		return nil, err
	}
	if opts.Compress {
		b.encoder, err = newEncoder()
	}
	return b, err
}

// RecordPlace is where a record stands. A sealed record opens in its own place only.
type RecordPlace struct {
	Thread string // "" = it belongs to none
	Kind   string
	Name   string // "" = the only one of its kind, or the record says who it is
}

// ActiveKeyID is the id of the key that seals, "" = none.
func (b *Box) ActiveKeyID() string {
	if b.activeKey == nil {
		return ""
	}
	return b.activeKey.id
}

// KeyIDs are the ids of all keys, the one that seals first.
func (b *Box) KeyIDs() []string {
	ids := make([]string, 0, len(b.opts.Keys))
	for i := range b.opts.Keys {
		ids = append(ids, b.opts.Keys[i].ID)
	}
	return ids
}

// IsPlain reports whether JSON records are written as they are.
func (b *Box) IsPlain() bool { return b.activeKey == nil && b.encoder == nil }

// Seal returns what is to be written of a record.
func (b *Box) Seal(at RecordPlace, record string) string {
	return sealWith(b.activeKey, b.encoder, at, record)
}

// SealLike returns what is to be written of a record in place of text: the active key
// seals it when text was sealed, and it is compressed when text was.
func (b *Box) SealLike(at RecordPlace, text, record string) string {
	var key *cipherKey
	var encoder *zstd.Encoder
	if text != "" && (text[0] == sealed || text[0] == compressedAndSealed) {
		key = b.activeKey
	}
	if text != "" && (text[0] == compressed || text[0] == compressedAndSealed) {
		encoder = b.encoder
	}
	return sealWith(key, encoder, at, record)
}

func sealWith(key *cipherKey, encoder *zstd.Encoder, at RecordPlace, record string) string {
	small, packed := compressRecord(encoder, record)
	switch {
	case key != nil && packed:
		return key.sealRecord(compressedAndSealed, at, small)
	case key != nil:
		return key.sealRecord(sealed, at, record)
	case packed:
		return string(rune(compressed)) + small
	case record != "" && record[0] <= compressedAndSealed:
		return string(rune(escaped)) + record
	}
	return record
}

// WithCompression is a Box with the same keys that can compress.
func (b *Box) WithCompression() (*Box, error) {
	return New(Options{Keys: b.opts.Keys, Compress: true})
}

// Open returns the record of which Seal has made text. An error is an
// *OpenError, or says that the text is damaged; all wrap checkpoint.ErrCorrupt.
func (b *Box) Open(at RecordPlace, text string) (string, error) {
	if text == "" || text[0] > compressedAndSealed {
		return text, nil
	}
	switch text[0] {
	case escaped:
		return text[1:], nil
	case compressed:
		return b.decompressRecord(text[1:])
	}
	id, _, ok := cutID(text[1:])
	if !ok {
		return "", corruptError("its seal is damaged")
	}
	k := b.keys[id]
	if k == nil {
		return "", &OpenError{Key: id, IsUnknownKey: true}
	}
	record, err := k.openRecord(at, text)
	if err != nil || text[0] == sealed {
		return record, err
	}
	return b.decompressRecord(record)
}

// SealingKeyID is the id of the key that text was sealed with, and whether it was.
func SealingKeyID(text string) (key string, ok bool) {
	if text == "" || text[0] < sealed || text[0] > compressedAndSealed {
		return "", false
	}
	id, _, ok := cutID(text[1:])
	return id, ok
}

// OpenError says that a record is sealed and does not open. It wraps
// checkpoint.ErrCorrupt.
type OpenError struct {
	Key          string // id of the key it is sealed with
	IsUnknownKey bool   // that key was not given
}

// Error names the key, never its secret.
func (e *OpenError) Error() string {
	if e.IsUnknownKey {
		return fmt.Sprintf("%v: it is sealed with the key %q, which was not given", checkpoint.ErrCorrupt, e.Key)
	}
	return fmt.Sprintf("%v: it does not open with the key %q: the key is another one of that id, or the record was changed or moved",
		checkpoint.ErrCorrupt, e.Key)
}

// Unwrap returns checkpoint.ErrCorrupt.
func (*OpenError) Unwrap() error { return checkpoint.ErrCorrupt }

func corruptError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, slices.Concat([]any{checkpoint.ErrCorrupt}, args)...)
}
