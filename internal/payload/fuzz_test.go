package payload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

func addSeeds(f *testing.F) {
	f.Helper()
	for _, text := range []string{
		`null`, `-1.5e10`, `1e400`, `9007199254740993`, `"1.0"`, `"é\u00e9\ud83d\ude00"`, `{"a":1,"a":2}`,
		`[1,{"b":[true,false,null]},"x"]`, ` { "a" : [ ] } `, `[1,]`, `{"a"}`, `01`, `"\x"`, "\"\x01\"", "[[[", `1 2`,
	} {
		f.Add(text)
	}
}

func FuzzValidate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		err := payload.Validate(text, payload.Limits{})
		var syntax *payload.SyntaxError
		if errors.As(err, &syntax) && bytes.Contains([]byte(syntax.Problem), []byte("appears twice")) {
			return
		}
		want := json.Valid([]byte(text)) && utf8.ValidString(text)
		require.Equal(t, want, err == nil, "%q: %v", text, err)
	})
}

func FuzzSplit(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		j := payload.JSON(text)
		var object map[string]json.RawMessage
		fields, err := payload.Fields(j)
		valid := json.Unmarshal([]byte(text), &object) == nil && payload.KindOf(j) == payload.ObjectKind
		require.Equal(t, valid, err == nil, "%q", text)
		last := make(map[string]json.RawMessage)
		for _, field := range fields {
			last[field.Key] = json.RawMessage(field.Value)
		}
		require.Len(t, last, len(object))
		for key, value := range last {
			require.Equal(t, string(object[key]), string(value))
		}
		var list []json.RawMessage
		items, err := payload.Elements(j)
		valid = json.Unmarshal([]byte(text), &list) == nil && payload.KindOf(j) == payload.ArrayKind
		require.Equal(t, valid, err == nil, "%q", text)
		require.Len(t, items, len(list))
		for i := range items {
			require.Equal(t, string(list[i]), string(items[i]))
		}
		if json.Valid([]byte(text)) {
			canonical := payload.CanonicalText(j)
			require.True(t, json.Valid([]byte(canonical)))
			require.Equal(t, canonical, payload.CanonicalText(canonical))
		}
	})
}
