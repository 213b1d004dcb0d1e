package checkpoint

import "strings"

// uuidLength is the length of a UUID with dashes.
const uuidLength = 36

// IsUUID reports whether a text is a UUID: 32 hex digits in either case, with dashes after the 8th,
// 12th, 16th and 20th.
func IsUUID(text string) bool {
	if len(text) != uuidLength {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			isDigit := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
			if !isDigit {
				return false
			}
		}
	}
	return true
}

// MatchesID reports whether a query selects a thread by its id. The tenant is not compared.
func (q *ThreadQuery) MatchesID(thread string) bool {
	if !q.OnlyUUIDs {
		return true
	}
	return IsUUID(thread[strings.IndexByte(thread, '@')+1:]) // behind the tenant
}
