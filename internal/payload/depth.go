package payload

// Depth returns the levels of nested objects and arrays of a value: 0 for a number, 1
// for []. The text must be JSON.
func Depth(j JSON) int {
	deepest, depth := 0, 0
	for i := 0; i < len(j); i++ {
		switch j[i] {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		case '"':
			i += quotedLen(string(j[i:])) - 1
		}
	}
	return deepest
}

// quotedLen returns the length of the quoted string that text begins with.
func quotedLen(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(text)
}
