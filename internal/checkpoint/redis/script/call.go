package script

import (
	"strconv"
)

// Call is a call of a Script. All its texts stand in one
// buffer: a superstep has some thirty of them.
type Call struct {
	script   *Script
	buf      []byte
	spans    []argument
	keyCount int
}

// An argument is the position of a text in the buffer, or a text that is too large to be
// copied there.
type argument struct {
	from, to int
	large    string
}

// uncopiedSize is the length from which on a text is not copied, in bytes.
const uncopiedSize = 16 << 10

// Larger calls leave their buffers to the garbage collector.
const (
	maxReusedSize      = 64 << 10 // bytes
	maxReusedArguments = 2 << 10
)

// NewCall begins a call with the keys that the script gets.
func NewCall(which *Script, keys []string) *Call {
	c, reused := which.calls.Get().(*Call)
	if !reused {
		c = &Call{script: which, buf: make([]byte, 0, 6<<10), spans: make([]argument, 0, 64)}
	}
	for _, key := range keys {
		c.AppendText(key)
	}
	c.keyCount = len(c.spans)
	return c
}

// AppendText appends a text.
func (c *Call) AppendText(s string) {
	if len(s) >= uncopiedSize {
		c.spans = append(c.spans, argument{large: s})
		return
	}
	c.buf = append(c.buf, s...)
	c.endArgument(len(s))
}

// endArgument makes an argument of the last n bytes.
func (c *Call) endArgument(n int) {
	c.spans = append(c.spans, argument{from: len(c.buf) - n, to: len(c.buf)})
}

// AppendUint appends a number.
func (c *Call) AppendUint(n uint64) {
	from := len(c.buf)
	c.buf = strconv.AppendUint(c.buf, n, 10)
	c.endArgument(len(c.buf) - from)
}

// AppendCount appends a number of things that follow.
func (c *Call) AppendCount(n int) { c.AppendUint(uint64(max(0, n))) }

// AppendFlag appends 1 or 0.
func (c *Call) AppendFlag(v bool) {
	if v {
		c.AppendText("1")
	} else {
		c.AppendText("0")
	}
}

// AppendTexts appends a list of texts behind its length.
func (c *Call) AppendTexts(list []string) {
	c.AppendCount(len(list))
	for _, s := range list {
		c.AppendText(s)
	}
}

// AppendWritten appends a text that write appends to the buffer.
func (c *Call) AppendWritten(write func([]byte) []byte) {
	from := len(c.buf)
	c.buf = write(c.buf)
	c.endArgument(len(c.buf) - from)
}

// ReserveCount appends an empty argument for a number that is known only after the
// arguments that follow it, and returns its index for FillCount.
func (c *Call) ReserveCount() (at int) {
	c.spans = append(c.spans, argument{})
	return len(c.spans) - 1
}

// FillCount sets the argument at an index from ReserveCount to n.
func (c *Call) FillCount(at, n int) {
	c.AppendCount(n) // the text stands at the end of the buffer, and the span moves
	last := len(c.spans) - 1
	c.spans[at] = c.spans[last]
	c.spans = c.spans[:last]
}

// ArgumentCount returns the number of arguments that the call has so far.
func (c *Call) ArgumentCount() int { return len(c.spans) }

// buildCommand returns the command and its approximate size in bytes. The command
// shares no memory with the call.
func (c *Call) buildCommand() (command []any, size int) {
	all := string(c.buf)
	texts := make([]string, len(c.spans))
	command = make([]any, 0, 3+len(c.spans))
	command = append(command, "evalsha", c.script.hash, c.keyCount)
	size = len(all)
	for i := range c.spans {
		if s := &c.spans[i]; s.large == "" {
			texts[i] = all[s.from:s.to]
		} else {
			texts[i] = s.large
			size += len(s.large)
		}
		command = append(command, &texts[i])
	}
	command[3] = texts[0] // the client reads from the first key which server it is
	return command, size
}

// recycleBuffers hands the buffers of the call to a later call of the same script, and
// reports whether they are small enough for that.
func (c *Call) recycleBuffers() bool {
	if cap(c.buf) > maxReusedSize || cap(c.spans) > maxReusedArguments {
		return false
	}
	clear(c.spans) // large texts stay no longer than their change
	c.buf, c.spans, c.keyCount = c.buf[:0], c.spans[:0], 0
	c.script.calls.Put(c)
	return true
}
