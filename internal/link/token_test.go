package link_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/link"
)

var (
	now    = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	sample = link.Link{
		Tenant: "default", Thread: "order-7", Interrupt: "3f2a", Principal: "ana@example.com", Groups: []string{"finance", "leads"},
		Etag: "4", NotAfter: now.Add(time.Hour), Preset: `{"decision":"approved"}`,
	}
)

// keyLine returns a line of a file of keys.
func keyLine(id string, fill byte, size int) string {
	return fmt.Sprintf("%s: %s\n", id, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, size)))
}

func parseKeys(t testing.TB, lines ...string) link.Keys {
	t.Helper()
	keys, err := link.ParseKeys(strings.Join(lines, ""))
	require.NoError(t, err)
	return keys
}

func signSample(t testing.TB, keys link.Keys) string {
	t.Helper()
	token, err := keys.SignToken(sample)
	require.NoError(t, err)
	return token
}

func TestTokensComeBack(t *testing.T) {
	keys := parseKeys(t, keyLine("k1", 1, 32))
	for name, change := range map[string]func(*link.Link){
		"all values": func(*link.Link) {},
		"the least":  func(l *link.Link) { l.Groups, l.Etag, l.Preset = nil, "", "" },
		"the most": func(l *link.Link) {
			l.Principal, l.Preset = strings.Repeat("p", 256), strings.Repeat("1", link.MaxPresetBytes)
			l.Groups = strings.Split(strings.Repeat("a-group-of-24-characters,", link.MaxGroups-1)+"last", ",")
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := sample
			change(&want)
			token, err := keys.SignToken(want)
			require.NoError(t, err)
			require.LessOrEqual(t, len(token), link.MaxTokenBytes)
			got, err := keys.ParseToken(token, now)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, want.Etag != "", got.IsBound())
		})
	}
}

func TestValuesOutOfBoundsAreNotSigned(t *testing.T) {
	keys := parseKeys(t, keyLine("k1", 1, 32))
	for field, change := range map[string]func(*link.Link){
		"tenant":       func(l *link.Link) { l.Tenant = "" },
		"thread_id":    func(l *link.Link) { l.Thread = strings.Repeat("t", 257) },
		"interrupt_id": func(l *link.Link) { l.Interrupt = "" },
		"principal":    func(l *link.Link) { l.Principal = "a\xff" },
		"groups":       func(l *link.Link) { l.Groups = make([]string, link.MaxGroups+1) },
		"not_after":    func(l *link.Link) { l.NotAfter = time.Time{} },
		"preset":       func(l *link.Link) { l.Preset = strings.Repeat("1", link.MaxPresetBytes+1) },
		"etag":         func(l *link.Link) { l.Etag = strings.Repeat("1", 257) },
	} {
		l := sample
		change(&l)
		_, err := keys.SignToken(l)
		var wrong *link.FieldError
		require.ErrorAs(t, err, &wrong, field)
		require.Equal(t, field, wrong.Field)
	}
	long := sample
	long.Groups = strings.Split(strings.Repeat(strings.Repeat("g", 255)+",", link.MaxGroups-1)+"g", ",")
	_, err := keys.SignToken(long)
	require.ErrorContains(t, err, "fewer groups")
	_, err = link.Keys{}.SignToken(sample)
	require.Error(t, err)
}

// Each bit of each byte of a token counts.
func TestFlippedBitsAreRefused(t *testing.T) {
	keys := parseKeys(t, keyLine("k1", 1, 32))
	token := signSample(t, keys)
	for i := range len(token) {
		for bit := range 8 {
			changed := []byte(token)
			changed[i] ^= 1 << bit
			got, err := keys.ParseToken(string(changed), now)
			require.ErrorIs(t, err, link.ErrInvalid, "byte %d, bit %d", i, bit)
			require.Zero(t, got, "nothing of a link is told that is not valid")
		}
	}
	payload, mac, _ := strings.Cut(token, ".")
	for _, wrong := range []string{
		"", ".", payload, payload + ".", "." + mac, mac + "." + payload, token + "A", token + ".", token + "\n", payload + "\r\n." + mac,
		payload + "." + mac + "=", strings.Repeat("A", link.MaxTokenBytes+1), payload[:8] + "." + mac,
	} {
		_, err := keys.ParseToken(wrong, now)
		require.ErrorIs(t, err, link.ErrInvalid, wrong)
	}
}

func TestLinksExpire(t *testing.T) {
	keys := parseKeys(t, keyLine("k1", 1, 32))
	token := signSample(t, keys)
	_, err := keys.ParseToken(token, sample.NotAfter)
	require.NoError(t, err)
	got, err := keys.ParseToken(token, sample.NotAfter.Add(time.Nanosecond))
	require.ErrorIs(t, err, link.ErrExpired)
	require.Equal(t, sample.Thread, got.Thread)
}

func TestKeysAreExchanged(t *testing.T) {
	first, second := keyLine("k1", 1, 32), keyLine("k2", 2, 64)
	before, while, after := parseKeys(t, first), parseKeys(t, second, first), parseKeys(t, second)
	byFirst, bySecond := signSample(t, before), signSample(t, while)
	require.Equal(t, bySecond, signSample(t, after), "the first key signs")
	for name, c := range map[string]struct {
		keys  link.Keys
		token string
		want  error
	}{
		"the present key":     {while, bySecond, nil},
		"the key before":      {while, byFirst, nil},
		"a key that is gone":  {after, byFirst, link.ErrInvalid},
		"a key of the future": {before, bySecond, link.ErrInvalid},
		"no key":              {link.Keys{}, byFirst, link.ErrInvalid},
	} {
		_, err := c.keys.ParseToken(c.token, now)
		require.ErrorIs(t, err, c.want, name)
	}
}

func TestKeyFiles(t *testing.T) {
	keys := parseKeys(t, "# the keys of links\n\n", keyLine("k1", 7, 32))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", keys, keys, keys), "7, 7")
	for text, want := range map[string]string{
		"":                                      "the keys are missing",
		"# none\n":                              "the keys are missing",
		"secret\n":                              "line 1 has no id",
		"a b: AAAA\n":                           "line 1 has a bad id",
		"\nk1: topsecret!\n":                    "line 2 has a secret that is not in base64",
		keyLine("k1", 1, 31):                    "line 1 has a secret of 31 bytes",
		keyLine("k1", 1, 65):                    "line 1 has a secret of 65 bytes",
		strings.Repeat(keyLine("k1", 1, 32), 2): "line 2 has the id of another line",
	} {
		_, err := link.ParseKeys(text)
		var wrong *link.KeyError
		require.ErrorAs(t, err, &wrong, text)
		require.Equal(t, want, wrong.Describe())
		require.NotContains(t, err.Error(), "topsecret")
	}
	var many strings.Builder
	for i := range 17 {
		many.WriteString(keyLine(fmt.Sprintf("k%d", i), byte(i), 32))
	}
	_, err := link.ParseKeys(many.String())
	require.ErrorContains(t, err, "at most 16")
}

// A text is a link only if the same keys give the same text for it.
func FuzzParseToken(f *testing.F) {
	keys := parseKeys(f, keyLine("k1", 1, 32))
	f.Add(signSample(f, keys))
	f.Add("AQ.AQ")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		l, err := keys.ParseToken(token, now)
		if err != nil {
			return
		}
		again, err := keys.SignToken(l)
		require.NoError(t, err)
		require.Equal(t, again, token)
	})
}
