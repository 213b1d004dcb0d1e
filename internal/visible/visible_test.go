package visible_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/visible"
)

func TestWhatATerminalWouldObeyIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain text, 退款 ✈\ufe0f é":           "plain text, 退款 ✈\ufe0f é",
		"pay 5\r\x1b[2Kpay 50":               `pay 5\u{d}\u{1b}[2Kpay 50`,
		"yes\nanswer: approved":              `yes\u{a}answer: approved`,
		"a\tb\x00\x7f\u0085\u009b":           `a\u{9}b\u{0}\u{7f}\u{85}\u{9b}`,
		"\u202etxt\u2066x\u2069\u200f\u061c": `\u{202e}txt\u{2066}x\u{2069}\u{200f}\u{61c}`,
		"a\u200bb\u200dc\ufeff\u00ad\u2060":  `a\u{200b}b\u{200d}c\u{feff}\u{ad}\u{2060}`,
		"x\U000e0041\U000e007f":              `x\u{e0041}\u{e007f}`,
		"a\ufe0f\ufe00\U000e0100":            `a\u{fe0f}\u{fe00}\u{e0100}`,
		"\u3164\u115f\u2800\u034f\ue000":     `\u{3164}\u{115f}\u{2800}\u{34f}\u{e000}`,
		"\u2028\u2029":                       `\u{2028}\u{2029}`,
		"\xff\xc3":                           `\x{ff}\x{c3}`,
	} {
		require.Equal(t, want, visible.Line(text))
	}
	require.Equal(t, "a\nb\\u{9}", visible.Lines("a\nb\t"))
	require.Equal(t, "a\nb\t\\u{d}", visible.Output("a\nb\t\r"))
}

func TestJSONStaysTheSameValue(t *testing.T) {
	text := "{\"a\u202e\": \"\x7f\u009b\U000e0041 \\u001b é\",\n \"b\": 9007199254740993}"
	got := visible.JSON(text)
	require.JSONEq(t, `{"a\u202e": "\u007f\u009b\udb40\udc41 \u001b é",`+"\n \"b\": 9007199254740993}", got)
	require.JSONEq(t, text, got)
}

// isForbidden is told apart from what is shown by other means than the package's.
func isForbidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) ||
		r >= 0xe0000 && r <= 0xe0fff || r == 0x3164
}

func FuzzNoForbiddenCharacterComesOut(f *testing.F) {
	f.Add("yes\n\x1b]8;;http://x\x07\u202e\U000e0041\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, shown := range []string{visible.Line(text), visible.Lines(text), visible.Output(text)} {
			require.True(t, utf8.ValidString(shown))
			for _, r := range strings.NewReplacer("\n", "", "\t", "").Replace(shown) {
				require.False(t, isForbidden(r), "%q shows %U", text, r)
			}
		}
		require.NotContains(t, visible.Line(text), "\n")
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		shown := visible.JSON(string(encoded))
		for _, r := range shown {
			require.False(t, isForbidden(r))
		}
		require.JSONEq(t, string(encoded), shown)
	})
}

func TestBriefTextIsCut(t *testing.T) {
	require.Equal(t, "abc", visible.Brief("abc", 3))
	require.Equal(t, "ab…", visible.Brief("abc", 2))
	require.Equal(t, "a…", visible.Brief("aé", 2), "not inside of a character")
	require.Equal(t, `\u{1b}\u{202e}…`, visible.Brief("\x1b\u202e\x1b", 8), "a mark is whole")
	require.Equal(t, "…", visible.Brief("abc", 0))
	require.Equal(t, `"\u202e…`, visible.BriefJSON("\"\u202e"+strings.Repeat("x", 1<<20), 7))
	require.Equal(t, `{"a":1}`, visible.BriefJSON(`{"a":1}`, 7))
	require.Equal(t, `a\u000ab`, visible.BriefJSON("a\nb", 9))
	long := visible.Brief(strings.Repeat("\u202e", 1<<20), 300)
	require.Less(t, len(long), 320)
}
