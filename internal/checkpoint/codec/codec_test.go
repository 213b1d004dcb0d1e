package codec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/payload"
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

func jsonKinds() map[string]recordKind {
	return map[string]recordKind{
		"head":       newRecordKind(codec.AppendHead, codec.DecodeHead),
		"task":       newRecordKind(codec.AppendTask, codec.DecodeTask),
		"memo":       newRecordKind(codec.AppendMemo, codec.DecodeMemo),
		"interrupt":  newRecordKind(codec.AppendInterrupt, codec.DecodeInterrupt),
		"run":        newRecordKind(codec.AppendRun, codec.DecodeRun),
		"event":      newRecordKind(codec.AppendEvent, codec.DecodeEvent),
		"request":    newRecordKind(codec.AppendRequest, codec.DecodeRequest),
		"checkpoint": newRecordKind(codec.AppendCheckpoint, decodeManifest),
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
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d \"\\\n\t\r\x01/é😀\u2028", *n))
	case reflect.Int, reflect.Int64:
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
	for name, k := range jsonKinds() {
		t.Run(name, func(t *testing.T) {
			v := k.newRecord()
			n := 0
			fillValue(t, reflect.ValueOf(v).Elem(), &n)
			text := k.encode(v)
			require.True(t, json.Valid([]byte(text)), text)
			require.True(t, strings.HasPrefix(text, `{"v":1,`), text)
			back, err := k.decode(text)
			require.NoError(t, err)
			require.Equal(t, v, back)
			require.Equal(t, text, k.encode(back))
		})
	}
}

func TestZeroRecordsAreSmall(t *testing.T) {
	for name, k := range jsonKinds() {
		t.Run(name, func(t *testing.T) {
			v := k.newRecord()
			text := k.encode(v)
			require.LessOrEqual(t, len(text), len(`{"v":1,"request":{}}`))
			back, err := k.decode(text)
			require.NoError(t, err)
			require.Equal(t, v, back)
		})
	}
}

func TestPayloadKeepsItsBytes(t *testing.T) {
	for _, v := range []payload.JSON{
		"null", `""`, "0", "-0", "1E+2", "1.10", "9007199254740993", `{}`, `[]`, "[[],{}]",
		`{"b":1,"a":2,"b":3}`, " {\n \"a\" : 1 }\n", `"\ud83d\ude00\u00e9\/"`, `"😀"`,
		payload.JSON(`"` + strings.Repeat("x", 1<<20) + `"`),
	} {
		m := checkpoint.Memo{Key: "k", Value: v, Index: 1}
		back, err := codec.DecodeMemo(string(codec.AppendMemo(nil, &m)))
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
	text := string(codec.AppendCheckpoint(nil, c))
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

func TestTextThatIsNotUnicodeIsMadeReadable(t *testing.T) {
	f := checkpoint.Task{Failure: &checkpoint.Failure{Message: "bad \xff\xfe end"}}
	text := string(codec.AppendTask(nil, &f))
	require.True(t, json.Valid([]byte(text)))
	back, err := codec.DecodeTask(text)
	require.NoError(t, err)
	require.Equal(t, "bad \ufffd\ufffd end", back.Failure.Message)
}

// TestFrozen reads what earlier versions wrote. Files may be added here, never
// changed.
func TestFrozen(t *testing.T) {
	files, err := filepath.Glob("testdata/v*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	seen := map[string]bool{}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			text := strings.TrimSuffix(string(data), "\n")
			name, bad := strings.CutPrefix(filepath.Base(file), "bad-")
			name, _, _ = strings.Cut(strings.TrimSuffix(name, ".json"), "-")
			k, ok := jsonKinds()[name]
			require.True(t, ok, "no record is called %q", name)
			got, err := k.decode(text)
			if bad {
				require.ErrorIs(t, err, checkpoint.ErrCorrupt)
				return
			}
			require.NoError(t, err)
			require.Equal(t, text, k.encode(got), "says the same when it is written again")
			seen[name] = true
		})
	}
	for name := range jsonKinds() {
		require.True(t, seen[name], "no frozen %s", name)
	}
}

func TestNewerVersionIsRefusedByName(t *testing.T) {
	_, err := codec.DecodeHead(`{"v":7,"thread":"t"}`)
	var v *codec.VersionError
	require.ErrorAs(t, err, &v)
	require.EqualValues(t, 7, v.Version)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	require.ErrorContains(t, err, "version 7")
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	h, err := codec.DecodeHead(`{"v":1, "new":{"deep":[1,{"x":"\""}]}, "thread" : "t" , "later":null}`)
	require.NoError(t, err)
	require.Equal(t, "t", h.Thread)
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/v1/*.json")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, k := range jsonKinds() {
			v, err := k.decode(s)
			if err != nil {
				require.ErrorIs(t, err, checkpoint.ErrCorrupt)
				continue
			}
			require.True(t, json.Valid([]byte(s)), "%s: accepted what is not JSON", name)
			text := k.encode(v)
			again, err := k.decode(text)
			require.NoError(t, err, "%s: %s", name, text)
			require.Equal(t, text, k.encode(again))
		}
	})
}

func BenchmarkAppendEvent(b *testing.B) {
	e := checkpoint.Event{
		Seq: 12, Time: time.Now(), Kind: checkpoint.EventUpdate, Run: "run-1", Step: 3, Node: "analyze",
		Task: "0123456789abcdef", Attempt: 1, Value: `{"analysis_result":"refund"}`,
	}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = codec.AppendEvent(buf[:0], &e)
	}
}
