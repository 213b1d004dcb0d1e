package script

import (
	"strconv"
)

// Call is one call of a script that changes a thread. All its texts stand in
// one buffer: a superstep has some thirty of them.
type Call struct {
	script   *Script
	buf      []byte
	spans    []argument
	keyCount int
}

// argument is where a text stands in the buffer, or one that is too large to be
// copied there.
type argument struct {
	from, to int
	large    string
}

// uncopiedSize is how long a text is that is better not copied.
const uncopiedSize = 16 << 10

// NewCall begins a call with the keys that the script gets.
func NewCall(which *Script, keys []string) *Call {
	a := &Call{script: which, buf: make([]byte, 0, 6<<10), spans: make([]argument, 0, 64)}
	for _, key := range keys {
		a.AppendText(key)
	}
	a.keyCount = len(a.spans)
	return a
}

// AppendText appends a text.
func (a *Call) AppendText(s string) {
	if len(s) >= uncopiedSize {
		a.spans = append(a.spans, argument{large: s})
		return
	}
	a.buf = append(a.buf, s...)
	a.endArgument(len(s))
}

// endArgument makes an argument of the last n bytes.
func (a *Call) endArgument(n int) {
	a.spans = append(a.spans, argument{from: len(a.buf) - n, to: len(a.buf)})
}

// AppendUint appends a number.
func (a *Call) AppendUint(n uint64) {
	from := len(a.buf)
	a.buf = strconv.AppendUint(a.buf, n, 10)
	a.endArgument(len(a.buf) - from)
}

// AppendCount appends a number of things that follow.
func (a *Call) AppendCount(n int) { a.AppendUint(uint64(max(0, n))) }

// AppendFlag appends 1 or 0.
func (a *Call) AppendFlag(v bool) {
	if v {
		a.AppendText("1")
	} else {
		a.AppendText("0")
	}
}

// AppendTexts appends a list of texts behind its length.
func (a *Call) AppendTexts(list []string) {
	a.AppendCount(len(list))
	for _, s := range list {
		a.AppendText(s)
	}
}

// AppendWritten appends a text that write appends to the buffer.
func (a *Call) AppendWritten(write func([]byte) []byte) {
	from := len(a.buf)
	a.buf = write(a.buf)
	a.endArgument(len(a.buf) - from)
}

// ReserveCount keeps a place for a number that is known after what follows it.
func (a *Call) ReserveCount() (at int) {
	a.spans = append(a.spans, argument{})
	return len(a.spans) - 1
}

// FillCount fills such a place.
func (a *Call) FillCount(at, n int) {
	a.AppendCount(n)
	last := len(a.spans) - 1
	a.spans[at] = a.spans[last]
	a.spans = a.spans[:last]
}

// ArgumentCount is how many arguments the call has so far.
func (a *Call) ArgumentCount() int { return len(a.spans) }

// buildCommand makes the command, and says how many bytes it has, about.
func (a *Call) buildCommand() (command []any, size int) {
	all := string(a.buf)
	texts := make([]string, len(a.spans))
	command = make([]any, 0, 3+len(a.spans))
	command = append(command, "evalsha", a.script.hash, a.keyCount)
	size = len(all)
	for i := range a.spans {
		if s := &a.spans[i]; s.large == "" {
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
