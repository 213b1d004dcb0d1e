package payload

import "strings"

// ReplaceAt returns a value with the parts at some JSON pointers (RFC 6901, "" is the whole) replaced,
// in the order in which they stand in the text. Of a repeated key every part is replaced. All other
// text stays as it is. Where a pointer leads nowhere nothing is replaced. The error is a *SyntaxError
// or a *LimitError.
func ReplaceAt(j JSON, pointers []string, replace func(pointer string, part JSON) JSON) (JSON, error) {
	r := replacer{scanner: newScanner(string(j)), replace: replace}
	paths := make([]pointerPath, len(pointers))
	for i, pointer := range pointers {
		paths[i] = pointerPath{pointer: pointer, left: splitPointer(pointer)}
	}
	if !r.walkValue(paths) || !r.expectEnd() {
		return "", r.problemError()
	}
	if r.done == 0 && r.out.Len() == 0 {
		return j, nil
	}
	r.out.WriteString(r.text[r.done:])
	return JSON(r.out.String()), nil
}

// pointerPath is what is left of a pointer at a place of the text.
type pointerPath struct {
	pointer string
	left    []string // unescaped
}

func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer, "/")[1:]
	for i, token := range tokens {
		tokens[i] = unescapePointer(token)
	}
	return tokens
}

// replacer copies a text with other parts at some places.
type replacer struct {
	scanner

	replace func(pointer string, part JSON) JSON
	out     strings.Builder
	done    int // text before it is in out
}

// walkValue goes through the value at the next place, to which the paths lead.
func (r *replacer) walkValue(paths []pointerPath) bool {
	c := r.peekByte()
	for _, p := range paths {
		if len(p.left) == 0 {
			return r.replaceValue(p.pointer)
		}
	}
	switch {
	case len(paths) == 0:
		return r.skipValue()
	case c == '{':
		return r.walkObject(paths)
	case c == '[':
		return r.walkArray(paths)
	}
	return r.skipValue()
}

func (r *replacer) replaceValue(pointer string) bool {
	part, ok := r.scanRaw()
	if !ok {
		return false
	}
	r.out.WriteString(r.text[r.done : r.pos-len(part)])
	r.out.WriteString(string(r.replace(pointer, part)))
	r.done = r.pos
	return true
}

func (r *replacer) walkObject(paths []pointerPath) bool {
	if !r.openContainer() {
		return true
	}
	if r.isTooDeep {
		return false
	}
	for {
		quoted, ok := r.readKey()
		if !ok || !r.walkValue(followPaths(paths, unescapeString(quoted))) {
			return false
		}
		if more, ok := r.nextElement('}'); !ok || !more {
			return ok
		}
	}
}

func (r *replacer) walkArray(paths []pointerPath) bool {
	if !r.openContainer() {
		return true
	}
	if r.isTooDeep {
		return false
	}
	for i := 0; ; i++ {
		if !r.walkValue(followIndex(paths, i)) {
			return false
		}
		if more, ok := r.nextElement(']'); !ok || !more {
			return ok
		}
	}
}

// followPaths returns what is left of the paths that go on with a key.
func followPaths(paths []pointerPath, key string) (next []pointerPath) {
	for _, p := range paths {
		if p.left[0] == key {
			next = append(next, pointerPath{p.pointer, p.left[1:]})
		}
	}
	return next
}

// followIndex returns what is left of the paths that go on with an element of a list.
func followIndex(paths []pointerPath, at int) (next []pointerPath) {
	for _, p := range paths {
		if i, ok := arrayIndex(p.left[0]); ok && i == at {
			next = append(next, pointerPath{p.pointer, p.left[1:]})
		}
	}
	return next
}
