package seal_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

func TestTextsOutsideAStore(t *testing.T) {
	key := seal.Key{ID: "k1", Secret: []byte(strings.Repeat("k", seal.KeySize))}
	b, err := seal.NewTextBox([]seal.Key{key})
	require.NoError(t, err)
	for _, text := range []string{"", "a", "\x00\x01", strings.Repeat("long ", 1000)} {
		sealed := b.Seal("a", text)
		require.Regexp(t, `^[\w-]+$`, sealed)
		got, ok := b.Open("a", sealed)
		require.True(t, ok)
		require.Equal(t, text, got)
		_, ok = b.Open("b", sealed)
		require.False(t, ok, "for another purpose")
	}
	other, err := seal.NewTextBox([]seal.Key{{ID: "k1", Secret: []byte(strings.Repeat("x", seal.KeySize))}})
	require.NoError(t, err)
	_, ok := other.Open("a", b.Seal("a", "text"))
	require.False(t, ok, "of another key")
	for _, plain := range []string{"", "plain", "\x00escaped", "\x01compressed", "\x02", "\x02\x02k1"} {
		_, ok := b.Open("a", base64.RawURLEncoding.EncodeToString([]byte(plain)))
		require.False(t, ok, "%q is sealed by nobody", plain)
	}
	_, err = seal.NewTextBox(nil)
	require.ErrorContains(t, err, "the keys are missing")
}
