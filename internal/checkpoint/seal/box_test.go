package seal_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

func key(id string, b byte) seal.Key {
	return seal.Key{ID: id, Secret: bytes.Repeat([]byte{b}, seal.KeySize)}
}

func box(tb testing.TB, compress bool, keys ...seal.Key) *seal.Box {
	tb.Helper()
	b, err := seal.New(seal.Options{Keys: keys, Compress: compress})
	require.NoError(tb, err)
	return b
}

var here = seal.Place{Thread: "t", Kind: "run", Name: "r"}

func TestSealAndOpen(t *testing.T) {
	reader := box(t, false, key("k1", 1), key("k2", 2))
	for name, b := range map[string]*seal.Box{
		"plain": box(t, false), "compressed": box(t, true), "sealed": box(t, false, key("k1", 1)),
		"both": box(t, true, key("k2", 2)),
	} {
		for _, record := range []string{
			"", "1", `{"v":1}`, "\x00", "\x01x", "\x02", "\x03k", "\x04", strings.Repeat("\xff", 511), strings.Repeat("abc", 5000),
		} {
			text := b.Seal(here, record)
			got, err := reader.Open(here, text)
			require.NoError(t, err, "%s %.20q", name, record)
			require.Equal(t, record, got, name)
			_, sealed := seal.Sealed(text)
			require.Equal(t, b.Active() != "", sealed)
			if sealed {
				require.NotEqual(t, text, b.Seal(here, record), "no two are alike")
			}
		}
	}
}

func TestPlainRecordsStayAsTheyAre(t *testing.T) {
	b := box(t, false)
	require.Equal(t, `{"v":1}`, b.Seal(here, `{"v":1}`))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if _, err := b.Open(here, b.Seal(here, `{"v":1}`)); err != nil {
			t.Error(err)
		}
	}))
}

func TestSmallerOnly(t *testing.T) {
	b := box(t, true)
	long := strings.Repeat(`{"role":"user","content":"what is this?"}`, 50)
	require.Less(t, len(b.Seal(here, long)), len(long)/4)
	require.Equal(t, long[:511], b.Seal(here, long[:511]), "too short")
	noise := box(t, false, key("k", 1)).Seal(here, long) // as good as random
	require.Len(t, b.Seal(here, "{"+noise), len(noise)+1)
}

func TestOpensInItsPlaceOnly(t *testing.T) {
	b := box(t, true, key("k1", 1))
	text := b.Seal(here, "secret")
	for _, at := range []seal.Place{
		{},
		{Thread: "u", Kind: "run", Name: "r"},
		{Thread: "t", Kind: "event", Name: "r"},
		{Thread: "t", Kind: "run", Name: "s"},
		{Thread: "tr", Kind: "run"},
		{Thread: "", Kind: "run", Name: "tr"},
	} {
		_, err := b.Open(at, text)
		requireShut(t, err, `"k1"`)
	}
	_, err := b.Open(here, "\x03"+text[1:]) // it was not compressed
	requireShut(t, err, `"k1"`)
	for i := range text {
		broken := []byte(text)
		broken[i] ^= 4
		got, err := b.Open(here, string(broken))
		if i == 0 { // says that nothing was done to it
			require.Equal(t, string(broken), got)
			continue
		}
		require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	}
	for i := range len(text) - 1 {
		_, err := b.Open(here, text[:i+1])
		require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	}
}

func TestTheFirstKeySeals(t *testing.T) {
	b := box(t, false, key("k2", 2), key("k1", 1))
	require.Equal(t, "k2", b.Active())
	id, sealed := seal.Sealed(b.Seal(here, "secret"))
	require.True(t, sealed)
	require.Equal(t, "k2", id)
}

func TestKeysThatDoNotFit(t *testing.T) {
	text := box(t, false, key("k1", 1)).Seal(here, "secret")
	for name, b := range map[string]*seal.Box{
		"none": box(t, false), "another": box(t, false, key("k2", 2)), "wrong": box(t, false, key("k1", 2)),
	} {
		_, err := b.Open(here, text)
		requireShut(t, err, `"k1"`)
		require.Equal(t, name != "wrong", strings.Contains(err.Error(), "was not given"), name)
	}
}

func requireShut(t *testing.T, err error, names string) {
	t.Helper()
	var shut *seal.OpenError
	require.ErrorAs(t, err, &shut)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	require.ErrorContains(t, err, names)
	require.NotContains(t, err.Error(), "secret")
}

func TestNoBombs(t *testing.T) {
	b := box(t, true)
	packed := b.Seal(here, strings.Repeat("\x20", 1<<20))
	require.Less(t, len(packed), 1000)
	for length, says := range map[string]string{
		"\x10": "does not unpack", "\x80\x80\x80\x01": "it unpacks to", "\x80\x80\x80\x80\x10": "its length is damaged",
		"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80": "its length is damaged",
	} {
		_, err := b.Open(here, packed[:1]+length+packed[4:])
		require.ErrorIs(t, err, checkpoint.ErrCorrupt)
		require.ErrorContains(t, err, says)
	}
}

func TestBadKeys(t *testing.T) {
	for _, keys := range [][]seal.Key{
		{{ID: "", Secret: make([]byte, 32)}},
		{{ID: "a b", Secret: make([]byte, 32)}},
		{{ID: "k", Secret: make([]byte, 16)}},
		{{ID: strings.Repeat("k", 33), Secret: make([]byte, 32)}},
		{key("k", 1), key("k", 2)},
	} {
		_, err := seal.New(seal.Options{Keys: keys})
		var wrong *seal.KeyError
		require.ErrorAs(t, err, &wrong)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	k := seal.Key{ID: "k1", Secret: []byte("open-sesame-open-sesame-open-ses")}
	require.Equal(t, "k1 k1 k1 [k1]", fmt.Sprintf("%v %+v %#v %v", k, k, k, []seal.Key{k}))
}

func TestParseKeys(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32))
	keys, err := seal.ParseKeys("# mine\r\n\r\nk2: " + secret + "\r\n  k.1:\"" + secret + `"`)
	require.NoError(t, err)
	require.Equal(t, "[k2 k.1]", fmt.Sprint(keys))
	require.Equal(t, bytes.Repeat([]byte("s"), 32), keys[1].Secret)
	for text, want := range map[string]string{
		"":                                   "the keys are missing",
		"# nothing\n":                        "the keys are missing",
		secret:                               "line 1: the keys have no id there",
		"\nk 1: " + secret:                   "line 2: the keys have a bad id there",
		"k1: " + secret + "\nk1: " + secret:  `line 2: key "k1" is given twice`,
		"k1: " + secret[:20]:                 `line 1: key "k1" has 15 bytes`,
		"k1: " + strings.ToUpper(secret)[1:]: `line 1: key "k1" is not in base64`,
		"k1:":                                `line 1: key "k1" has 0 bytes`,
	} {
		_, err := seal.ParseKeys(text)
		require.ErrorContains(t, err, want, "%q", text)
		require.NotContains(t, err.Error(), secret[:20])
	}
}

// FuzzOpen opens whatever a store may hold: it never panics, and what is sealed
// opens to what was sealed or not at all.
func FuzzOpen(f *testing.F) {
	b := box(f, true, key("k1", 1))
	for _, record := range []string{"", "1", strings.Repeat("abc", 300)} {
		f.Add(b.Seal(here, record))
		f.Add(box(f, true).Seal(here, record))
	}
	f.Add("\x00\x00")
	f.Add("\x02\xff")
	f.Fuzz(func(t *testing.T, text string) {
		record, err := b.Open(here, text)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrCorrupt)
			return
		}
		again, err := b.Open(here, b.Seal(here, record))
		require.NoError(t, err)
		require.Equal(t, record, again)
		again, err = b.Open(here, b.Seal(here, text))
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}

func BenchmarkSeal(b *testing.B) {
	for name, c := range map[string]*seal.Box{"plain": box(b, false), "sealed": box(b, false, key("k", 1)), "both": box(b, true, key("k", 1))} {
		for _, size := range []int{200, 2000} {
			record := strings.Repeat(`{"role":"user","content":"what?"}`, 100)[:size]
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Open(here, c.Seal(here, record)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
