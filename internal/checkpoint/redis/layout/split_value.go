package layout

import "math/bits"

// Redis allocates memory in size classes, four between two powers of two: a
// text of a kilobyte and some bytes takes 1,280. A value that would leave much
// of its allocation empty is stored in two fields: a first part that fills a
// smaller class, behind the byte SplitMark, and the rest. The script that reads
// values puts them together.

// SplitMark begins the first part of a split value. No JSON text begins with
// it, and nothing that seal writes.
const SplitMark = "\x06"

// RestField returns the field of the rest of a value.
func RestField(field string) string { return "j" + field }

// The sizes of the header and the end of a text, and of a field besides its texts.
const (
	textOverhead  = 6
	fieldOverhead = 24 + 16 + 32
)

// allocatedSize returns the allocation for n bytes, from 128 on.
func allocatedSize(n int) int {
	if n <= 128 {
		return (n + 15) / 16 * 16
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) / step * step
}

// SplitOffset returns the offset at which a value of n bytes is split, 0 = not
// split.
func SplitOffset(n int) (first int) {
	if n < 512 {
		return 0
	}
	whole := allocatedSize(n + textOverhead)
	smaller := whole - 1<<(bits.Len(uint(whole-1))-3)
	first = smaller - textOverhead - len(SplitMark)
	if first >= n || whole-smaller-fieldOverhead-allocatedSize(n-first+textOverhead) < n/10 {
		return 0
	}
	return first
}
