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

func newKey(id string, b byte) seal.Key {
	return seal.Key{ID: id, Secret: bytes.Repeat([]byte{b}, seal.KeySize)}
}

func newBox(tb testing.TB, compress bool, keys ...seal.Key) *seal.Box {
	tb.Helper()
	b, err := seal.New(seal.Options{Keys: keys, Compress: compress})
	require.NoError(tb, err)
	return b
}

var testPlace = seal.RecordPlace{Thread: "t", Kind: "run", Name: "r"}

func TestSealAndOpen(t *testing.T) {
	reader := newBox(t, false, newKey("k1", 1), newKey("k2", 2))
	for name, b := range map[string]*seal.Box{
		"plain": newBox(t, false), "compressed": newBox(t, true), "sealed": newBox(t, false, newKey("k1", 1)),
		"both": newBox(t, true, newKey("k2", 2)),
	} {
		for _, record := range []string{
			"", "1", `{"v":1}`, "\x00", "\x01x", "\x02", "\x03k", "\x04", strings.Repeat("\xff", 511), strings.Repeat("abc", 5000),
		} {
			text := b.Seal(testPlace, record)
			got, err := reader.Open(testPlace, text)
			require.NoError(t, err, "%s %.20q", name, record)
			require.Equal(t, record, got, name)
			_, sealed := seal.SealingKeyID(text)
			require.Equal(t, b.ActiveKeyID() != "", sealed)
			if sealed {
				require.NotEqual(t, text, b.Seal(testPlace, record), "no two are alike")
			}
		}
	}
}

func TestPlainRecordsStayAsTheyAre(t *testing.T) {
	b := newBox(t, false)
	require.Equal(t, `{"v":1}`, b.Seal(testPlace, `{"v":1}`))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if _, err := b.Open(testPlace, b.Seal(testPlace, `{"v":1}`)); err != nil {
			t.Error(err)
		}
	}))
}

func TestSmallerOnly(t *testing.T) {
	b := newBox(t, true)
	long := strings.Repeat(`{"role":"user","content":"what is this?"}`, 50)
	require.Less(t, len(b.Seal(testPlace, long)), len(long)/4)
	require.Equal(t, long[:511], b.Seal(testPlace, long[:511]), "too short")
	noise := newBox(t, false, newKey("k", 1)).Seal(testPlace, long) // as good as random
	require.Len(t, b.Seal(testPlace, "{"+noise), len(noise)+1)
}

func TestOpensInItsPlaceOnly(t *testing.T) {
	b := newBox(t, true, newKey("k1", 1))
	text := b.Seal(testPlace, "secret")
	for _, at := range []seal.RecordPlace{
		{},
		{Thread: "u", Kind: "run", Name: "r"},
		{Thread: "t", Kind: "event", Name: "r"},
		{Thread: "t", Kind: "run", Name: "s"},
		{Thread: "tr", Kind: "run"},
		{Thread: "", Kind: "run", Name: "tr"},
	} {
		_, err := b.Open(at, text)
		requireOpenError(t, err, `"k1"`)
	}
	_, err := b.Open(testPlace, "\x03"+text[1:]) // it was not compressed
	requireOpenError(t, err, `"k1"`)
	for i := range text {
		broken := []byte(text)
		broken[i] ^= 4
		got, err := b.Open(testPlace, string(broken))
		if i == 0 { // says that nothing was done to it
			require.Equal(t, string(broken), got)
			continue
		}
		require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	}
	for i := range len(text) - 1 {
		_, err := b.Open(testPlace, text[:i+1])
		require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	}
}

func TestTheFirstKeySeals(t *testing.T) {
	b := newBox(t, false, newKey("k2", 2), newKey("k1", 1))
	require.Equal(t, "k2", b.ActiveKeyID())
	id, sealed := seal.SealingKeyID(b.Seal(testPlace, "secret"))
	require.True(t, sealed)
	require.Equal(t, "k2", id)
}

func TestKeysThatDoNotFit(t *testing.T) {
	text := newBox(t, false, newKey("k1", 1)).Seal(testPlace, "secret")
	for name, b := range map[string]*seal.Box{
		"none": newBox(t, false), "another": newBox(t, false, newKey("k2", 2)), "wrong": newBox(t, false, newKey("k1", 2)),
	} {
		_, err := b.Open(testPlace, text)
		requireOpenError(t, err, `"k1"`)
		require.Equal(t, name != "wrong", strings.Contains(err.Error(), "was not given"), name)
	}
}

func requireOpenError(t *testing.T, err error, names string) {
	t.Helper()
	var shut *seal.OpenError
	require.ErrorAs(t, err, &shut)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	require.ErrorContains(t, err, names)
	require.NotContains(t, err.Error(), "secret")
}

func TestDecompressionIsBounded(t *testing.T) {
	b := newBox(t, true)
	packed := b.Seal(testPlace, strings.Repeat("\x20", 1<<20))
	require.Less(t, len(packed), 1000)
	for length, says := range map[string]string{
		"\x10": "does not unpack", "\x80\x80\x80\x01": "it unpacks to", "\x80\x80\x80\x80\x10": "its length is damaged",
		"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80": "its length is damaged",
	} {
		_, err := b.Open(testPlace, packed[:1]+length+packed[4:])
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
		{newKey("k", 1), newKey("k", 2)},
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
	b := newBox(f, true, newKey("k1", 1))
	for _, record := range []string{"", "1", strings.Repeat("abc", 300)} {
		f.Add(b.Seal(testPlace, record))
		f.Add(newBox(f, true).Seal(testPlace, record))
	}
	f.Add("\x00\x00")
	f.Add("\x02\xff")
	f.Fuzz(func(t *testing.T, text string) {
		record, err := b.Open(testPlace, text)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrCorrupt)
			return
		}
		again, err := b.Open(testPlace, b.Seal(testPlace, record))
		require.NoError(t, err)
		require.Equal(t, record, again)
		again, err = b.Open(testPlace, b.Seal(testPlace, text))
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}

func BenchmarkSeal(b *testing.B) {
	for name, c := range map[string]*seal.Box{"plain": newBox(b, false), "sealed": newBox(b, false, newKey("k", 1)), "both": newBox(b, true, newKey("k", 1))} {
		for _, size := range []int{200, 2000} {
			record := strings.Repeat(`{"role":"user","content":"what?"}`, 100)[:size]
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Open(testPlace, c.Seal(testPlace, record)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
