package seen_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/seen"
)

func TestDigest(t *testing.T) {
	text, err := os.ReadFile("../docs/seen-vectors.json")
	require.NoError(t, err)
	var vectors []struct {
		Name, Message, Value, Schema, Seen string
		Ignore                             []string
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.NotEmpty(t, vectors)
	for _, v := range vectors {
		got := seen.Digest(v.Message, json.RawMessage(v.Value), json.RawMessage(v.Schema), v.Ignore...)
		require.Equal(t, v.Seen, got, v.Name)
	}
	require.Equal(t, seen.Digest("", json.RawMessage("null"), nil), seen.Digest("", nil, nil))
}
