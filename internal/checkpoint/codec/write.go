package codec

import "github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"

func writeString[S ~string](w *packed.Writer, f packed.Field, v S) { w.WriteString(f, string(v)) }

func writeInt[N ~int | ~int64](w *packed.Writer, f packed.Field, v N) { w.WriteInt(f, int64(v)) }
