// Package stack sizes the stacks of goroutines that are started for a call or a run.
package stack

import "runtime"

// bytes is the stack that a call takes down to the parser of a record from Redis, and a run
// down to the decoder of a function's state.
const bytes = 24 << 10

// Grow gives a goroutine the stack that most calls and runs need, unless it has it. It is called
// where few frames are on the stack. A stack that grows in the middle of a call has dozens of
// frames to adjust: 5 % of the CPU time of a Stream and its Resume on Redis. The collector shrinks
// the stacks of goroutines that wait.
func Grow() { grow(-1) }

// grow writes its frame only at a place in it. Without one, only the stack is checked, at the
// entry of the function.
//
//go:noinline
func grow(at int) {
	if at < 0 {
		return
	}
	var frame [bytes]byte
	frame[at] = 1
	runtime.KeepAlive(&frame)
}
