package link

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Bytes that a key has signed are read strictly all the same.
func FuzzDecodePayload(f *testing.F) {
	f.Add(encodePayload(&Link{
		Tenant: "t", Thread: "a", Interrupt: "b", Principal: "c", Groups: []string{"g"}, NotAfter: time.Unix(1, 0),
	}))
	f.Add([]byte{version, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := decodePayload(b)
		if !ok {
			return
		}
		again, same := decodePayload(encodePayload(&l))
		require.True(t, same)
		require.Equal(t, l, again)
	})
}
