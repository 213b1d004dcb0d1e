package payload_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

func TestNormalText(t *testing.T) {
	for in, want := range map[payload.JSON]payload.JSON{
		`1.0`: `1`, `100`: `1e2`, `-0.0`: `0`, `12.50`: `125e-1`, `1E+2`: `1e2`, `0.001e3`: `1`,
		`9007199254740993`: `9007199254740993`, `9007199254740993.000`: `9007199254740993`,
		`-1e1000000000`: `-1e1000000000`, `0e1000000000`: `0`,
		` {"b":1.0,"a":["x\u0041",true]} `: `{"a":["xA",true],"b":1}`,
		`not json`:                         `not json`,
	} {
		require.Equal(t, want, payload.NormalText(in), in)
	}
}

func TestValueAt(t *testing.T) {
	value := payload.JSON(`{"a":{"b":[1, {"c": 100 }]},"":2,"~/":3}`)
	for pointer, want := range map[string]payload.JSON{
		"": value, "/a/b/1/c": "100", "/a/b/0": "1", "/": "2", "/~0~1": "3",
		"/x": "", "/a/b/2": "", "/a/b/01": "", "/a/b/-": "", "/a/b/0/c": "",
	} {
		require.Equal(t, want, payload.ValueAt(value, pointer), pointer)
	}
	require.Empty(t, payload.ValueAt("[1", "/0"))
}

func TestRemoveAt(t *testing.T) {
	const value = `{"a":1.0,"b":[1,{"c":2,"d":3}],"a":4}`
	for pointer, want := range map[string]payload.JSON{
		"/a": `{"b":[1,{"c":2,"d":3}]}`, "/b/0": `{"a":1.0,"b":[null,{"c":2,"d":3}],"a":4}`,
		"/b/1/c": `{"a":1.0,"b":[1,{"d":3}],"a":4}`,
		"/b/2":   value, "/b/01": value, "/b/-": value, "/x/y": value, "/a/b": value, "": value, "a": value,
	} {
		require.Equal(t, want, payload.RemoveAt(value, pointer), pointer)
	}
	require.Equal(t, "{}", string(payload.RemoveAt(`{"~/":1}`, "/~0~1")))
	require.Equal(t, payload.JSON(`{"x":1}`), payload.RemoveAt(`{"x":1,"":2}`, "/"))
}

func TestIsPointer(t *testing.T) {
	for _, text := range []string{"/", "/a", "/a~0b/~1", "/0"} {
		require.True(t, payload.IsPointer(text), text)
	}
	for _, text := range []string{"", "a", "#/a", "/a~", "/~2"} {
		require.False(t, payload.IsPointer(text), text)
	}
}

// FuzzNormalText holds that the form is JSON, is its own form, and means what
// the value means.
func FuzzNormalText(f *testing.F) {
	for _, seed := range []string{`1.50e-3`, `{"a":[1,{"b":-0}],"\u0061":"\ud800"}`, `[1e999999999,1e-9999999999]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if payload.Validate(text, payload.Limits{}) != nil {
			return
		}
		normal := payload.NormalText(payload.JSON(text))
		require.True(t, json.Valid([]byte(normal)), normal)
		require.Equal(t, normal, payload.NormalText(normal))
		require.Empty(t, payload.Differences(payload.JSON(text), normal, 1))
		require.Equal(t, payload.NormalText(payload.CanonicalText(payload.JSON(text))), normal)
	})
}

// Numbers that no machine can write out are told apart, and cost no more than
// their text.
func TestNormalTextOfNumbersBeyondAnyRange(t *testing.T) {
	for _, one := range []string{"1e400", "1e1000000", "1e-999999999", "1e9999999999999", "-1e99999999999999999999999"} {
		for _, other := range []string{"1e401", "1e1000001", "1e-999999998", "1e9999999999998", "-1e99999999999999999999998", "0"} {
			require.NotEqual(t, payload.NormalText(payload.JSON(one)), payload.NormalText(payload.JSON(other)))
			require.False(t, payload.Equal(payload.JSON(one), payload.JSON(other)))
		}
		require.LessOrEqual(t, len(payload.NormalText(payload.JSON(one))), len(one)+1)
	}
	require.Equal(t, payload.NormalText("1e1000000"), payload.NormalText("10e999999"))
	require.Equal(t, payload.NormalText("1e-999999999"), payload.NormalText("1.0e-999999999"))
}

// The larger of two numbers is the larger one, whatever their exponents.
func TestOrderOfNumbersBeyondAnyRange(t *testing.T) {
	ascending := []payload.JSON{
		"-1e99999999999999999999999", "-1e99999999999999999999998", "-1e9999999999999", "-1e9999999999998", "-1",
		"-1e-99999999999999999999999", "0", "1e-99999999999999999999999", "1e-99999999999999999999998", "1e-999999999", "1",
		"1e400", "1e401", "1e1000000", "1e9999999999998", "1e9999999999999", "1e99999999999999999999998", "1e99999999999999999999999",
	}
	for i, a := range ascending {
		for k, b := range ascending {
			less, err := payload.Less(a, b)
			require.NoError(t, err)
			require.Equal(t, i < k, less, "%s < %s", a, b)
		}
	}
}
