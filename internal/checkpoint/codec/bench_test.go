package codec_test

import (
	"testing"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// benchmarkPacking packs and decodes one record again and again.
func benchmarkPacking[T any](b *testing.B, record *T, appendTo func([]byte, *T) []byte, decode func(string) (T, error)) {
	b.Helper()
	buf := appendTo(nil, record)
	text := string(buf)
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = appendTo(buf[:0], record)
		}
		b.ReportMetric(float64(len(buf)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What the records of a run without callers cost.
func BenchmarkRecordsWithoutCallers(b *testing.B) {
	at := superstepEvents(1)[0].Time
	b.Run("run", func(b *testing.B) {
		benchmarkPacking(b, &checkpoint.Run{
			ID: "932eb4852d0ad0f036658fe70d75e866", Thread: "order-7", Graph: "refund", Version: "8e9e37cc", State: checkpoint.RunSucceeded,
			Created: at, Updated: at, Order: 1, MaxStep: 26, Output: `{"x":1}`, FirstEvent: 1, LastEvent: 9,
			Request: checkpoint.RunRequest{Input: `{"order":7}`},
		}, codec.PackRun, codec.DecodeRun)
	})
	b.Run("interrupt", func(b *testing.B) {
		benchmarkPacking(b, &checkpoint.Interrupt{
			ID: "b18c462d31d18fa3e6bad6ea4aa9316a", Thread: "order-7", Run: "932eb4852d0ad0f036658fe70d75e866", Graph: "refund", Node: "ask",
			Checkpoint: "000000000003-ee76e88c", Task: "ba6965e47ede3e559cadff0f83bcae77", Reason: "approval", Value: `{"amount":7}`,
			State: checkpoint.InterruptConsumed, Created: at, Updated: at, Response: "true",
		}, codec.PackInterrupt, codec.DecodeInterrupt)
	})
	b.Run("events", func(b *testing.B) {
		list := superstepEvents(1)
		benchmarkPacking(b, &list, func(buf []byte, l *[]checkpoint.Event) []byte { return codec.PackEvents(buf, *l) },
			codec.DecodeEvents)
	})
}
