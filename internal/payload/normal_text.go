package payload

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// NormalText returns the form in which two values are compared by meaning:
// CanonicalText with numbers by value, so that 1, 1.0 and 10e-1 are the same and
// 9007199254740993 is nothing else than itself. docs/worker-protocol.md defines it
// exactly, because other languages make it too. Text that is not JSON is returned as
// it is.
func NormalText(j JSON) JSON {
	s := newScanner(string(j))
	if !s.skipValue() || !s.expectEnd() {
		return j
	}
	var b strings.Builder
	b.Grow(len(j))
	canonicalWriter{formatNumber: normalNumber}.writeValue(&b, Trim(j))
	return JSON(b.String())
}

// normalNumber spells a well-formed number as its digits without zeros at
// either end, and the power of ten that they are multiplied by. A number whose
// exponent has more than nine digits stays as it is.
func normalNumber(text string) string {
	rest, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := rest, int64(0)
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		written := strings.TrimLeft(rest[i+1:], "+-0")
		if len(written) > 9 && strings.Trim(rest[:i], "0.") != "" {
			return text
		}
		mantissa, exponent = splitExponent(rest)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	kept := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(kept) - len(fraction))
	if negative {
		kept = "-" + kept
	}
	if exponent != 0 {
		kept += "e" + strconv.FormatInt(exponent, 10)
	}
	return kept
}

// RemoveAt returns a value without the part at a JSON pointer (RFC 6901): an
// entry of an object is left out, an element of an array becomes null. Where the
// pointer leads nowhere the value is returned as it is.
func RemoveAt(j JSON, pointer string) JSON {
	if !strings.HasPrefix(pointer, "/") {
		return j
	}
	return removePath(j, strings.Split(pointer[1:], "/"))
}

func removePath(j JSON, path []string) JSON {
	switch KindOf(j) {
	case ObjectKind:
		return removeField(j, unescapePointer(path[0]), path[1:])
	case ArrayKind:
		return removeElement(j, path[0], path[1:])
	case None, NullKind, Bool, Number, String:
	}
	return j
}

func removeField(j JSON, key string, rest []string) JSON {
	fields, err := Fields(j)
	if err != nil {
		return j
	}
	kept := fields[:0]
	for _, f := range fields {
		switch {
		case f.Key != key:
		case len(rest) == 0:
			continue
		default:
			f.Value = removePath(f.Value, rest)
		}
		kept = append(kept, f)
	}
	return Object(kept)
}

func removeElement(j JSON, at string, rest []string) JSON {
	items, err := Elements(j)
	i, number := arrayIndex(at)
	if err != nil || !number || i >= len(items) {
		return j
	}
	items = slices.Clone(items)
	if len(rest) == 0 {
		items[i] = Null
	} else {
		items[i] = removePath(items[i], rest)
	}
	return Array(items)
}

// ValueAt returns the value that a JSON pointer leads to, "" for none.
func ValueAt(j JSON, pointer string) JSON {
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch KindOf(j) {
		case ObjectKind:
			j, _ = Lookup(j, unescapePointer(token))
		case ArrayKind:
			items, _ := Elements(j) // None for text that is not JSON
			i, isIndex := arrayIndex(token)
			if !isIndex || i >= len(items) {
				return ""
			}
			j = items[i]
		case None, NullKind, Bool, Number, String:
			return ""
		}
	}
	return Trim(j)
}

// arrayIndex reads the index of a pointer: digits without leading zeros.
func arrayIndex(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// IsPointer reports whether text is a JSON pointer to a part of a value.
func IsPointer(text string) bool {
	if !strings.HasPrefix(text, "/") {
		return false
	}
	for i := range len(text) {
		if text[i] == '~' && (i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1') {
			return false
		}
	}
	return true
}

func unescapePointer(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Differences lists the JSON pointers of the parts that differ between two
// values, as deep as both have the same structure, in order, at most so many. ""
// is the whole value.
func Differences(a, b JSON, most int) []string {
	d := differenceFinder{max: most}
	d.compareValues("", a, b)
	return d.found
}

type differenceFinder struct {
	max   int
	found []string
}

func (d *differenceFinder) compareValues(at string, a, b JSON) {
	if len(d.found) >= d.max || a == b {
		return
	}
	kind := KindOf(a)
	switch {
	case kind == ObjectKind && KindOf(b) == ObjectKind:
		d.compareFields(at, sortedFields(a), sortedFields(b))
	case kind == ArrayKind && KindOf(b) == ArrayKind:
		d.compareElements(at, a, b)
	case NormalText(a) != NormalText(b):
		d.found = append(d.found, at)
	}
}

func (d *differenceFinder) compareFields(at string, a, b []Field) {
	for len(a) > 0 || len(b) > 0 {
		var x, y Field
		var order int
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = cmp.Compare(a[0].Key, b[0].Key)
		}
		if order <= 0 {
			x, a = a[0], a[1:]
		}
		if order >= 0 {
			y, b = b[0], b[1:]
		}
		d.compareValues(at+"/"+escapePointer(cmp.Or(x.Key, y.Key)), x.Value, y.Value)
	}
}

func (d *differenceFinder) compareElements(at string, a, b JSON) {
	xs, _ := Elements(a) // None for text that is not JSON: then nothing is in it
	ys, _ := Elements(b)
	for i := range max(len(xs), len(ys)) {
		var x, y JSON
		if i < len(xs) {
			x = xs[i]
		}
		if i < len(ys) {
			y = ys[i]
		}
		d.compareValues(at+"/"+strconv.Itoa(i), x, y)
	}
}
