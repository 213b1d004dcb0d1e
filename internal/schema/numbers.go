package schema

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxExponent bounds the numbers that are checked. They are compared exactly, so a
// number of a few characters could otherwise cost seconds and megabytes.
const (
	maxExponent = 1000
	maxDigits   = 1000
)

// findOversizedNumbers finds the numbers beyond the bound.
func findOversizedNumbers(value any) []runtime.Violation {
	var found []runtime.Violation
	below := func(key string, item any) {
		for _, v := range findOversizedNumbers(item) {
			v.Field = formatPointer([]string{key}) + v.Field
			found = append(found, v)
		}
	}
	switch v := value.(type) {
	case json.Number:
		switch {
		case len(v) > maxDigits:
			found = append(found, runtime.Violation{
				Description: "has too many digits to check; " + strconv.Itoa(maxDigits) + " is the limit",
			})
		case hasLargeExponent(string(v)):
			found = append(found, runtime.Violation{
				Description: "has an exponent that is too large to check; " + strconv.Itoa(maxExponent) + " is the limit",
			})
		}
	case []any:
		for i, item := range v {
			below(strconv.Itoa(i), item)
		}
	case map[string]any:
		for key, item := range v {
			below(key, item)
		}
	}
	return found
}

func hasLargeExponent(number string) bool {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return false
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err != nil || exponent > maxExponent || exponent < -maxExponent
}
