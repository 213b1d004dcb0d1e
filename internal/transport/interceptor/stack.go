package interceptor

import "runtime"

// stackBytes is the stack that a call takes below the interceptors, down to the parser of a
// record from Redis.
const stackBytes = 24 << 10

// growStack gives the goroutine of a call the stack that most calls need, unless it has
// it. gRPC starts a goroutine per call, with a smaller stack, which would grow in the middle
// of the call, when dozens of frames must be adjusted: 5 % of the CPU time of a Stream and
// its Resume on Redis. The collector shrinks the stacks of calls that wait.
//
// The frame is written only at a place in it. Without one, only the stack is checked, at
// the entry of the function.
//
//go:noinline
func growStack(at int) {
	if at < 0 {
		return
	}
	var frame [stackBytes]byte
	frame[at] = 1
	runtime.KeepAlive(&frame)
}
