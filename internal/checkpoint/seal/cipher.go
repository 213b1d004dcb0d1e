package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// A sealed record is its first byte, the length of the key's id, the id, a
// nonce, and the output of AES-256-GCM for the record. The nonce is random. A nonce of
// 12 bytes, as GCM takes it, would repeat too soon under the same key when servers write
// thousands of records a second for months. Of a nonce of 24 bytes the first half derives
// a key for this record alone (XAES-256-GCM, c2sp.org/XAES-256-GCM).
const (
	nonceSize = 24
	nonceHalf = nonceSize / 2
)

// cipherKey seals and opens records with a key.
type cipherKey struct {
	id    string
	block cipher.Block
	mask  [aes.BlockSize]byte
	// tagSecret is the secret of the digests of tags.
	tagSecret [sha256.Size]byte
}

func newCipherKey(k *Key) (*cipherKey, error) {
	if !isValidID(k.ID) {
		return nil, &KeyError{ID: k.ID, Is: "has a bad id", Want: wantID}
	}
	if len(k.Secret) != KeySize {
		return nil, &KeyError{ID: k.ID, Is: fmt.Sprintf("has %d bytes", len(k.Secret)), Want: wantBytes}
	}
	block, err := aes.NewCipher(k.Secret)
	if err != nil {
		return nil, &KeyError{ID: k.ID, Is: "is refused by the cipher", Want: wantBytes}
	}
	c := &cipherKey{id: k.ID, block: block, tagSecret: deriveTagSecret(k.Secret)}
	block.Encrypt(c.mask[:], c.mask[:])
	carry := byte(0)
	for i := len(c.mask) - 1; i >= 0; i-- {
		c.mask[i], carry = c.mask[i]<<1|carry, c.mask[i]>>7
	}
	c.mask[len(c.mask)-1] ^= carry * 0x87
	// A key that seals once always seals: no record is lost because sealing fails.
	if _, err := c.newAEAD(make([]byte, nonceSize)); err != nil {
		return nil, err
	}
	return c, nil
}

// newAEAD makes the cipher of the record with a nonce.
func (c *cipherKey) newAEAD(nonce []byte) (cipher.AEAD, error) {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		block := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		copy(block, []byte{0, byte(i + 1), 'X', 0})
		copy(block[4:], nonce[:nonceHalf])
		for j := range block {
			block[j] ^= c.mask[j]
		}
		c.block.Encrypt(block, block)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return aead, nil
}

// sealRecord returns the sealed form of a record. It never fails: the program ends when the
// system has no random bytes.
func (c *cipherKey) sealRecord(kind byte, at RecordPlace, record string) string {
	out := make([]byte, 0, 2+len(c.id)+nonceSize+len(record)+16)
	out = append(out, kind, byte(len(c.id)))
	out = append(out, c.id...)
	start := len(out)
	out = out[:start+nonceSize]
	nonce := out[start:]
	_, _ = rand.Read(nonce)
	aead, err := c.newAEAD(nonce)
	if err != nil {
		return "" // can't be, newCipherKey has tried
	}
	return string(aead.Seal(out, nonce[nonceHalf:], []byte(record), associatedData(kind, at)))
}

// openRecord returns the record in a sealed text. It returns an *OpenError when the key does
// not open it there, and an error that wraps checkpoint.ErrCorrupt when it is too short.
func (c *cipherKey) openRecord(at RecordPlace, text string) (string, error) {
	_, rest, _ := cutID(text[1:])
	if len(rest) < nonceSize {
		return "", corruptError("its seal is damaged")
	}
	nonce := []byte(rest[:nonceSize])
	aead, err := c.newAEAD(nonce)
	if err != nil {
		return "", err
	}
	body := []byte(rest[nonceSize:])
	record, err := aead.Open(body[:0], nonce[nonceHalf:], body, associatedData(text[0], at))
	if err != nil {
		return "", &OpenError{Key: c.id}
	}
	return string(record), nil
}

// associatedData returns the associated data that binds a sealed record to its place. No
// two places have the same data.
func associatedData(kind byte, at RecordPlace) []byte {
	b := make([]byte, 0, 1+len(at.Kind)+len(at.Thread)+len(at.Name)+2*binary.MaxVarintLen32)
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(len(at.Kind)))
	b = append(b, at.Kind...)
	b = binary.AppendUvarint(b, uint64(len(at.Thread)))
	b = append(b, at.Thread...)
	return append(b, at.Name...)
}

// cutID splits a sealed record, without its first byte, into the id of the key and the
// rest.
func cutID(text string) (id, rest string, ok bool) {
	if text == "" || int(text[0]) > maxIDLength || len(text) <= int(text[0]) {
		return "", "", false
	}
	n := int(text[0]) + 1
	return text[1:n], text[n:], isValidID(text[1:n])
}
