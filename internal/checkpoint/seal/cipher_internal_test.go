package seal

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublishedVectors holds the cipher to the examples of its specification,
// c2sp.org/XAES-256-GCM.
func TestPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		secret    byte
		with, out string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		k, err := newCipherKey(&Key{ID: "k", Secret: bytes.Repeat([]byte{c.secret}, KeySize)})
		require.NoError(t, err)
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		aead, err := k.newAEAD(nonce)
		require.NoError(t, err)
		out := aead.Seal(nil, nonce[nonceHalf:], []byte("XAES-256-GCM"), []byte(c.with))
		require.Equal(t, c.out, hex.EncodeToString(out))
	}
}
