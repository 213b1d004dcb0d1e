package form

import (
	"errors"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// sampleList returns a list that is long enough.
func sampleList(parts map[string]string, element Form) string {
	least, _ := strconv.Atoi(parts["minItems"]) // 0 if it is not a number
	one := element.sampleAnswer()
	ones := strings.Repeat(one+",", min(max(least, 0), maxSampleItems))
	return "[" + strings.TrimSuffix(ones, ",") + "]"
}

const maxSampleItems = 5

// isWord reports whether the answer is a text, a number or a choice, and nothing else: several
// can be typed with commas between them.
func (f Form) isWord() bool {
	return f.HasChoices() || !f.isAlternative && f.typeText != "" && f.typeText != listType
}

// parseList turns values with commas between them, or a value on each line, into a JSON list.
// A text in quotes may have commas.
func (f Form) parseList(typed string) (string, error) {
	quoted := "[" + typed + "]"
	if strings.HasPrefix(typed, `"`) && jsontext.CheckValue(quoted) == nil {
		return quoted, nil
	}
	separator := ","
	if strings.Contains(typed, "\n") {
		separator = "\n"
	}
	var values []string
	for part := range strings.SplitSeq(typed, separator) {
		part = strings.TrimSpace(part)
		if part == "" && separator == "," {
			return "", errors.New("a value between commas is missing")
		}
		if part == "" {
			continue
		}
		value, err := f.element.ParseInput(part)
		if err != nil {
			return "", err
		}
		values = append(values, value)
	}
	return "[" + strings.Join(values, ",") + "]", nil
}
