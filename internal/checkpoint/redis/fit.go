package redis

import "math/bits"

// Redis takes memory in sizes of which there are four from one power of two to
// the next: a text of a kilobyte and some bytes takes 1,280. A value that would
// leave much of its place empty is kept in two fields: what fills a smaller
// place, behind the byte divided, and the rest. The script that reads values
// puts them together.

// divided begins the first part of a value. No JSON text begins with it, and
// nothing that seal writes.
const divided = "\x06"

// restField is where the rest of a value is kept.
func restField(field string) string { return "j" + field }

// The header and the end of a text, and what a field takes besides its texts.
const (
	around   = 6
	perField = 24 + 16 + 32
)

// room is what n bytes take, from 128 on.
func room(n int) int {
	if n <= 128 {
		return (n + 15) / 16 * 16
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) / step * step
}

// fit says after how many bytes a value of n bytes is better divided, 0 = not
// at all.
func fit(n int) (first int) {
	if n < 512 {
		return 0
	}
	whole := room(n + around)
	smaller := whole - 1<<(bits.Len(uint(whole-1))-3)
	first = smaller - around - len(divided)
	if first >= n || whole-smaller-perField-room(n-first+around) < n/10 {
		return 0
	}
	return first
}
