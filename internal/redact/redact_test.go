package redact_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

func TestHide(t *testing.T) {
	const gone = string(redact.Marker)
	for name, c := range map[string]struct {
		value    string
		pointers []string
		shown    string
	}{
		"a field":                 {`{"card": "4111", "n": 9007199254740993}`, []string{"/card"}, `{"card": ` + gone + `, "n": 9007199254740993}`},
		"the whole":               {` "4111" `, []string{""}, ` ` + gone + ` `},
		"a field of a field":      {`{"a":{"b":1,"c":2}}`, []string{"/a/b"}, `{"a":{"b":` + gone + `,"c":2}}`},
		"an element":              {`[1, [2, 3]]`, []string{"/1/0"}, `[1, [` + gone + `, 3]]`},
		"every repeated key":      {`{"a":1,"\u0061":[2],"b":3}`, []string{"/a"}, `{"a":` + gone + `,"\u0061":` + gone + `,"b":3}`},
		"inside a repeated key":   {`{"a":{"b":1},"a":{"b":2}}`, []string{"/a/b"}, `{"a":{"b":` + gone + `},"a":{"b":` + gone + `}}`},
		"several":                 {`{"b":1,"a":2}`, []string{"/a", "/b"}, `{"b":` + gone + `,"a":` + gone + `}`},
		"escapes of a pointer":    {`{"a/b":1,"m~n":2}`, []string{"/a~1b", "/m~0n"}, `{"a/b":` + gone + `,"m~n":` + gone + `}`},
		"an empty key":            {`{"":1}`, []string{"/"}, `{"":` + gone + `}`},
		"an object":               {`{"a":{"b":[1,2]}}`, []string{"/a"}, `{"a":` + gone + `}`},
		"nothing":                 {`{"a":1}`, []string{"/b", "/a/b", "/a/0"}, `{"a":1}`},
		"no index":                {`[1,2]`, []string{"/-", "/01", "/2", "/x"}, `[1,2]`},
		"a key of digits":         {`{"0":1}`, []string{"/0"}, `{"0":` + gone + `}`},
		"null is a value":         {`{"a":null}`, []string{"/a"}, `{"a":` + gone + `}`},
		"what looks like one":     {`{"a":` + gone + `,"b":1}`, []string{"/b"}, `{"a":` + gone + `,"b":` + gone + `}`},
		"a marker that was there": {`{"a":` + gone + `}`, []string{"/a"}, `{"a":` + gone + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			shown, hidden, err := redact.Hide(payload.JSON(c.value), c.pointers)
			require.NoError(t, err)
			require.Equal(t, c.shown, string(shown))
			back, err := hidden.Restore(shown)
			require.NoError(t, err)
			require.Equal(t, c.value, string(back))
		})
	}
}

func TestHideLooksAtNothingWithoutPointers(t *testing.T) {
	shown, hidden, err := redact.Hide("no JSON", nil)
	require.NoError(t, err)
	require.True(t, hidden.IsEmpty())
	require.Equal(t, payload.JSON("no JSON"), shown)
	_, _, err = redact.Hide("no JSON", []string{"/a"})
	require.Error(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = redact.Hide(`{"a":1}`, nil) }))
}

func TestRestoreRefusesAnotherValue(t *testing.T) {
	_, hidden, err := redact.Hide(`{"a":1,"b":2}`, []string{"/a"})
	require.NoError(t, err)
	for _, other := range []payload.JSON{`{"b":2}`, `{"a":1}`, `{"a":{"__redacted__": true},"a":{"__redacted__": true}}`, `[]`, `x`, ``} {
		_, err := hidden.Restore(other)
		require.Error(t, err, other)
	}
}

func TestRestoreAt(t *testing.T) {
	shown, hidden, err := redact.Hide(`{"a":1,"b":2}`, []string{"/a", "/b"})
	require.NoError(t, err)
	some, err := hidden.RestoreAt(shown, []string{"/b"})
	require.NoError(t, err)
	require.Equal(t, []payload.JSON{`{"a":{"__redacted__": true},"b":2}`}, []payload.JSON{some})
}

func TestCheckPointers(t *testing.T) {
	for name, c := range map[string]struct {
		pointers []string
		problem  string
	}{
		"none":          {nil, ""},
		"some":          {[]string{"/a", "/ab", "/b/0/~0~1"}, ""},
		"the whole":     {[]string{""}, ""},
		"no slash":      {[]string{"card"}, "is no JSON pointer"},
		"a bad escape":  {[]string{"/a~2"}, "is no JSON pointer"},
		"too long":      {[]string{"/" + strings.Repeat("x", redact.MaxPointerLength)}, "the limit is 256"},
		"too many":      {strings.Split(strings.Repeat("/x,", 17), ","), "the limit is 16"},
		"a part of one": {[]string{"/a", "/a/b"}, "overlap"},
		"twice":         {[]string{"/a", "/a"}, "overlap"},
		"of the whole":  {[]string{"/a", ""}, "overlap"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := redact.CheckPointers(c.pointers)
			if c.problem == "" {
				require.Empty(t, problems)
				return
			}
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0].Text, c.problem)
		})
	}
}

func TestEqual(t *testing.T) {
	hide := func(value payload.JSON) redact.Value {
		shown, hidden, err := redact.Hide(value, []string{"/a", "/b"})
		require.NoError(t, err)
		return redact.Value{Shown: shown, Hidden: hidden}
	}
	require.True(t, redact.Equal(hide(`{"a":1,"b":2}`), hide(`{"b":2, "a":1}`)))
	require.False(t, redact.Equal(hide(`{"a":1,"b":2}`), hide(`{"a":2,"b":1}`)))
	require.False(t, redact.Equal(hide(`{"a":9007199254740993}`), hide(`{"a":9007199254740992}`)))
	require.False(t, redact.Equal(hide(`{"a":{"__redacted__": true}}`), hide(`{"a":1}`)))
	require.True(t, redact.Equal(hide(`{"c":1}`), hide(`{"c": 1}`)))
}

// holder has Parts where no method of them can be called.
type holder struct {
	Open   redact.Parts
	closed redact.Parts
	ptr    *redact.Parts
}

// Nothing that prints a value by itself shows a part.
func TestPartsAreNotShown(t *testing.T) {
	const marker = "4111-secret"
	_, hidden, err := redact.Hide(`{"a":"`+marker+`"}`, []string{"/a"})
	require.NoError(t, err)
	h := holder{hidden, hidden, &hidden}
	for _, v := range []any{hidden, &hidden, h, &h, []redact.Parts{hidden}, map[string]holder{"x": h}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
			require.NotContains(t, fmt.Sprintf(verb, v), marker, verb)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", marker), verb)
		}
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(text), marker)
		core, logs := observer.New(zapcore.DebugLevel)
		zap.New(core).Info("x", zap.Any("v", v), zap.Reflect("r", v))
		for _, entry := range logs.All() {
			line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).EncodeEntry(entry.Entry, entry.Context)
			require.NoError(t, err)
			require.NotContains(t, line.String(), marker)
		}
	}
	require.True(t, reflect.DeepEqual(h, holder{hidden, hidden, &hidden}))
	require.Equal(t, "1 secret", hidden.String())
}

// FuzzHide checks that a value is what it was after its parts were taken out and put back, and that
// the parts are not in what is shown.
func FuzzHide(f *testing.F) {
	for _, value := range []string{
		`{"a":{"b":9007199254740993},"c":[1,{"b":"\u00e9"}]}`, `{"a":1,"\u0061":2}`, ` [ 1 , {"a" : 1e400} ] `, `"x"`, `null`, `{"a":{"__redacted__": true}}`,
		`{"":{"":1}}`, `{"~/":1}`,
	} {
		f.Add(value, "/a", "/c/1/b")
		f.Add(value, "", "/~0~1")
		f.Add(value, "/0", "//")
	}
	f.Fuzz(func(t *testing.T, value, one, other string) {
		pointers := []string{one, other}
		if len(redact.CheckPointers(pointers)) > 0 || payload.Validate(value, payload.Limits{RepeatedKeys: payload.AllowRepeatedKeys}) != nil {
			return
		}
		shown, hidden, err := redact.Hide(payload.JSON(value), pointers)
		require.NoError(t, err)
		require.NoError(t, payload.Validate(string(shown), payload.Limits{RepeatedKeys: payload.AllowRepeatedKeys}))
		back, err := hidden.Restore(shown)
		require.NoError(t, err)
		require.Equal(t, value, string(back))
		for _, pointer := range pointers {
			if at := payload.ValueAt(shown, pointer); at != "" {
				require.Equal(t, redact.Marker, at, "%q at %q", shown, pointer)
			}
		}
		again, more, err := redact.Hide(shown, pointers)
		require.NoError(t, err)
		require.Equal(t, shown, again)
		require.Equal(t, hidden.Pointers(), more.Pointers())
	})
}

func TestIsShownAs(t *testing.T) {
	const shown = `{"pin": {"__redacted__": true}, "a": 1}`
	require.True(t, redact.IsShownAs(`{"a":1,"pin":"7777"}`, shown, []string{"/pin"}))
	require.True(t, redact.IsShownAs(`"yes"`, `"yes"`, nil))
	for _, other := range []string{`{"a":2,"pin":"7777"}`, `{"a":1}`, `"yes"`, `x`} {
		require.False(t, redact.IsShownAs(other, shown, []string{"/pin"}), other)
	}
}
