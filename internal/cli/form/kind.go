package form

import "strings"

// Choices returns the values of which the answer is one, as JSON; none for other answers.
func (f Form) Choices() []string { return f.choices }

// IsYesNo reports whether the answer is a boolean and nothing else.
func (f Form) IsYesNo() bool { return f.isYesNo() && !f.isAlternative }

// IsNumber reports whether the answer is a number and nothing else.
func (f Form) IsNumber() bool {
	return len(f.choices) == 0 && !f.isAlternative && (f.IsInteger() || strings.HasPrefix(f.typeText, "number"))
}

// IsInteger reports whether the answer is an integer, if it is a number.
func (f Form) IsInteger() bool { return strings.HasPrefix(f.typeText, "integer") }

// IsWordList reports whether the answer is a list of texts, numbers or choices.
func (f Form) IsWordList() bool { return f.element != nil }

// ListElement returns the form of each value of a list of texts, numbers or choices.
func (f Form) ListElement() Form {
	if f.element == nil {
		return Form{}
	}
	return *f.element
}
