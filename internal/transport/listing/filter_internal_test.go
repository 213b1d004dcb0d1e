package listing

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/transport/reason"
)

func TestFilters(t *testing.T) {
	allowed := []string{"state", "graph", "metadata"}
	for text, want := range map[string][]condition{
		"":                                 nil,
		" \n ":                             nil,
		`state = "OPEN"`:                   {{"state", "", "OPEN"}},
		`state=OPEN`:                       {{"state", "", "OPEN"}},
		`graph = 'it''s'`:                  nil,
		`metadata.user = "u 1"`:            {{"metadata", "user", "u 1"}},
		`metadata.a.b-c:d = x`:             {{"metadata", "a.b-c:d", "x"}},
		`metadata."a key" = x`:             {{"metadata", "a key", "x"}},
		`graph = "a\"b\\"`:                 {{"graph", "", `a"b\`}},
		`graph = ""`:                       {{"graph", "", ""}},
		`state = A AND metadata.k = "AND"`: {{"state", "", "A"}, {"metadata", "k", "AND"}},
	} {
		got, err := parseFilter(text, allowed)
		if strings.Contains(text, "''") {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		`values = 1`:                          "expected a field: state, graph, metadata.KEY (at byte 0)",
		`state`:                               "expected = after state; it is its only comparison (at byte 5)",
		`state > 1`:                           "expected = after state",
		`state = `:                            "expected a value in quotes (at byte 8)",
		`state = "x`:                          "the quote is never closed (at byte 8)",
		`state = "\x"`:                        "a backslash may only stand before",
		`state = A OR state = B`:              "expected AND",
		`state = A, state = B`:                "expected AND",
		`(state = A)`:                         "expected a field",
		`NOT state = A`:                       "expected a field",
		`state = A state = B`:                 "expected AND",
		`state = A AND state = B`:             "state is asked for twice",
		`metadata.k = 1 AND metadata."k" = 2`: "metadata.k is asked for twice",
		`metadata = A`:                        "expected metadata.KEY",
		`metadata. = A`:                       "expected metadata.KEY",
		`state = A AND`:                       "expected a field",
		strings.Repeat("x", 5000):             "has 5000 bytes",
	} {
		_, err := parseFilter(text, allowed)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{`state = "OPEN" AND metadata.user = 'u'`, `metadata."\\" = ""`, `state=`, "\x00", `graph = "ä`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseFilter(text, []string{"state", "graph", "metadata"})
		if err != nil {
			require.Empty(t, got)
			return
		}
		// A parsed filter, written and parsed again, is the same.
		var parts []string
		for _, c := range got {
			name := c.Field
			if c.Key != "" {
				name += "." + quoteFilterText(c.Key)
			}
			parts = append(parts, name+" = "+quoteFilterText(c.Value))
		}
		printed := strings.Join(parts, " AND ")
		if len(printed) > maxFilterLength {
			return
		}
		again, err := parseFilter(printed, []string{"state", "graph", "metadata"})
		require.NoError(t, err, printed)
		require.Equal(t, got, again)
	})
}

func quoteFilterText(text string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`) + `"`
}

func TestTokens(t *testing.T) {
	tk := TokenCodec{Key: []byte("k")}
	text, err := tk.EncodeToken(DigestList("a", "b"), uint64(1<<63))
	require.NoError(t, err)
	var at uint64
	require.NoError(t, tk.DecodeToken(text, DigestList("a", "b"), &at))
	require.Equal(t, uint64(1<<63), at)
	require.Error(t, tk.DecodeToken(text, DigestList("ab"), &at))
	require.NotEqual(t, DigestList("a", "b"), DigestList("a.b"))
	require.NotEqual(t, DigestList("", "b"), DigestList("b", ""))
	require.Error(t, TokenCodec{Key: []byte("other")}.DecodeToken(text, DigestList("a", "b"), &at))
	require.NoError(t, tk.DecodeToken("", "any", &at))
	for i := range len(text) {
		changed := []byte(text)
		changed[i] ^= 1
		at = 7
		if tk.DecodeToken(string(changed), DigestList("a", "b"), &at) == nil {
			// The last character may hold bits that mean nothing.
			require.Equal(t, len(text)-1, i)
			continue
		}
		require.Equal(t, uint64(7), at)
	}
}

func FuzzToken(f *testing.F) {
	tk := TokenCodec{Key: []byte("k")}
	good, err := tk.EncodeToken("list", "t1")
	require.NoError(f, err)
	f.Add(good)
	f.Add("")
	f.Add("!!")
	f.Add(strings.Repeat("A", 64))
	f.Fuzz(func(t *testing.T, text string) {
		at := "before"
		if err := tk.DecodeToken(text, "list", &at); err != nil {
			require.Equal(t, "before", at)
			return
		}
		if text == "" {
			require.Equal(t, "before", at)
			return
		}
		require.Equal(t, "t1", at, "a forged token was accepted")
	})
}

func FuzzClip(f *testing.F) {
	f.Add("ä€😀", 5)
	f.Add("\xff\xfe", 4)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = 3 + max(0, n)%100
		got := reason.ClipText(text, n)
		require.LessOrEqual(t, len(got), n)
		require.True(t, utf8.ValidString(got))
	})
}

// The position of a sealed token can't be read.
func TestSealedTokens(t *testing.T) {
	tk := TokenCodec{Key: []byte("k"), IsSealed: true}
	text, err := tk.EncodeToken("list", "hidden-thread")
	require.NoError(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "hidden")
	var at string
	require.NoError(t, tk.DecodeToken(text, "list", &at))
	require.Equal(t, "hidden-thread", at)
	require.Error(t, tk.DecodeToken(text, "other", &at))
	require.Error(t, TokenCodec{Key: []byte("other"), IsSealed: true}.DecodeToken(text, "list", &at))
	require.Error(t, TokenCodec{Key: []byte("k")}.DecodeToken(text, "list", &at))
	open, err := TokenCodec{Key: []byte("k")}.EncodeToken("list", "t")
	require.NoError(t, err)
	require.Error(t, tk.DecodeToken(open, "list", &at))
	require.Error(t, tk.DecodeToken("AAAA", "list", &at))
}

// Pages have all entries that the caller gets, each once, however few they are; and a
// page looks at a bounded number of others.
func TestPagesOfSomeEntries(t *testing.T) {
	for _, length := range []int{0, 1, 7, 500, 501, 5000} {
		for _, every := range []int{1, 2, 7, 600, 10_000} {
			for _, size := range []int{1, 3, 50, MaxPageSize} {
				var got []int
				at, looked := 0, 0
				for pages := 0; ; pages++ {
					require.Less(t, pages, length+2)
					page, next, err := CollectPage(size, func(n *int) bool { return *n%every == 0 }, func(limit int, after *int) ([]int, bool, error) {
						if after != nil {
							at = *after
						}
						var items []int
						for n := at + 1; n <= length && len(items) < limit; n++ {
							items = append(items, n)
						}
						looked += len(items)
						return items, len(items) == limit, nil
					})
					require.NoError(t, err)
					require.LessOrEqual(t, len(page), size)
					require.LessOrEqual(t, looked, maxLookedAt+2*(size+1)*min(every, length+1))
					got, looked = append(got, page...), 0
					if next == nil {
						break
					}
					at = *next
				}
				var want []int
				for n := every; n <= length; n += every {
					want = append(want, n)
				}
				require.Equal(t, want, got, "%d of %d in pages of %d", length, every, size)
			}
		}
	}
}
