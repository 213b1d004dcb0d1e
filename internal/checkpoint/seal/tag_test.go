package seal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

func TestTagForms(t *testing.T) {
	newBox := func(ids ...string) *seal.Box {
		var keys []seal.Key
		for _, id := range ids {
			keys = append(keys, seal.Key{ID: id, Secret: []byte(strings.Repeat(id[:1], seal.KeySize))})
		}
		b, err := seal.New(seal.Options{Keys: keys})
		require.NoError(t, err)
		return b
	}
	plain, a, ba := newBox(), newBox("a"), newBox("b", "a")
	require.Equal(t, []string{"user:ana"}, plain.TagForms("user:ana"))
	require.Equal(t, "user:ana", plain.TagForm("user:ana"))
	require.NotContains(t, plain.TagForm("user:\x00"), "\x00")
	require.NotEqual(t, plain.TagForm("user:\x00"), plain.TagForm("user:\x01"))

	forms := ba.TagForms("user:ana")
	require.Len(t, forms, 3)
	require.Equal(t, ba.TagForm("user:ana"), forms[0])
	require.Equal(t, a.TagForm("user:ana"), forms[1], "what the earlier key wrote is found")
	require.Equal(t, "user:ana", forms[2], "and what was written before there were keys")
	require.NotContains(t, forms[0]+forms[1], "ana")
	require.Len(t, forms[0], 22)
	require.NotEqual(t, forms[0], ba.TagForm("user:ben"))
}
