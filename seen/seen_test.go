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
		Ignore, Secret                     []string
		InterruptID                        string `json:"interrupt_id"`
		SecretSeen                         string `json:"secret_seen"`
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.NotEmpty(t, vectors)
	for _, v := range vectors {
		got, err := seen.DigestHiding(v.Message, json.RawMessage(v.Value), json.RawMessage(v.Schema), v.Secret, v.Ignore...)
		require.NoError(t, err)
		require.Equal(t, v.Seen, got, v.Name)
		got, err = seen.SecretDigest(v.InterruptID, json.RawMessage(v.Value), v.Secret, v.Ignore...)
		require.NoError(t, err)
		require.Equal(t, v.SecretSeen, got, v.Name)
		if len(v.Secret) == 0 {
			require.Equal(t, v.Seen, seen.Digest(v.Message, json.RawMessage(v.Value), json.RawMessage(v.Schema), v.Ignore...), v.Name)
		}
	}
	_, err = seen.DigestHiding("", json.RawMessage("1"), nil, []string{"card"})
	require.ErrorContains(t, err, "is no JSON pointer")
	_, err = seen.SecretDigest("q", json.RawMessage("{"), []string{"/card"})
	require.Error(t, err)
	require.Equal(t, seen.Digest("", json.RawMessage("null"), nil), seen.Digest("", nil, nil))
}
