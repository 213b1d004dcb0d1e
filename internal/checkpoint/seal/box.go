// Package seal compresses and encrypts the records of a store, under keys that may
// change.
//
// The first byte of a stored text says how to read it. No plain record begins with such
// a byte, so that plain, compressed and encrypted records lie side by side, and either
// option can be switched on or off later.
package seal

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// First bytes of stored texts. No JSON text begins with any of them.
const (
	escaped             = 0x00 // a plain record that begins with any of these bytes
	compressed          = 0x01
	sealed              = 0x02
	compressedAndSealed = 0x03 // compressed, then sealed
)

// Options are the options by which a Box writes records. It reads all records that its
// keys open, whichever options wrote them.
type Options struct {
	// Keys open records, and the first of them seals. Without keys records are not
	// encrypted.
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

// New makes a Box. It returns a *KeyError for a key that is wrong, without its secret.
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

// RecordPlace is the position of a record in the store. A sealed record opens only in its
// own place.
type RecordPlace struct {
	Thread string // "" = the record belongs to no thread
	Kind   string
	Name   string // "" = the only record of its kind, or the record has its name
}

// ActiveKeyID returns the id of the key that seals, "" = none.
func (b *Box) ActiveKeyID() string {
	if b.activeKey == nil {
		return ""
	}
	return b.activeKey.id
}

// KeyIDs returns the ids of all keys. The first key seals.
func (b *Box) KeyIDs() []string {
	ids := make([]string, 0, len(b.opts.Keys))
	for i := range b.opts.Keys {
		ids = append(ids, b.opts.Keys[i].ID)
	}
	return ids
}

// IsPlain reports whether JSON records are written as they are.
func (b *Box) IsPlain() bool { return b.activeKey == nil && b.encoder == nil }

// Seal returns the text to store for a record.
func (b *Box) Seal(at RecordPlace, record string) string {
	return sealWith(b.activeKey, b.encoder, at, record)
}

// SealLike returns the text to store for a record in place of text. The active key seals it
// when text was sealed, and it is compressed when text was compressed.
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

// WithCompression returns a Box with the same keys that can compress. It returns an error
// when the compressor can't be made.
func (b *Box) WithCompression() (*Box, error) {
	return New(Options{Keys: b.opts.Keys, Compress: true})
}

// Open returns the record of a stored text. It returns an *OpenError when no key opens the
// text, and another error that wraps checkpoint.ErrCorrupt when the text is damaged.
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

// SealingKeyID returns the id of the key that sealed text, and reports whether text is
// sealed.
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

// corruptError returns an error that wraps checkpoint.ErrCorrupt.
func corruptError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, slices.Concat([]any{checkpoint.ErrCorrupt}, args)...)
}
