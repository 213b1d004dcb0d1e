package payload

// Kind is the kind of a JSON value, told by its first character.
type Kind int

// Kinds of JSON values. None is the kind of the empty text and of text that
// cannot begin a value.
const (
	None Kind = iota
	NullKind
	Bool
	Number
	String
	ArrayKind
	ObjectKind
)

// String returns the name as people know it: "null", "boolean", "number",
// "string", "array", "object", or "nothing".
func (k Kind) String() string {
	switch k {
	case NullKind:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case ArrayKind:
		return "array"
	case ObjectKind:
		return "object"
	case None:
	}
	return "nothing"
}

// KindOf tells the kind of a value by its first character. It does not check
// the rest of the text.
func KindOf(j JSON) Kind {
	for i := range len(j) {
		switch c := j[i]; {
		case isSpace(c):
			continue
		case c == 'n':
			return NullKind
		case c == 't', c == 'f':
			return Bool
		case c == '"':
			return String
		case c == '[':
			return ArrayKind
		case c == '{':
			return ObjectKind
		case c == '-', c >= '0' && c <= '9':
			return Number
		default:
			return None
		}
	}
	return None
}

// Trim returns the value without white space around it.
func Trim(j JSON) JSON {
	start, end := 0, len(j)
	for start < end && isSpace(j[start]) {
		start++
	}
	for end > start && isSpace(j[end-1]) {
		end--
	}
	return j[start:end]
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
