package trail_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/trail"
)

var start = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

func sampleEntries() []trail.Entry {
	return []trail.Entry{
		{Time: start, Kind: trail.Asked, Seen: "d1", Policy: "2 of group finance"},
		{Time: start.Add(time.Minute), Kind: trail.Claimed, Principal: "ana", How: "jwt", Method: "m", Until: start.Add(time.Hour)},
		{Time: start.Add(2 * time.Minute), Kind: trail.Commented, Principal: "ben", Note: "<b>why & how?</b>\n\u202e"},
		{Time: start.Add(3 * time.Minute), Kind: trail.Voted, Principal: "ana", Request: "r1", Agrees: true, Value: `{"amount": 9007199254740993,` + "\n" + `"e":1e400}`},
		{Time: start.Add(4 * time.Minute), Kind: trail.Voted, Principal: "ben", Dismisses: true, Note: "not mine"},
		{Time: start.Add(5 * time.Minute), Kind: trail.Changed, Principal: "eva", Fields: []string{"assignees", "expire_time"}, Assignees: []string{"ana", "ben"}, Until: start.Add(2 * time.Hour)},
		{Time: start.Add(6 * time.Minute), Kind: trail.Copied, From: "t1"},
		{Time: start.Add(7 * time.Minute), Kind: trail.Escalated, Users: []string{"eva"}, Groups: []string{"finance"}, Priority: "urgent", Policy: "eva"},
	}
}

func sampleLog() *trail.Log {
	l := &trail.Log{}
	for _, e := range sampleEntries() {
		l.Append(e)
	}
	return l
}

func TestEntriesAreWhatWasAppended(t *testing.T) {
	got, err := sampleLog().Entries()
	require.NoError(t, err)
	want := sampleEntries()
	require.Len(t, got, len(want))
	for i := range got {
		require.Equal(t, i+1, got[i].Number)
		require.NotEmpty(t, got[i].Record)
		require.Len(t, got[i].Digest, 64)
		got[i].Number, got[i].Record, got[i].Digest = 0, "", ""
		if want[i].Value != "" {
			require.True(t, payload.Equal(want[i].Value, got[i].Value), "%s", got[i].Value)
			got[i].Value, want[i].Value = "", ""
		}
	}
	require.Equal(t, want, got)
}

func TestEmptyTrail(t *testing.T) {
	var l trail.Log
	entries, err := l.Entries()
	require.NoError(t, err)
	require.Empty(t, entries)
	require.True(t, l.IsEmpty())
}

func TestLargeValuesAreDigests(t *testing.T) {
	var l trail.Log
	large := payload.JSON(`"` + strings.Repeat("x", trail.MaxValueBytes) + `"`)
	l.Append(trail.Entry{Time: start, Kind: trail.Answered, Value: large})
	entries, err := l.Entries()
	require.NoError(t, err)
	require.Empty(t, entries[0].Value)
	require.Equal(t, payload.CanonicalDigest(large), entries[0].ValueDigest)
	require.Less(t, len(l.Records[0]), trail.MaxValueBytes)
}

func TestCopiesOfALogAreApart(t *testing.T) {
	l := sampleLog()
	one, other := *l, *l
	one.Append(trail.Entry{Time: start, Kind: trail.Commented, Note: "one"})
	other.Append(trail.Entry{Time: start, Kind: trail.Commented, Note: "other"})
	for _, log := range []*trail.Log{l, &one, &other} {
		_, err := log.Entries()
		require.NoError(t, err)
	}
	require.Contains(t, one.Records[len(one.Records)-1], `"one"`)
	require.Len(t, l.Records, len(sampleEntries()))
}

// A change of any byte is found, and the entry named.
func TestEveryChangedByteIsFound(t *testing.T) {
	whole := sampleLog()
	for n, text := range whole.Records {
		for at := range len(text) {
			l := sampleLog()
			changed := []byte(text)
			changed[at] ^= 1
			l.Records[n] = string(changed)
			entries, err := l.Entries()
			broken, ok := errors.AsType[*trail.BrokenError](err)
			require.True(t, ok, "byte %d of entry %d: %v", at, n+1, err)
			require.InDelta(t, n+1, broken.Number, 1, "byte %d of entry %d: %v", at, n+1, err)
			require.LessOrEqual(t, len(entries), n)
		}
	}
}

func TestMissingAndMovedEntriesAreFound(t *testing.T) {
	for name, change := range map[string]func(l *trail.Log){
		"the first":   func(l *trail.Log) { l.Records = l.Records[1:] },
		"one between": func(l *trail.Log) { l.Records = append(l.Records[:2:2], l.Records[3:]...) },
		"the last":    func(l *trail.Log) { l.Records = l.Records[:len(l.Records)-1] },
		"all":         func(l *trail.Log) { l.Records = nil },
		"two changed": func(l *trail.Log) { l.Records[1], l.Records[2] = l.Records[2], l.Records[1] },
	} {
		t.Run(name, func(t *testing.T) {
			l := sampleLog()
			change(l)
			_, err := l.Entries()
			require.Error(t, err)
		})
	}
}

func TestRoom(t *testing.T) {
	var l trail.Log
	comment := trail.Entry{Time: start, Kind: trail.Commented, Note: strings.Repeat("x", 4096)}
	for l.HasRoom(&comment, trail.MaxCommentBytes) {
		l.Append(comment)
	}
	require.LessOrEqual(t, l.Size(), trail.MaxCommentBytes)
	require.Greater(t, l.Size(), trail.MaxCommentBytes/2)
}

func FuzzEntries(f *testing.F) {
	for _, text := range sampleLog().Records {
		f.Add(text, "")
	}
	f.Add(`{"number":1}`, "x")
	f.Fuzz(func(t *testing.T, record, digest string) {
		l := trail.Log{Records: []string{record}, Digest: digest}
		if _, err := l.Entries(); err != nil {
			require.ErrorContains(t, err, "entry")
		}
	})
}

// The bounds of a trail hold for entries that name many.
func TestSizesAreNoLessThanRecords(t *testing.T) {
	names := make([]string, 64)
	for i := range names {
		names[i] = strings.Repeat("n", 128)
	}
	for _, e := range append(sampleEntries(),
		trail.Entry{Kind: trail.Changed, Assignees: names}, trail.Entry{Kind: trail.Reminded, Users: names},
		trail.Entry{Kind: trail.Escalated, Groups: names}, trail.Entry{Kind: trail.Revealed, Fields: names},
	) {
		var l trail.Log
		l.Append(e)
		require.GreaterOrEqual(t, e.Size(), len(l.Records[0])-len(e.Value), "%s", e.Kind)
	}
}
