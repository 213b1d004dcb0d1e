package linkpage_test

import (
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// A browser sends a form whose optional parts are empty.
func TestOptionalGroupsNeedNothing(t *testing.T) {
	const schema = `{"type": "object", "required": ["d"], "properties": {"d": {"enum": ["yes", "no"]}, "to": {"type": "object", "required": ["city", "urgent"],
		"properties": {"city": {"type": "string"}, "urgent": {"type": "boolean"}, "in": {"type": "object", "required": ["x"], "properties": {"x": {"enum": [1, 2]}}}}}}}`
	s := newSite(t, schema, "")
	for _, m := range regexp.MustCompile(`name="([^"]*)"[^>]* required`).FindAllStringSubmatch(s.get().Body.String(), -1) {
		require.Equal(t, "v.0", m[1], "a browser wants a choice in a part that is optional")
	}
	require.NotContains(t, s.get().Body.String(), `type="radio" id="v.1`, "a choice in an optional part can be taken back")
	require.Equal(t, http.StatusSeeOther, s.post(url.Values{"v.0": {"0"}}).Code)
	require.JSONEq(t, `{"d": "yes"}`, s.answers[0].GetValue().GetJson())
}

var controls = regexp.MustCompile(`(?s)<textarea id="(v[^"]*)"[^>]*>\n(.*?)</textarea>|<input type="text"[^>]* name="(v[^"]*)" value="([^"]*)"`)

// What a form begins with is sent as it was, when the person does not change it.
func TestDefaultsAreSentAsTheyAre(t *testing.T) {
	unescape := strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&amp;", "&")
	for _, c := range []struct{ schema, value string }{
		{"", `"5"`},
		{"", `"true"`},
		{"", `"\"x\""`},
		{"", `" x "`},
		{"", `"x"`},
		{"", `{"a": 1}`},
		{`{"type": "array", "items": {"type": "string"}}`, `["a\nb", "c"]`},
		{`{"type": "array", "items": {"type": "string"}}`, `["", " a"]`},
		{`{"type": "array", "items": {"type": "string"}}`, `["\"a\"", "b, c"]`},
		{`{"type": "array", "items": {"type": "string"}}`, `[]`},
		{`{"type": "array", "items": {"type": "number"}}`, `[1, 2.50]`},
		{`{"type": "array", "items": {"enum": ["a", 1, "1"]}}`, `["a", "1", 1]`},
		{`{"type": "string", "maxLength": 9}`, `"a\nb"`},
		{`{"type": "string"}`, `"\nb"`},
	} {
		s := newSite(t, c.schema, c.value)
		values := url.Values{}
		for _, m := range controls.FindAllStringSubmatch(s.get().Body.String(), -1) {
			if text := unescape.Replace(m[2]); m[1] != "" {
				values.Set(m[1], text)
			} else {
				values.Set(m[3], strings.ReplaceAll(unescape.Replace(m[4]), "\n", "")) // as browsers do
			}
		}
		got := s.post(values)
		if !assertSent(t, s, got.Code, c.value) {
			t.Errorf("schema %s", c.schema)
		}
	}
}

func assertSent(t *testing.T, s *site, code int, want string) bool {
	t.Helper()
	if code != http.StatusSeeOther {
		t.Errorf("%s: the status is %d", want, code)
		return false
	}
	got := s.answers[0].GetValue().GetJson()
	return assert.Equal(t, jsontext.CompactText(want), jsontext.CompactText(got))
}

// Choices that differ look different.
func TestChoicesLookDifferent(t *testing.T) {
	body := newSite(t, `{"enum": ["1", 1, "null", null, "a"]}`, "").get().Body.String()
	for _, label := range []string{"&#34;1&#34;", "1", "&#34;null&#34;", "null", "a"} {
		require.Contains(t, body, "<span>"+label+"</span>")
	}
}

// A page has a bound, whatever a graph asks, and takes no large memory to make.
func TestHostileSchemasAreBounded(t *testing.T) {
	list := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
		}
		return strings.Join(parts, ",")
	}
	object := func(properties, rest string) string {
		return `{"type": "object", "properties": {` + properties + `}` + rest + `}`
	}
	enum := `{"enum": [` + list(9_000, `"choice #"`) + `]}`
	deep := object(list(3_000, `"p#": {"type": "string"}`), "")
	for range 7 {
		deep = `{"anyOf": [` + deep + `]}`
	}
	for name, schema := range map[string]string{
		"choices":           enum,
		"more choices":      `{"enum": [` + list(90_000, `"choice #"`) + `]}`,
		"often the same":    object(list(195, `"p#": {"$ref": "`+"\\u0023"+`/$defs/e"}`), `, "$defs": {"e": `+enum+`}`),
		"many references":   object(list(195, `"p#": {"$ref": "`+"\\u0023"+`/$defs/e#"}`), `, "$defs": {"x": `+enum+`, `+list(195, `"e#": {"type": "string"}`)+`}`),
		"conditions":        object(`"d": {}`, `, "allOf": [`+list(1_500, `{"if": {"properties": {"d": {"const": #}}}, "then": {"required": ["r#"], "properties": {"x#": {"type": "string"}}}}`)+`]`),
		"many fields":       object(list(50_000, `"p#": {"type": "string"}`), `, "required": [`+list(50_000, `"p#"`)+`]`),
		"fields in fields":  object(list(14, `"o#": `+strings.ReplaceAll(object(list(14, `"p#": {"enum": [`+list(99, "#")+`]}`), ""), "#", "")), ""),
		"deep alternatives": deep,
	} {
		s := newSite(t, schema, `"x"`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := s.get()
		runtime.ReadMemStats(&after)
		require.Equal(t, http.StatusOK, got.Code, name)
		require.Less(t, got.Body.Len(), 2<<20, name)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(256), "MiB for %s", name)
	}
	s := newSite(t, "", "")
	s.question.Value = newPayload("{" + list(50_000, `"p#": "#"`) + "}")
	require.Less(t, s.get().Body.Len(), 64<<10)
	require.Contains(t, s.get().Body.String(), "and 49700 more")
}
