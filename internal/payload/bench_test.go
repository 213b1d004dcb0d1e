package payload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphd-dev/graphd/internal/payload"
)

func newObjectText(n int, value func(i int) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"field_%c%d":%s`, 'a'+i%26, i, value(i))
	}
	b.WriteByte('}')
	return b.String()
}

func newArrayText(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func BenchmarkValidate(b *testing.B) {
	scalar := func(i int) string { return [...]string{`"some text"`, "12345", "true"}[i%3] }
	record := newObjectText(10, scalar)
	for _, bench := range []struct{ name, text string }{
		{"tiny", `{"n":1}`},
		{"root of 10", record},
		{"root of 30", newObjectText(30, scalar)},
		{"message", `{"messages":[{"role":"user","content":"Please look at the invoice of last month and tell me whether it was paid.","id":"m1"},{"role":"assistant","content":"It was paid.","id":"m2","tool_calls":[{"id":"t","name":"look","args":{"month":10}}]}]}`},
		{"100 records of 10", `{"rows":` + newArrayText(100, record) + `}`},
		{"100 records of 4", newArrayText(100, newObjectText(4, scalar))},
		{"deep", strings.Repeat(`{"a":1,"b":`, 40) + "1" + strings.Repeat("}", 40)},
		{"root of 60", newObjectText(60, scalar)},
		{"root of 1000", newObjectText(1000, scalar)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bench.text)))
			for b.Loop() {
				if payload.Validate(bench.text, payload.Limits{MaxBytes: 1 << 24, MaxDepth: 128}) != nil {
					b.Fail()
				}
			}
		})
	}
}
