package format3_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/format3"
	"github.com/graphd-dev/graphd/internal/payload"
)

// decode reads a packed record of a kind.
func decode(kind, record string) (err error) {
	switch kind {
	case "head":
		_, err = codec.DecodeHead(record)
	case "task":
		_, err = codec.DecodeTask(record)
	case "memo":
		_, err = codec.DecodeMemo(record)
	case "interrupt":
		_, err = codec.DecodeInterrupt(record)
	case "run":
		_, err = codec.DecodeRun(record)
	case "request":
		_, err = codec.DecodeRequest(record)
	default:
		_, _, err = codec.DecodeCheckpoint(record)
	}
	return err
}

// TestFrozenRecords packs what earlier builds wrote as JSON, and compares with what they
// packed of the same records.
func TestFrozenRecords(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	good := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.TrimSuffix(string(data), "\n")
		name, isBad := strings.CutPrefix(strings.TrimSuffix(filepath.Base(file), ".json"), "bad-")
		kind, _, _ := strings.Cut(name, "-")
		record, err := format3.PackRecord(text)
		if isBad {
			if err == nil {
				err = decode(kind, record)
			}
			require.ErrorIs(t, err, checkpoint.ErrCorrupt, file)
			continue
		}
		require.NoError(t, err, file)
		require.NoError(t, decode(kind, record), file)
		digits, err := os.ReadFile("../../codec/testdata/packed1/" + name + ".hex")
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(string(digits), "\n", ""), hex.EncodeToString([]byte(record)), file)
		back, err := codec.AppendJSON(nil, record)
		require.NoError(t, err)
		require.JSONEq(t, strings.Replace(strings.Replace(text, `"v":1`, "", 1), "{,", "{", 1), string(back), file)
		good++
	}
	require.Equal(t, 15, good)
}

func TestValuesKeepTheirBytes(t *testing.T) {
	for _, value := range []string{
		"null", `""`, "0", "-0", "1E+2", "1.10", "9007199254740993", `{}`, `[]`, "[[],{}]",
		`{"b":1,"a":2,"b":3}`, " {\n \"a\" : 1 }\n", `"\ud83d\ude00\u00e9\/"`, `"😀"`, `"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		record, err := format3.PackRecord(`{"v":1,"key":"k","index":1,"value":` + value + `}`)
		require.NoError(t, err)
		m, err := codec.DecodeMemo(record)
		require.NoError(t, err)
		require.Equal(t, checkpoint.Memo{Key: "k", Index: 1, Value: payload.JSON(value)}, m)
	}
}

func TestUnknownFieldsAreLeftOut(t *testing.T) {
	record, err := format3.PackRecord(`{"v":1, "new":{"deep":[1,{"x":"\""}]}, "thread" : "t" , "unknown":null}`)
	require.NoError(t, err)
	h, err := codec.DecodeHead(record)
	require.NoError(t, err)
	require.Equal(t, checkpoint.Head{Thread: "t"}, h)
}

func TestDamagedRecords(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"v":1,"seq":1.5}`, `{"v":1,"seq":18446744073709551616}`, `{"v":1,"time":"yesterday"}`, `{"v":0}`, `{"v":1,"ttl":"soon"}`,
		`{"v":1,"id":"` + "\x01" + `"}`, `{"v":1,"queue":[1]}`, `{"v":1,"value":` + strings.Repeat("[", 20_000) + `}`, `{"v":1,"id":null}`,
	} {
		_, err := format3.PackRecord(text)
		require.ErrorIs(t, err, checkpoint.ErrCorrupt, "%.40s", text)
	}
}

func FuzzPackRecord(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		record, err := format3.PackRecord(text)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrCorrupt)
			return
		}
		_, err = codec.AppendJSON(nil, record)
		require.NoError(t, err)
	})
}
