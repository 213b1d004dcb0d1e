package codec_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// recordKind is one type of record, seen through text alone.
type recordKind struct {
	newRecord func() any
	encode    func(v any) string
	decode    func(s string) (any, error)
}

func newRecordKind[T any](appendTo func([]byte, *T) []byte, decode func(string) (T, error)) recordKind {
	return recordKind{
		newRecord: func() any { return new(T) },
		encode: func(v any) string {
			r, ok := v.(*T)
			if !ok {
				return ""
			}
			return string(appendTo(nil, r))
		},
		decode: func(s string) (any, error) {
			v, err := decode(s)
			return &v, err
		},
	}
}

// recordKinds are all kinds of records.
func recordKinds() map[string]recordKind {
	return map[string]recordKind{
		"head":       newRecordKind(codec.PackHead, codec.DecodeHead),
		"task":       newRecordKind(codec.PackTask, codec.DecodeTask),
		"memo":       newRecordKind(codec.PackMemo, codec.DecodeMemo),
		"interrupt":  newRecordKind(codec.PackInterrupt, codec.DecodeInterrupt),
		"run":        newRecordKind(codec.PackRun, codec.DecodeRun),
		"request":    newRecordKind(codec.PackRequest, codec.DecodeRequest),
		"checkpoint": newRecordKind(codec.PackCheckpoint, decodeManifest),
		"event": newRecordKind(func(b []byte, e *checkpoint.Event) []byte {
			return codec.PackEvents(b, []checkpoint.Event{*e})
		}, func(s string) (checkpoint.Event, error) {
			list, err := codec.DecodeEvents(s)
			if err != nil || len(list) == 0 {
				return checkpoint.Event{}, err
			}
			return list[0], nil
		}),
	}
}

// decodeManifest reads a checkpoint, and puts something where values beside it go.
func decodeManifest(s string) (checkpoint.Checkpoint, error) {
	c, beside, err := codec.DecodeCheckpoint(s)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	for _, b := range beside {
		c.Channels[b.Channel].Value = payload.JSON(strings.Repeat("1", min(b.Bytes, 1<<16)))
	}
	return *c, nil
}

// unstoredFields are fields that are kept beside a record or never stored.
func unstoredFields() map[string]bool {
	return map[string]bool{
		"Head.Revision": true, "Head.LeaseExpires": true, "Head.Now": true,
		"Event.Ephemeral": true, "List.Items": true, "Channel.Value": true,
	}
}

// fillValue gives every field that is stored a value of its own, so that a new
// field that the codec misses is found.
func fillValue(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == reflect.TypeFor[payload.JSON]():
		v.SetString(fmt.Sprintf(`{"z": 9007199254740993, "a":[1.0,1e2,"\u00e9\/é"],"n":%d}`, *n))
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, 0, *n, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[redact.Parts]():
		var b redact.Builder
		b.Add(fmt.Sprintf("/a~1%d", *n), payload.JSON(fmt.Sprintf(`{"z": 9007199254740993,"n":%d}`, *n)))
		b.Add("", `"whole"`)
		v.Set(reflect.ValueOf(b.Parts()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d \"\\\n\t\r\x01/é😀\u2028", *n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(-*n))
	case reflect.Uint64:
		v.SetUint(1<<63 + uint64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillValue(t, v.Index(0), n)
		fillValue(t, v.Index(1), n)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(t, k, n)
		fillValue(t, e, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if unstoredFields()[v.Type().Name()+"."+f.Name] {
				continue
			}
			if f.Name == "Len" {
				v.Field(i).SetInt(3)
				continue
			}
			fillValue(t, v.Field(i), n)
		}
	default:
		t.Fatalf("a field of kind %s: teach the codec and this test", v.Kind())
	}
}

func TestEveryFieldSurvives(t *testing.T) {
	for name, k := range recordKinds() {
		t.Run(name, func(t *testing.T) {
			v := k.newRecord()
			n := 0
			fillValue(t, reflect.ValueOf(v).Elem(), &n)
			text := k.encode(v)
			back, err := k.decode(text)
			require.NoError(t, err)
			require.Equal(t, v, back)
			require.Equal(t, text, k.encode(back))

			v = k.newRecord()
			text = k.encode(v)
			require.LessOrEqual(t, len(text), 6)
			back, err = k.decode(text)
			require.NoError(t, err)
			require.Equal(t, v, back)
		})
	}
}

// TestFormIsFrozen compares with what earlier versions wrote. Files may be added,
// never changed.
func TestFormIsFrozen(t *testing.T) {
	for name, k := range recordKinds() {
		files, err := filepath.Glob("testdata/packed1/" + name + "-*.hex")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			record := readHex(t, file)
			v, err := k.decode(record)
			require.NoError(t, err, file)
			require.Equal(t, record, k.encode(v), file)
		}
	}
}

// readHex reads a record that is kept as hexadecimal digits.
func readHex(tb testing.TB, file string) string {
	tb.Helper()
	digits, err := os.ReadFile(file)
	require.NoError(tb, err)
	record, err := hex.DecodeString(strings.ReplaceAll(string(digits), "\n", ""))
	require.NoError(tb, err)
	return string(record)
}

func TestPayloadKeepsItsBytes(t *testing.T) {
	for _, v := range []payload.JSON{
		"null", `""`, "0", "-0", "1E+2", "1.10", "9007199254740993", `{}`, `[]`, "[[],{}]",
		`{"b":1,"a":2,"b":3}`, " {\n \"a\" : 1 }\n", `"\ud83d\ude00\u00e9\/"`, `"😀"`,
		payload.JSON(`"` + strings.Repeat("x", 1<<20) + `"`),
	} {
		m := checkpoint.Memo{Key: "k", Value: v, Index: 1}
		back, err := codec.DecodeMemo(string(codec.PackMemo(nil, &m)))
		require.NoError(t, err)
		require.Equal(t, m, back)
	}
}

func TestCheckpointSaysWhereValuesAre(t *testing.T) {
	atLimit := payload.JSON(`"` + strings.Repeat("x", codec.MaxInlineBytes-2) + `"`)
	c := &checkpoint.Checkpoint{ID: "c1", Seq: 4, Step: -1, Channels: []checkpoint.Channel{
		{Name: "small", Version: 3, Stored: 2, Value: atLimit},
		{Name: "large", Version: 4, Stored: 4, Value: atLimit + " "},
		{Name: "empty", Version: 5, Stored: 1},
		{Name: "list", Version: 2, Stored: 4, List: &checkpoint.List{
			Items: []payload.JSON{"1", "2", "3"}, Segments: []checkpoint.Segment{{ID: 1, Len: 2}, {ID: 4, Len: 1}}, Appended: 1,
		}},
		{Name: "no items", Version: 1, Stored: 1, Flag: true, List: &checkpoint.List{}},
	}}
	text := string(codec.PackCheckpoint(nil, c))
	back, beside, err := codec.DecodeCheckpoint(text)
	require.NoError(t, err)
	require.Equal(t, []codec.SeparateValue{{Channel: 1, Bytes: codec.MaxInlineBytes + 1}, {Channel: 3}, {Channel: 4}}, beside)
	for i := range c.Channels {
		isStored := i == 1 || i == 3 || i == 4
		require.Equal(t, isStored, codec.IsSeparate(&c.Channels[i]), c.Channels[i].Name)
	}
	back.Channels[1].Value = c.Channels[1].Value
	back.Channels[3].List.Items = c.Channels[3].List.Items
	require.Equal(t, c, back)
}

const branchPrefix = "branch:to:"

// superstepEvents are the events of one superstep of a chain.
func superstepEvents(first uint64) []checkpoint.Event {
	at := time.Date(2026, 11, 22, 1, 40, 0, 123456789, time.UTC)
	run := "932eb4852d0ad0f036658fe70d75e866"
	task, next := "b18c462d31d18fa3e6bad6ea4aa9316a", "ba6965e47ede3e559cadff0f83bcae77"
	before, id := "000000000002-8e9e37cc", "000000000003-ee76e88c"
	list := []checkpoint.Event{
		{Kind: checkpoint.EventUpdate, Step: 1, Node: "a", Task: task, Attempt: 1, Value: `{"x":1}`},
		{Kind: checkpoint.EventTask, Step: 1, Node: "a", Task: task, Attempt: 1, Phase: checkpoint.PhaseSucceeded},
		{Kind: checkpoint.EventValues, Step: 1, Checkpoint: id},
		{
			Kind: checkpoint.EventCheckpoint, Step: 1, Checkpoint: id, Parent: before, Source: checkpoint.SourceLoop,
			Next: []checkpoint.NextTask{{ID: next, Node: "ask"}},
		},
		{
			Kind: checkpoint.EventTask, Step: 2, Node: "ask", Task: next, Phase: checkpoint.PhaseScheduled, Checkpoint: id,
			Triggers: []string{"branch:to:ask"},
		},
	}
	for i := range list {
		list[i].Seq, list[i].Time, list[i].Run = first+uint64(i), at, run
	}
	return list
}

func TestEventsShareWhatTheyHaveInCommon(t *testing.T) {
	list := superstepEvents(41)
	text := string(codec.PackEvents(nil, list))
	require.Less(t, len(text), 170)
	back, err := codec.DecodeEvents(text)
	require.NoError(t, err)
	require.Equal(t, list, back)

	// What the one before had, and this one has not.
	list = []checkpoint.Event{
		{Seq: 1, Time: list[0].Time, Run: "r", Namespace: "n", Step: 3}, {Seq: 2}, {Seq: 3, Step: -1, Run: "r"}, {Seq: 4, Run: "r", Step: -1},
	}
	back, err = codec.DecodeEvents(string(codec.PackEvents(nil, list)))
	require.NoError(t, err)
	require.Equal(t, list, back)

	// Many more texts than a record can refer to.
	list = nil
	for i := range 5000 {
		list = append(list, checkpoint.Event{
			Seq: uint64(i), Node: fmt.Sprint("node-", i), Name: fmt.Sprint("branch:to:", strings.Repeat(branchPrefix, i%2), i%700), Step: i - 100,
			Time: time.Unix(int64(i*i), 0).UTC(), Value: payload.JSON(fmt.Sprint(i)), Task: strings.Repeat("x", i%600),
		})
	}
	list = append(list, checkpoint.Event{Seq: 5000, Time: time.Date(9999, 1, 1, 0, 0, 0, 1, time.UTC)})
	text = string(codec.PackEvents(nil, list))
	back, err = codec.DecodeEvents(text)
	require.NoError(t, err)
	require.Equal(t, list, back)
}

// A record without a known caller has not a byte for who did it.
func TestRecordsWithoutCallersHaveNoFieldsForThem(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	run := checkpoint.Run{ID: "r", Metadata: map[string]string{"started_by": "eve"}}
	question := checkpoint.Interrupt{ID: "q", State: checkpoint.InterruptAnswered, Response: "true", Updated: at}
	events := []checkpoint.Event{{Seq: 1, Kind: checkpoint.EventResolved, Interrupts: []checkpoint.Interrupt{question}}}
	pack := func() []string {
		return []string{string(codec.PackRun(nil, &run)), string(codec.PackInterrupt(nil, &question)), string(codec.PackEvents(nil, events))}
	}
	fields := []string{`"started_by":"ana"`, `"responder_how":"jwt"`, `"actor":"ana"`}
	without := pack()
	for i, record := range without {
		text, err := codec.AppendJSON(nil, record)
		require.NoError(t, err)
		require.NotContains(t, string(text), fields[i])
	}
	run.StartedBy, question.ResponderHow, events[0].Actor = "ana", "jwt", "ana"
	question.ResponseMethod, question.ResponseTime = "m", at
	for i, record := range pack() {
		text, err := codec.AppendJSON(nil, record)
		require.NoError(t, err)
		require.Contains(t, string(text), fields[i])
	}
	run.StartedBy, question.ResponderHow, events[0].Actor = "", "", ""
	question.ResponseMethod, question.ResponseTime = "", time.Time{}
	require.Equal(t, without, pack())
}

func TestTextsOfAllKindsSurvivePacking(t *testing.T) {
	for _, text := range []string{
		"sha-d2d767528c3d", "sha-", "sha-abc", "sha-ABCD", "sha-" + strings.Repeat("ab", 200), "0123456789abcdef", "0123456789ABCDEF",
		"0123456789abcde", "000000000003-ee76e88c", "00000000000g-ee76e88c", "000000000003-ee76e88C", "ffffffffffff-ffffffff",
		"branch:to:", "branch:to:a", "branch:to:update", "run_state", strings.Repeat("ab", 127), strings.Repeat("ab", 128), "é", "\x00",
	} {
		list := []checkpoint.NextTask{{ID: text, Node: text}, {ID: text, Node: text}}
		c := checkpoint.Checkpoint{Graph: text, Version: text, Next: list}
		back, _, err := codec.DecodeCheckpoint(string(codec.PackCheckpoint(nil, &c)))
		require.NoError(t, err, text)
		require.Equal(t, &c, back)
	}
}

func TestPackedTextIsMadeReadable(t *testing.T) {
	f := checkpoint.Task{Failure: &checkpoint.Failure{Message: "bad \xff\xfe end", Stack: "bad \xff"}}
	back, err := codec.DecodeTask(string(codec.PackTask(nil, &f)))
	require.NoError(t, err)
	require.Equal(t, "bad \ufffd\ufffd end", back.Failure.Message)
	require.Equal(t, "bad \ufffd", back.Failure.Stack)
}

func TestDamagedPackedRecords(t *testing.T) {
	_, err := codec.DecodeEvents("\x82")
	var v *packed.VersionError
	require.ErrorAs(t, err, &v)
	require.EqualValues(t, 2, v.Version)
	for _, text := range []string{
		"", "garbage", "\x80", "\x81\x01", "\x81\x01\x31", "\x81\x00", "\x81\x01\x70", "\x81\x01\xa0", "\x81\x01\xdf",
		"\x81\x01\x35four", "\x81\x01\xe2\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x81\x01\xe5\x10", "\x81\xff\xef",
		"\x81\xff" + strings.Repeat("\xef", 20_000), "\x81\x01\xe7\xe7\x31a", "\x81\xff\xe2", "\x81\xff\x9f",
	} {
		for name, k := range recordKinds() {
			_, err := k.decode(text)
			require.ErrorIs(t, err, checkpoint.ErrCorrupt, "%s %.20q", name, text)
		}
	}
	whole := codec.PackEvents(nil, superstepEvents(1))
	for n := range whole {
		_, err := codec.DecodeEvents(string(whole[:n]))
		if n != 1 && n != 3 { // nothing, or a number and no events
			require.ErrorIs(t, err, checkpoint.ErrCorrupt, n)
		}
	}
}

// A field that a later version adds is read over, with whatever refers to it.
func TestUnknownPackedFieldsAreSkipped(t *testing.T) {
	const fieldID, fieldNode, unknown = "\x01", "\x06", "\xfe"
	for _, value := range []string{
		"\x00", "\xe0\x80\x01", "\xe1\x05", "\x32ab", "\xe3\x011", "\xe4", "\xe5\x02ab", "\xe9\x00\x00\x00\x00\x00\x00\x00\x01\xfe\xea\x02",
		"\xec", "\xee\x01\x32ab\x00", "\xef\x32ab\x33abc\xff", "\xa1", "\xef\xef\xff\xff",
	} {
		back, err := codec.DecodeTask("\x81" + fieldID + "\x31t" + unknown + value + fieldNode + "\x32no")
		require.NoError(t, err, "%q", value)
		require.Equal(t, checkpoint.Task{ID: "t", Node: "no"}, back)
	}
	back, err := codec.DecodeTask("\x81" + unknown + "\xef\x32ab\x33abc\xff" + fieldID + "\x71")
	require.NoError(t, err)
	require.Equal(t, "abc", back.ID)
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/packed1/*.hex")
	require.NoError(f, err)
	for _, file := range files {
		f.Add(readHex(f, file))
	}
	f.Add(string(codec.PackEvents(nil, superstepEvents(7))))
	f.Fuzz(func(t *testing.T, s string) {
		for name, k := range recordKinds() {
			v, err := k.decode(s)
			if err != nil {
				require.ErrorIs(t, err, checkpoint.ErrCorrupt)
				continue
			}
			text := k.encode(v)
			asJSON, err := codec.AppendJSON(nil, text)
			require.NoError(t, err)
			require.True(t, json.Valid(asJSON), "%s: %s", name, asJSON)
			again, err := k.decode(text)
			require.NoError(t, err, "%s: %q", name, text)
			require.Equal(t, text, k.encode(again))
		}
	})
}

func BenchmarkPackEvents(b *testing.B) {
	list := superstepEvents(1)
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = codec.PackEvents(buf[:0], list)
	}
	b.ReportMetric(float64(len(buf)), "bytes")
}

// Events that the first builds packed have nothing of the one before them: what
// is not written is empty.
func TestEventsThatWerePackedStandalone(t *testing.T) {
	record, err := hex.DecodeString("8102071defee0be91898b5d9b3d680050da2043572756e2d310933613a310c0206316e13e3013100" +
		"ee0bea000da5047000ee0bea020da204700933623a320c0300ee0bea000da200ff")
	require.NoError(t, err)
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	want := []checkpoint.Event{
		{Seq: 7, Time: at, Kind: checkpoint.EventUpdate, Run: "run-1", Namespace: "a:1", Step: 2, Node: "n", Value: "1"},
		{Seq: 8, Time: at, Kind: checkpoint.EventCheckpoint, Run: "run-1"},
		{Seq: 9, Time: at.Add(1), Kind: checkpoint.EventUpdate, Run: "run-1", Namespace: "b:2", Step: 3},
		{Seq: 10, Time: at.Add(1), Kind: checkpoint.EventUpdate},
	}
	got, err := codec.DecodeEvents(string(record))
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = codec.DecodeEvents(string(codec.PackEvents(nil, want)))
	require.NoError(t, err)
	require.Equal(t, want, got, "and today's says the same")
}

// A reader that keeps a small event does not keep the large one that was stored with it.
func TestEventsOfALargeRecordAreApart(t *testing.T) {
	list := superstepEvents(7)
	list[1].Value = payload.JSON(`"` + strings.Repeat("x", 1<<20) + `"`)
	text := string(codec.PackEvents(nil, list))
	back, err := codec.DecodeEvents(text)
	require.NoError(t, err)
	require.Equal(t, list, back)
	const times = 64
	var kept []checkpoint.Event
	before := heapBytes()
	for range times {
		back, err := codec.DecodeEvents(strings.Clone(text))
		require.NoError(t, err)
		kept = append(kept, back[0], back[2])
	}
	require.Less(t, heapBytes()-before, int64(times<<20)/2)
	require.Len(t, kept, 2*times)
}

// heapBytes is how many bytes are in use.
func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
