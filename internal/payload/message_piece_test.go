package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

func TestPiecesOfAMessageAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []payload.JSON
		want   payload.JSON
		n      int
	}{
		"bare messages": {
			[]payload.JSON{`{"type":"AIMessageChunk","content":"Hel","id":"1"}`, `{"type":"AIMessageChunk","content":"lo","id":"1"}`},
			`{"type":"AIMessageChunk","content":"Hello","id":"1"}`, 2,
		},
		"messages with metadata": {
			[]payload.JSON{
				`{"message": {"id":"1", "content": "a", "type":"AIMessageChunk"}, "metadata":{"content":"x"}}`,
				`{"message": {"id":"1", "content": "", "type":"AIMessageChunk"}, "metadata":{"content":"x"}}`,
				`{"message": {"id":"1", "content": "b", "type":"AIMessageChunk"}, "metadata":{"content":"x"}}`,
			},
			`{"message": {"id":"1", "content": "ab", "type":"AIMessageChunk"}, "metadata":{"content":"x"}}`, 3,
		},
		"escapes": {
			[]payload.JSON{`{"type":"AIMessageChunk","content":"\ud83d"}`, `{"type":"AIMessageChunk","content":"\ude00\\"}`, `{"type":"AIMessageChunk","content":"\"\n"}`},
			`{"type":"AIMessageChunk","content":"\ud83d\ude00\\\"\n"}`, 3,
		},
		"another message": {
			[]payload.JSON{`{"type":"AIMessageChunk","content":"a","id":"1"}`, `{"type":"AIMessageChunk","content":"b","id":"2"}`},
			`{"type":"AIMessageChunk","content":"a","id":"1"}`, 1,
		},
		"a piece that has more": {
			[]payload.JSON{
				`{"type":"AIMessageChunk","content":"a"}`, `{"type":"AIMessageChunk","content":"b"}`,
				`{"type":"AIMessageChunk","content":"c","usage_metadata":{"total_tokens":3}}`,
			},
			`{"type":"AIMessageChunk","content":"ab"}`, 2,
		},
		"a text that looks like more keys": {
			[]payload.JSON{`{"type":"AIMessageChunk","content":"a"}`, `{"type":"AIMessageChunk","content":"b","content":"c"}`},
			`{"type":"AIMessageChunk","content":"a"}`, 1,
		},
		"whole messages":    {[]payload.JSON{`{"type":"ai","content":"a"}`, `{"type":"ai","content":"a"}`}, `{"type":"ai","content":"a"}`, 1},
		"lists as content":  {[]payload.JSON{`{"type":"AIMessageChunk","content":["a"]}`, `{"type":"AIMessageChunk","content":["b"]}`}, `{"type":"AIMessageChunk","content":["a"]}`, 1},
		"other values":      {[]payload.JSON{`"a"`, `"b"`}, `"a"`, 1},
		"no content":        {[]payload.JSON{`{"type":"AIMessageChunk"}`, `{"type":"AIMessageChunk"}`}, `{"type":"AIMessageChunk"}`, 1},
		"one piece":         {[]payload.JSON{`{"type":"AIMessageChunk","content":"a"}`}, `{"type":"AIMessageChunk","content":"a"}`, 1},
		"a content outside": {[]payload.JSON{`{"message":{"type":"AIMessageChunk","content":"a"},"content":"a"}`, `{"message":{"type":"AIMessageChunk","content":"b"},"content":"b"}`}, `{"message":{"type":"AIMessageChunk","content":"a"},"content":"a"}`, 1},
		"a broken text":     {[]payload.JSON{`{"type":"AIMessageChunk","content":"a`, `{"type":"AIMessageChunk","content":"b`}, `{"type":"AIMessageChunk","content":"a`, 1},
	} {
		joined, n := joinPieces(c.pieces)
		require.Equal(t, c.want, joined, name)
		require.Equal(t, c.n, n, name)
	}
}

// joinPieces joins the first pieces, as many as it can.
func joinPieces(pieces []payload.JSON) (joined payload.JSON, n int) {
	p := payload.NewMessagePieces(pieces[0])
	if p == nil {
		return pieces[0], 1
	}
	for _, next := range pieces[1:] {
		if !p.Append(next) {
			break
		}
	}
	return p.Join(0), p.Len()
}

func TestLaterPiecesAreJoinedWithoutTheFirst(t *testing.T) {
	p := payload.NewMessagePieces(`{"type":"AIMessageChunk","content":"a"}`)
	require.True(t, p.Append(`{"type":"AIMessageChunk","content":"bc"}`))
	require.True(t, p.Append(`{"type":"AIMessageChunk","content":""}`))
	require.True(t, p.Append(`{"type":"AIMessageChunk","content":"d"}`))
	for from, want := range []string{"abcd", "bcd", "d", "d"} {
		require.Equal(t, payload.JSON(`{"type":"AIMessageChunk","content":"`+want+`"}`), p.Join(from))
	}
	require.Equal(t, 4, p.Len())
	require.Less(t, p.Size(), 200)
}

func FuzzMessagePieces(f *testing.F) {
	f.Add("Hel", "lo \"x\"", `{"id":"1"}`, true)
	f.Add("\\", "😀\x00", `{}`, false)
	f.Fuzz(func(t *testing.T, first, second, metadata string, isWrapped bool) {
		piece := func(text string) payload.JSON {
			var value any = map[string]any{"type": "AIMessageChunk", "content": text, "metadata": metadata}
			if isWrapped {
				value = map[string]any{"message": value, "metadata": metadata}
			}
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			return payload.JSON(encoded)
		}
		joined, n := joinPieces([]payload.JSON{piece(first), piece(second)})
		require.Equal(t, 2, n)
		whole := strings.ToValidUTF8(first, "\ufffd") + strings.ToValidUTF8(second, "\ufffd")
		if strings.ContainsRune(whole, '\ufffd') {
			return // json.Marshal replaces each byte that is no text
		}
		require.Equal(t, piece(whole), joined)
	})
}
